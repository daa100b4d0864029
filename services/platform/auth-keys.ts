import { createHash, generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import type { JWK } from "jose";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { LocalVerificationKey } from "./auth.ts";
import { roles } from "./auth.ts";
import { loadOwnerOnlyJson } from "./owner-only-file.ts";

const jwkSchema = z.looseObject({
  kty: z.literal("OKP"),
  crv: z.literal("Ed25519"),
  x: z.string().min(1),
  kid: z.string().min(1),
});
const keysFileSchema = z.strictObject({
  /** Signs local tokens; they carry the roles below and no others. */
  signing: jwkSchema.extend({ d: z.string().min(1) }),
  verification: z
    .array(
      z.strictObject({
        jwk: jwkSchema,
        roles: z.array(z.enum(roles)).min(1),
        /** Whom the key vouches for; absent: everybody. */
        subjects: z.array(z.string().min(1)).min(1).optional(),
      }),
    )
    .min(1),
});

export interface AuthKeys {
  readonly signing: JWK;
  readonly verification: readonly LocalVerificationKey[];
}

/** Makes a key for tokens of the role runtime and nothing else. */
export function newAuthKeys(): AuthKeys {
  const pair = generateKeyPairSync("ed25519");
  const kid = createHash("sha256")
    .update(pair.publicKey.export({ type: "spki", format: "der" }))
    .digest("base64url")
    .slice(0, 16);
  const signing = { ...pair.privateKey.export({ format: "jwk" }), kid, alg: "EdDSA" } as JWK;
  const jwk = { ...pair.publicKey.export({ format: "jwk" }), kid, alg: "EdDSA" } as JWK;
  return { signing, verification: [{ jwk, roles: ["runtime"] }] };
}

/** Writes new keys with mode 0600; a file that is there already stays as it is. */
export async function createAuthKeysFile(path: string): Promise<void> {
  try {
    await writeFile(path, `${JSON.stringify(newAuthKeys(), null, 2)}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
    throw new Fault("CONFIG_INVALID", `\`${path}\` cannot be written`, { cause: error });
  }
}

/** Reads them; refuses a file that others may read. */
export async function loadAuthKeysFile(path: string): Promise<AuthKeys> {
  const parsed = keysFileSchema.safeParse(await loadOwnerOnlyJson(path));
  if (!parsed.success) throw new Fault("CONFIG_INVALID", `\`${path}\` is not a key file of \`fabric up\``);
  return parsed.data;
}
