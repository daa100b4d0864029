import { createHmac } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile, chmod } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalJWKSet, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCapabilityKeysFile, loadCapabilityKeysFile, newCapabilityKeys } from "./capability-keys.ts";
import type { CapabilityClaims } from "./claims.ts";
import { toClaims } from "./claims.ts";
import { createCapabilitySigner } from "./signer.ts";

const keys = newCapabilityKeys();
const signer = createCapabilitySigner(keys);
const nowMs = Date.UTC(2026, 10, 30, 12);
const claims: CapabilityClaims = toClaims({
  capabilityId: "cap_0197f6a2-0000-7000-8000-000000000001",
  tenantId: "acme",
  runtime: "codex",
  sessionId: "s-1 “quoted”",
  tool: "file.write",
  resource: "/work-place/a.txt",
  planDigest: `sha256:${"ab".repeat(32)}`,
  constraints: { network: "none" },
  maxCalls: 1,
  policyRevision: "policy@2026-11-30.1+0123456789ab",
  issuedAtMs: nowMs + 999,
  expiresAtMs: nowMs + 300_999,
});
const token = signer.sign(claims);
const [head = "", body = "", signature = ""] = token.split(".");
const part = (value: unknown): string => Buffer.from(JSON.stringify(value), "utf8").toString("base64url");

describe("a signed right", () => {
  it("is read by an independent reader with the published keys", async () => {
    const { payload, protectedHeader } = await jwtVerify(
      token,
      createLocalJWKSet({ keys: [...signer.jwks().keys] }),
      {
        algorithms: ["EdDSA"],
        issuer: "fabric:gate",
        audience: "fabric-capability",
        typ: "fabric-capability+jwt",
        currentDate: new Date(nowMs + 60_000),
      },
    );
    expect(payload).toEqual(claims);
    expect(protectedHeader.kid).toBe(keys.signing.kid);
  });

  it("is the same token whenever it is made, and reads back as it was", () => {
    expect(signer.sign({ ...claims })).toBe(token);
    expect(signer.read(token)).toEqual(claims);
  });

  it("ends no later than its row and names the resource by a digest only", () => {
    expect(claims.exp * 1000).toBe(nowMs + 300_000);
    expect(Buffer.from(body, "base64url").toString("utf8")).not.toContain("/work-place/a.txt");
  });

  it("is published without the private half", () => {
    expect(JSON.stringify(signer.jwks())).not.toContain(keys.signing.d);
    expect(Object.keys(signer.jwks().keys[0] ?? {}).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x"]);
  });

  const other = createCapabilitySigner(newCapabilityKeys());
  const stolenName = createCapabilitySigner({
    signing: { ...newCapabilityKeys().signing, kid: keys.signing.kid },
    published: keys.published,
  });
  const hmac = createHmac("sha256", keys.signing.x)
    .update(`${part({ alg: "HS256", typ: "fabric-capability+jwt", kid: keys.signing.kid })}.${body}`)
    .digest("base64url");
  const foreign: Record<string, string> = {
    "a changed claim": `${head}.${part({ ...claims, max_calls: 1000 })}.${signature}`,
    "another header": `${part({ alg: "EdDSA", typ: "JWT", kid: keys.signing.kid })}.${body}.${signature}`,
    "a key that nobody published": other.sign(claims),
    "a published key's name over another key": stolenName.sign(claims),
    "no algorithm": `${part({ alg: "none", typ: "fabric-capability+jwt", kid: keys.signing.kid })}.${body}.`,
    "no algorithm, with a signature": `${part({ alg: "none", typ: "fabric-capability+jwt", kid: keys.signing.kid })}.${body}.${signature}`,
    "the public key as a shared secret": `${part({ alg: "HS256", typ: "fabric-capability+jwt", kid: keys.signing.kid })}.${body}.${hmac}`,
    "no key id": `${part({ alg: "EdDSA", typ: "fabric-capability+jwt" })}.${body}.${signature}`,
    "a key id of an object's own": `${part({ alg: "EdDSA", typ: "fabric-capability+jwt", kid: "__proto__" })}.${body}.${signature}`,
    "a key of its own": `${part({ alg: "EdDSA", typ: "fabric-capability+jwt", kid: keys.signing.kid, jwk: keys.published[0] })}.${body}.${signature}`,
    "a cut signature": token.slice(0, -4),
    "a signature with padding": `${token}==`,
    "four parts": `${token}.${signature}`,
    "two parts": `${head}.${body}`,
    "no text": "",
    "a text of 70,000 characters": "a".repeat(70_000),
    "no JSON": `${Buffer.from("{", "latin1").toString("base64url")}.${body}.${signature}`,
  };
  it.each(Object.entries(foreign))("is not read with %s", (_what, forged) => {
    expect(signer.read(forged)).toBeNull();
  });

  it("has one spelling: spare bits at the signature's end are no second token", () => {
    const last = signature.at(-1) ?? "";
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const twin = alphabet[alphabet.indexOf(last) ^ 1] ?? "";
    expect(Buffer.from(`${signature.slice(0, -1)}${twin}`, "base64url")).toEqual(
      Buffer.from(signature, "base64url"),
    );
    expect(signer.read(`${head}.${body}.${signature.slice(0, -1)}${twin}`)).toBeNull();
  });
});

describe("a change of keys", () => {
  it("keeps rights of the earlier key good, and signs with the new one", () => {
    const next = newCapabilityKeys(keys.published);
    const after = createCapabilitySigner(next);
    expect(after.read(token)).toEqual(claims);
    expect(signer.read(after.sign(claims))).toBeNull();
    expect(after.jwks().keys.map((one) => one.kid)).toEqual([next.signing.kid, keys.signing.kid]);
  });
});

describe("the key file", () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "capability-keys-"));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it("is made once, for its owner alone", async () => {
    const path = join(dir, "keys.json");
    await createCapabilityKeysFile(path);
    const before = await readFile(path, "utf8");
    await createCapabilityKeysFile(path);
    expect(await readFile(path, "utf8")).toBe(before);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const loaded = createCapabilitySigner(await loadCapabilityKeysFile(path));
    expect(loaded.read(loaded.sign(claims))).toEqual(claims);
  });

  it("is refused when others may read it, when it is no key file, and when nobody could verify its signatures", async () => {
    const path = join(dir, "bad.json");
    const other = newCapabilityKeys();
    const [own] = keys.published;
    for (const content of [
      "{",
      "{}",
      JSON.stringify({ ...keys, published: other.published }),
      JSON.stringify({ ...keys, published: [own, { ...other.published[0], kid: keys.signing.kid }] }),
      JSON.stringify({ ...keys, published: [{ ...own, d: keys.signing.d }], extra: 1 }),
    ]) {
      await writeFile(path, content, { mode: 0o600 });
      const error = await loadCapabilityKeysFile(path).catch((one: unknown) => one);
      expect(error).toMatchObject({ code: "CONFIG_INVALID" });
      expect(String(error)).not.toContain(keys.signing.d);
    }
    await writeFile(path, JSON.stringify(keys));
    await chmod(path, 0o640);
    await expect(loadCapabilityKeysFile(path)).rejects.toThrow("chmod 600");
  });
});
