import type { KeyObject } from "node:crypto";
import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { z } from "zod";
import type { CapabilityKeys, PublicJwk } from "./capability-keys.ts";
import type { CapabilityClaims } from "./claims.ts";
import { claimsSchema } from "./claims.ts";

/** The set of public keys, as `/.well-known/jwks.json` answers it. */
export interface Jwks {
  readonly keys: readonly (PublicJwk & { readonly alg: "EdDSA"; readonly use: "sig" })[];
}

/** Signs rights, and reads what it signed. */
export interface CapabilitySigner {
  /** A compact JWS with EdDSA. Deterministic: the same claims give the same token. */
  sign(claims: CapabilityClaims): string;
  /** The claims of a token of one of our keys; null: it is none, whatever the cause. Says nothing of its time. */
  read(token: string): CapabilityClaims | null;
  jwks(): Jwks;
}

/** Explicit typing (RFC 8725, 3.11): no token of another kind is taken for a right. */
const tokenType = "fabric-capability+jwt";
/** Longest token that is read: a right's limits may list paths. */
export const tokenMaxChars = 65_536;
const signatureBytes = 64;
const base64url = /^[A-Za-z0-9_-]+$/;

/** Exactly what we write: no `crit`, no key of the token's own. */
const headerSchema = z.strictObject({ alg: z.literal("EdDSA"), typ: z.literal(tokenType), kid: z.string() });

/** Makes the signer of a process. Keys are parsed once; a signature costs some tens of microseconds. */
export function createCapabilitySigner(keys: CapabilityKeys): CapabilitySigner {
  const privateKey = createPrivateKey({ key: keys.signing, format: "jwk" });
  const publicKeys = new Map<string, KeyObject>(
    keys.published.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: "jwk" })]),
  );
  const header = encode({ alg: "EdDSA", typ: tokenType, kid: keys.signing.kid });
  const published: Jwks = {
    keys: keys.published.map(({ kty, crv, x, kid }) => ({ kty, crv, x, kid, alg: "EdDSA", use: "sig" })),
  };
  return {
    sign(claims) {
      const signed = `${header}.${encode(claims)}`;
      return `${signed}.${sign(null, Buffer.from(signed, "latin1"), privateKey).toString("base64url")}`;
    },
    read(token) {
      if (token.length > tokenMaxChars) return null;
      const parts = token.split(".");
      const [head, body, signature] = parts;
      if (parts.length !== 3 || head === undefined || body === undefined || signature === undefined)
        return null;
      if (!parts.every((part) => base64url.test(part))) return null;
      const parsed = headerSchema.safeParse(decode(head));
      const publicKey = parsed.success ? publicKeys.get(parsed.data.kid) : undefined;
      if (publicKey === undefined) return null;
      const bytes = Buffer.from(signature, "base64url");
      // One spelling for one signature: spare bits at its end are no second token.
      if (bytes.length !== signatureBytes || bytes.toString("base64url") !== signature) return null;
      if (!verify(null, Buffer.from(`${head}.${body}`, "latin1"), publicKey, bytes)) return null;
      const claims = claimsSchema.safeParse(decode(body));
      return claims.success ? claims.data : null;
    },
    jwks: () => published,
  };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value), "utf8").toString("base64url");
}

function decode(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, "base64url").toString("utf8")) as unknown;
  } catch {
    return undefined;
  }
}
