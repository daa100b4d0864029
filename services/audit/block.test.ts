import { describe, expect, it } from "vitest";
import { fromRowMarks, noDigest, toBlockDigest, toRowMarks, toRowsDigest } from "./block.ts";
import { isSealedBy, newSealKeyPem, readPublicKey, readSealKey } from "./seal-key.ts";

const rows = [3n, 9n].map((offset, index) => ({
  topic: "t",
  partition: 0,
  offset,
  digest: Buffer.alloc(32, index + 1),
}));
const ranges = [{ topic: "t", partition: 0, from: 0n, to: 10n, rows: 2 }];
const block = {
  tenantId: "acme",
  number: 1n,
  ranges,
  rowCount: 2,
  rowsDigest: toRowsDigest(rows),
  rowMarks: toRowMarks(rows),
  previousDigest: noDigest,
  closedAtMs: 5,
};

describe("block", () => {
  it("has another digest when anything in it is another", () => {
    const digest = toBlockDigest(block).toString("hex");
    const others = [
      { ...block, tenantId: "globex" },
      { ...block, number: 2n },
      { ...block, rowCount: 3 },
      { ...block, closedAtMs: 6 },
      { ...block, previousDigest: Buffer.alloc(32, 1) },
      { ...block, rowMarks: Buffer.alloc(32) },
      { ...block, ranges: [{ ...ranges[0], to: 11n } as never] },
      { ...block, rowsDigest: toRowsDigest([...rows].reverse()) },
    ];
    expect(new Set([digest, ...others.map((one) => toBlockDigest(one).toString("hex"))]).size).toBe(9);
  });

  // The byte form is a contract with every block that was ever sealed: a change is a new version.
  it("keeps its byte form", () => {
    expect(toBlockDigest(block).toString("hex")).toMatchInlineSnapshot(
      `"4f3bd95fa9bef0965dfd5a23c7f2782aece21961a6e9131157bd86df146d45df"`,
    );
  });

  it("reads its marks back", () => {
    expect(fromRowMarks(ranges, block.rowMarks).map((one) => [one.offset, one.half.toString("hex")])).toEqual(
      [
        [3n, "01".repeat(8)],
        [9n, "02".repeat(8)],
      ],
    );
    expect(fromRowMarks(ranges, block.rowMarks.subarray(0, 20))).toHaveLength(1);
  });
});

describe("seal key", () => {
  it("signs what only its public half accepts", () => {
    const key = readSealKey(newSealKeyPem());
    const digest = toBlockDigest(block);
    expect(isSealedBy(key.publicKey, digest, key.sign(digest))).toBe(true);
    expect(isSealedBy(readSealKey(newSealKeyPem()).publicKey, digest, key.sign(digest))).toBe(false);
    const pem = key.publicKey.export({ type: "spki", format: "pem" }).toString();
    expect(readPublicKey(pem).keyId).toBe(key.keyId);
  });
  it("is refused when it is no Ed25519 key", () => {
    expect(() => readSealKey("no key")).toThrow(/Ed25519/);
  });
});
