import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import {
  insertEvidenceStatement,
  openInline,
  openMemoryKek,
  openPayload,
  openTenantKeys,
  sealInline,
  sealPayload,
} from "../../services/platform/vault-seal.ts";
import { createKekFile, loadKekFile } from "../../services/vault/kek-file.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { openSuperuser } from "../harness/superuser.ts";

let test: TestDatabase;
let database: Database;
/** No service may read evidence back yet: a superuser stands in for the reader. */
let reader: Database;
let admin: pg.Pool;
const kekBytes = randomBytes(32);
const kek = openMemoryKek("test", kekBytes);
beforeAll(async () => {
  test = await createTestDatabase();
  database = openDatabase({ url: test.roleUrl("fabric_gate"), applicationName: "vault-test" });
  reader = openDatabase({ url: test.url, applicationName: "vault-test-reader" });
  admin = openSuperuser(test.url, 1);
});
afterAll(async () => {
  await database.end();
  await reader.end();
  await admin.end();
  await test.drop();
});

const put = async (tenantId: string, text: string): Promise<{ ref: string; digest: string; id: string }> => {
  const keys = openTenantKeys(database, kek);
  const { ref, digest, row } = await sealPayload(keys, {
    tenantId,
    bytes: Buffer.from(text),
    dataClass: "confidential",
  });
  await database.query(insertEvidenceStatement([row]));
  return { ref, digest, id: row.evidenceId };
};

