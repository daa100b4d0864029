import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT, importJWK } from "jose";
import type { JWK } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAuthenticator, issueLocalToken } from "./auth.ts";
import { newAuthKeys } from "./auth-keys.ts";

const clockAt = (nowMs: number): { nowMs(): number; set(ms: number): void } => {
  let at = nowMs;
  return { nowMs: () => at, set: (ms) => (at = ms) };
};
const startMs = Date.parse("2026-03-01T00:00:00Z");

describe("local tokens", () => {
  const keys = newAuthKeys();
  const issue = (rest: object = {}): Promise<string> =>
    issueLocalToken({
      tenantId: "acme",
      subject: "dev",
      roles: ["runtime", "admin"],
      lifetimeSeconds: 30,
      privateKey: keys.signing,
      clock: clockAt(startMs),
      ...rest,
    });

  it("carry the roles that their key vouches for, and no other", async () => {
    const one = createAuthenticator({ localKeys: keys.verification, clock: clockAt(startMs) });
    expect(await one.authenticate(await issue())).toEqual({
      tenantId: "acme",
      subject: "dev",
      roles: ["runtime"],
      issuer: "fabric:local",
    });
  });

  it("end at their expiry, also when they were verified before", async () => {
    const clock = clockAt(startMs);
    const one = createAuthenticator({ localKeys: keys.verification, clock });
    const token = await issue();
    await one.authenticate(token);
    clock.set(startMs + 29_000);
    await one.authenticate(token);
    clock.set(startMs + 60_000);
    await expect(one.authenticate(token)).rejects.toMatchObject({ code: "TOKEN_INVALID" });
  });

  it("name a tenant of the allowed form", async () => {
    const one = createAuthenticator({ localKeys: keys.verification, clock: clockAt(startMs) });
    for (const tenantId of ["", "A", "a/b", "a".repeat(65), "../x"]) {
      await expect(one.authenticate(await issue({ tenantId }))).rejects.toMatchObject({
        code: "TOKEN_INVALID",
      });
    }
  });

  it("are worth nothing when another key signed them", async () => {
    const one = createAuthenticator({ localKeys: newAuthKeys().verification, clock: clockAt(startMs) });
    await expect(one.authenticate(await issue())).rejects.toMatchObject({ code: "TOKEN_INVALID" });
  });
});

describe("tokens of an OIDC issuer", () => {
  const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const publicJwk = { ...pair.publicKey.export({ format: "jwk" }), kid: "k1", alg: "RS256" } as JWK;
  const privateJwk = { ...pair.privateKey.export({ format: "jwk" }), kid: "k1", alg: "RS256" } as JWK;
  let server: Server;
  let issuer = "";
  beforeAll(async () => {
    server = createServer((request, response) => {
      response.setHeader("content-type", "application/json");
      response.statusCode = request.url === "/.well-known/jwks.json" ? 200 : 404;
      response.end(JSON.stringify({ keys: [publicJwk] }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    issuer = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const sign = async (
    claims: object,
    rest: { issuer?: string; audience?: string; key?: JWK } = {},
  ): Promise<string> =>
    new SignJWT({ tenant: "acme", roles: ["approver", "owner"], ...claims })
      .setProtectedHeader({ alg: "RS256", kid: "k1" })
      .setIssuer(rest.issuer ?? issuer)
      .setAudience(rest.audience ?? "fabric-api")
      .setSubject("jane")
      .setIssuedAt(startMs / 1000)
      .setExpirationTime(startMs / 1000 + 60)
      .sign(await importJWK(rest.key ?? privateJwk, "RS256"));

  it("are verified with the issuer's published keys", async () => {
    const one = createAuthenticator({
      localKeys: [],
      oidc: [{ issuer, audience: "fabric-api" }],
      clock: clockAt(startMs),
    });
    expect(await one.authenticate(await sign({}))).toEqual({
      tenantId: "acme",
      subject: "jane",
      roles: ["approver"],
      issuer,
    });
  });

  it("are refused with one code for another audience, issuer, key or claim", async () => {
    const one = createAuthenticator({
      localKeys: newAuthKeys().verification,
      oidc: [{ issuer, audience: "fabric-api" }],
      clock: clockAt(startMs),
    });
    const foreign = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
      format: "jwk",
    }) as JWK;
    const tokens = [
      await sign({}, { audience: "another" }),
      await sign({}, { issuer: "https://elsewhere.example" }),
      await sign({}, { issuer: "fabric:local" }),
      await sign({}, { key: { ...foreign, alg: "RS256" } }),
      await sign({ tenant: 7 }),
    ];
    for (const token of tokens) {
      await expect(one.authenticate(token)).rejects.toMatchObject({ code: "TOKEN_INVALID" });
    }
  });
});
