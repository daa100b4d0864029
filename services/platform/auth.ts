import type { JWK, JWTPayload, JWTVerifyGetKey } from "jose";
import { SignJWT, createLocalJWKSet, createRemoteJWKSet, errors, importJWK, jwtVerify } from "jose";
import { Fault } from "../../schemas/faults.ts";
import type { Clock } from "./clock.ts";

/** Roles that a token can carry; every route names the ones it takes. */
export const roles = [
  "runtime",
  "resource",
  "reporter",
  "approver",
  "incident",
  "sre",
  "analyst",
  "auditor",
  "admin",
] as const;
export type Role = (typeof roles)[number];

/** Who calls. The tenant is the token's, never the payload's. */
export interface Caller {
  readonly tenantId: string;
  readonly subject: string;
  readonly roles: readonly Role[];
  /** What vouches for the caller. */
  readonly issuer: string;
}

/** Turns a bearer token into a caller. Throws TOKEN_INVALID, the same for every cause. */
export interface Authenticator {
  authenticate(token: string): Promise<Caller>;
}

/** A public key that signs tokens of one machine, and the roles that it can vouch for at most; and for whom, if not for all. */
export interface LocalVerificationKey {
  readonly jwk: JWK;
  readonly roles: readonly Role[];
  readonly subjects?: readonly string[] | undefined;
}
export interface OidcIssuer {
  readonly issuer: string;
  readonly audience: string;
  /** Default: `<issuer>/.well-known/jwks.json`. */
  readonly jwksUrl?: string;
  /** Claims that hold tenant and roles. */
  readonly tenantClaim?: string;
  readonly rolesClaim?: string;
}
export interface AuthOptions {
  readonly localKeys: readonly LocalVerificationKey[];
  readonly oidc?: readonly OidcIssuer[];
  readonly clock: Clock;
}

/** The issuer of tokens that one machine makes for itself. */
export const localIssuer = "fabric:local";
const audience = "fabric";
const tenantPattern = /^[a-z0-9-]{1,64}$/;
/** Difference between two machines' clocks that an expiry forgives. */
const clockToleranceSeconds = 5;
/** A verified token is believed this long without a new look at its signature, and never past its expiry. */
const verifiedForMs = 60_000;
const verifiedMaxTokens = 1_000;
/** Signatures that OIDC providers use; symmetric ones and `none` never count. */
const oidcAlgorithms = ["RS256", "PS256", "ES256", "ES384", "EdDSA"];

interface Verifier {
  readonly keys: JWTVerifyGetKey;
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: string[];
  readonly tenantClaim: string;
  readonly rolesClaim: string;
  allowedRoles(kid: string | undefined, subject: string): readonly Role[];
}

/** Makes the authenticator of a process: local keys, and OIDC issuers when configured. */
export function createAuthenticator(options: AuthOptions): Authenticator {
  const verifiers = new Map<string, Verifier>();
  if (options.localKeys.length > 0) {
    const ofKey = new Map(options.localKeys.map((one) => [one.jwk.kid, one]));
    verifiers.set(localIssuer, {
      keys: createLocalJWKSet({ keys: options.localKeys.map(({ jwk }) => jwk) }),
      issuer: localIssuer,
      audience,
      algorithms: ["EdDSA"],
      tenantClaim: "tenant",
      rolesClaim: "roles",
      allowedRoles: (kid, subject) => {
        const key = ofKey.get(kid);
        return key === undefined || key.subjects?.includes(subject) === false ? [] : key.roles;
      },
    });
  }
  for (const one of options.oidc ?? []) {
    const jwksUrl = one.jwksUrl ?? `${one.issuer.replace(/\/$/, "")}/.well-known/jwks.json`;
    verifiers.set(one.issuer, {
      keys: createRemoteJWKSet(new URL(jwksUrl), { timeoutDuration: 3_000 }),
      issuer: one.issuer,
      audience: one.audience,
      algorithms: oidcAlgorithms,
      tenantClaim: one.tenantClaim ?? "tenant",
      rolesClaim: one.rolesClaim ?? "roles",
      allowedRoles: () => roles,
    });
  }
  // Verifying costs more than deciding: 130 µs against 45.
  const verified = new Map<string, Verified>();
  return {
    async authenticate(token) {
      const nowMs = options.clock.nowMs();
      const known = verified.get(token);
      if (known !== undefined && nowMs < known.untilMs) return known.caller;
      verified.delete(token);
      try {
        const fresh = await verify(token, verifiers, nowMs);
        if (verified.size >= verifiedMaxTokens) verified.clear();
        verified.set(token, fresh);
        return fresh.caller;
      } catch (error) {
        if (error instanceof Fault) throw error;
        // One answer for a wrong signature, an expired token and an unknown key: the caller learns nothing.
        throw new Fault("TOKEN_INVALID", undefined, { cause: error });
      }
    },
  };
}

interface Verified {
  readonly caller: Caller;
  readonly untilMs: number;
}

async function verify(
  token: string,
  verifiers: ReadonlyMap<string, Verifier>,
  nowMs: number,
): Promise<Verified> {
  const verifier = verifiers.get(claimedIssuer(token));
  if (verifier === undefined) throw new errors.JWTInvalid("unknown issuer");
  const { payload, protectedHeader } = await jwtVerify(token, verifier.keys, {
    issuer: verifier.issuer,
    audience: verifier.audience,
    algorithms: verifier.algorithms,
    currentDate: new Date(nowMs),
    clockTolerance: clockToleranceSeconds,
    requiredClaims: ["exp", "sub"],
  });
  const tenantId = payload[verifier.tenantClaim];
  if (typeof tenantId !== "string" || !tenantPattern.test(tenantId)) throw new errors.JWTInvalid("no tenant");
  const claimed = payload[verifier.rolesClaim];
  const allowed = verifier.allowedRoles(protectedHeader.kid, payload.sub ?? "");
  const held = roles.filter(
    (role) => Array.isArray(claimed) && claimed.includes(role) && allowed.includes(role),
  );
  return {
    caller: { tenantId, subject: payload.sub ?? "", roles: held, issuer: verifier.issuer },
    untilMs: Math.min((payload.exp ?? 0) * 1000, nowMs + verifiedForMs),
  };
}

/** The issuer that a token names, unverified: it only chooses who verifies. */
function claimedIssuer(token: string): string {
  const part = token.split(".")[1];
  if (part === undefined || token.length > 8_192) throw new errors.JWTInvalid("not a compact token");
  const payload = JSON.parse(Buffer.from(part, "base64url").toString("utf8")) as JWTPayload;
  return typeof payload.iss === "string" ? payload.iss : "";
}

export interface LocalToken {
  readonly tenantId: string;
  readonly subject: string;
  readonly roles: readonly Role[];
  readonly lifetimeSeconds: number;
  /** The private Ed25519 key, with its `kid`. */
  readonly privateKey: JWK;
  readonly clock: Clock;
}

/** Signs a token for this machine: a compact JWS with EdDSA. */
export async function issueLocalToken(token: LocalToken): Promise<string> {
  const key = await importJWK(token.privateKey, "EdDSA");
  const nowSeconds = Math.floor(token.clock.nowMs() / 1000);
  return new SignJWT({ tenant: token.tenantId, roles: [...token.roles] })
    .setProtectedHeader({ alg: "EdDSA", kid: token.privateKey.kid ?? "", typ: "JWT" })
    .setIssuer(localIssuer)
    .setAudience(audience)
    .setSubject(token.subject)
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + token.lifetimeSeconds)
    .sign(key);
}