describe("the vault", () => {
  it("gives back what was put in, to a process that opens the keys anew", async () => {
    const { ref, digest } = await put("acme", "the payload");
    expect(ref).toMatch(/^vault:\/\/acme\/[0-9a-f-]{36}$/);
    expect(digest).toMatch(/^hmac-sha256:[0-9a-f]{64}$/);
    const opened = await openPayload(reader, openTenantKeys(database, kek), ref);
    expect({ ...opened, bytes: opened.bytes.toString() }).toEqual({
      bytes: "the payload",
      dataClass: "confidential",
      digest,
    });
  });

  it("stores no plain text, and digests that differ between tenants", async () => {
    const one = await put("acme", "guess me");
    const two = await put("other", "guess me");
    expect(one.digest).not.toBe(two.digest);
    const stored = await admin.query<{ sealed: Buffer }>(
      "SELECT sealed FROM vault.evidence WHERE evidence_id = $1",
      [one.id],
    );
    expect(stored.rows[0]?.sealed.toString("latin1")).not.toContain("guess");
  });

  it("makes one key when many ask for a new tenant at once", async () => {
    const opened = await Promise.all(
      Array.from({ length: 20 }, () => openTenantKeys(database, kek).current("crowded")),
    );
    expect(new Set(opened.map((key) => key.dataKey.toString("hex"))).size).toBe(1);
    const stored = await admin.query("SELECT 1 FROM vault.tenant_keys WHERE tenant_id = 'crowded'");
    expect(stored.rowCount).toBe(1);
  });

  it.each([
    [
      "a changed byte",
      "UPDATE vault.evidence SET sealed = set_byte(sealed, 0, get_byte(sealed, 0) # 1) WHERE evidence_id = $1",
    ],
    [
      "a changed nonce",
      "UPDATE vault.evidence SET nonce = set_byte(nonce, 0, get_byte(nonce, 0) # 1) WHERE evidence_id = $1",
    ],
    [
      "a changed tag",
      "UPDATE vault.evidence SET tag = set_byte(tag, 0, get_byte(tag, 0) # 1) WHERE evidence_id = $1",
    ],
    [
      "a changed digest",
      "UPDATE vault.evidence SET digest = set_byte(digest, 0, get_byte(digest, 0) # 1) WHERE evidence_id = $1",
    ],
    ["a deleted row", "DELETE FROM vault.evidence WHERE evidence_id = $1"],
  ])("refuses %s", async (_name, statement) => {
    const { ref, id } = await put("acme", "evidence");
    await admin.query(statement, [id]);
    await expect(openPayload(reader, openTenantKeys(database, kek), ref)).rejects.toMatchObject({
      code: "EVIDENCE_CORRUPT",
    });
  });

  it("refuses evidence that was moved to another reference or tenant", async () => {
    const one = await put("acme", "one");
    const two = await put("acme", "two");
    await admin.query(
      `UPDATE vault.evidence AS t SET sealed = s.sealed, nonce = s.nonce, tag = s.tag, digest = s.digest
        FROM vault.evidence AS s WHERE t.evidence_id = $1 AND s.evidence_id = $2`,
      [two.id, one.id],
    );
    const keys = openTenantKeys(database, kek);
    await expect(openPayload(reader, keys, two.ref)).rejects.toMatchObject({ code: "EVIDENCE_CORRUPT" });
    await admin.query("UPDATE vault.evidence SET tenant_id = 'other' WHERE evidence_id = $1", [one.id]);
    const moved = one.ref.replace("acme", "other");
    await expect(openPayload(reader, keys, moved)).rejects.toMatchObject({ code: "EVIDENCE_CORRUPT" });
    await expect(openPayload(reader, keys, "vault://acme/../x")).rejects.toMatchObject({
      code: "EVIDENCE_CORRUPT",
    });
  });

  it("opens nothing with another key-encryption key, and nothing of a shredded tenant", async () => {
    const { ref } = await put("shredded", "secret");
    const other = openTenantKeys(database, openMemoryKek("test", randomBytes(32)));
    await expect(openPayload(reader, other, ref)).rejects.toMatchObject({ code: "KEY_UNAVAILABLE" });
    const renamed = openTenantKeys(database, openMemoryKek("renamed", kekBytes));
    await expect(openPayload(reader, renamed, ref)).rejects.toMatchObject({ code: "KEY_UNAVAILABLE" });
    await admin.query("DELETE FROM vault.tenant_keys WHERE tenant_id = 'shredded'");
    const fresh = openTenantKeys(database, kek);
    await expect(openPayload(reader, fresh, ref)).rejects.toMatchObject({ code: "KEY_UNAVAILABLE" });
  });

  it("binds a sealed column to its row", async () => {
    const keys = openTenantKeys(database, kek);
    const key = await keys.current("acme");
    const sealed = sealInline(key, "decisions/1", Buffer.from("exact"));
    expect((await openInline(keys, "acme", "decisions/1", sealed)).toString()).toBe("exact");
    await expect(openInline(keys, "acme", "decisions/2", sealed)).rejects.toMatchObject({
      code: "EVIDENCE_CORRUPT",
    });
    await expect(openInline(keys, "acme", "decisions/1", sealed.subarray(0, 20))).rejects.toMatchObject({
      code: "EVIDENCE_CORRUPT",
    });
  });

  it("gives the gate no right to read, change or delete evidence, or to change keys", async () => {
    for (const statement of [
      "SELECT sealed FROM vault.evidence",
      "DELETE FROM vault.evidence",
      "UPDATE vault.evidence SET size_bytes = 0",
      "DELETE FROM vault.tenant_keys",
      "UPDATE access.tenants SET state = 'active'",
      "DELETE FROM gate.decisions",
      "UPDATE gate.decisions SET decision = 'allow'",
      "INSERT INTO outbox.events (id) VALUES (gen_random_uuid())",
    ]) {
      await expect(database.query(statement)).rejects.toThrow(/permission denied/);
    }
  });
});

describe("the key file", () => {
  it("is made once with mode 0600, opens what it sealed, and is refused when others may read it", async () => {
    const dir = await mkdtemp(join(tmpdir(), "kek-"));
    const path = join(dir, "kek.json");
    try {
      await createKekFile(path);
      const text = await readFile(path, "utf8");
      await createKekFile(path);
      expect(await readFile(path, "utf8")).toBe(text);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      const one = await loadKekFile(path);
      const wrapped = await one.wrap(Buffer.alloc(32, 7), "c");
      expect(await (await loadKekFile(path)).unwrap(wrapped, one.id, "c")).toEqual(Buffer.alloc(32, 7));
      await chmod(path, 0o644);
      await expect(loadKekFile(path)).rejects.toThrow(/chmod 600/);
      await chmod(path, 0o600);
      await writeFile(path, `{"kek_id":"x","key":"c2VjcmV0"}`);
      const refused = await loadKekFile(path).then(
        () => "opened",
        (error: Error) => error.message,
      );
      expect(refused).toMatch(/not a key file/);
      expect(refused).not.toContain("c2VjcmV0");
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});
