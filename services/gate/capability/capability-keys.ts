import { createHash, generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { z } from "zod";
import { Fault } from "../../../schemas/faults.ts";
import { loadOwnerOnlyJson } from "../../platform/owner-only-file.ts";

const publicJwkSchema = z.object({
  kty: z.literal("OKP"),
  crv: z.literal("Ed25519"),
  x: z.base64url().length(43),
  kid: z.string().regex(/^[A-Za-z0-9_-]{8,64}$/),
});
const keysFileSchema = z
  .strictObject({
    /** Signs every new right. */
    signing: publicJwkSchema.extend({ d: z.base64url().length(43) }),
    /** Published: the signing key's own half, those of earlier keys while their rights live, and of the next key. */
    published: z.array(publicJwkSchema).min(1).max(16),
  })
  .refine(
    ({ signing, published }) => published.some((one) => one.kid === signing.kid && one.x === signing.x),
    {
      message: "`published` does not hold the public half of `signing`",
    },
  )
  .refine(({ published }) => new Set(published.map((one) => one.kid)).size === published.length, {
    message: "two published keys have the same `kid`",
  });

/** A public Ed25519 key as resource services read it. */
export type PublicJwk = z.output<typeof publicJwkSchema>;
/** The gate's own keys for rights; never the keys that tokens of people and runtimes are signed with. */
export type CapabilityKeys = z.output<typeof keysFileSchema>;

/** Makes a signing key; `earlier` keys stay published, so that rights that they signed still verify. */
export function newCapabilityKeys(earlier: readonly PublicJwk[] = []): CapabilityKeys {
  const pair = generateKeyPairSync("ed25519");
  const kid = createHash("sha256")
    .update(pair.publicKey.export({ type: "spki", format: "der" }))
    .digest("base64url")
    .slice(0, 16);
  const { x = "", d = "" } = pair.privateKey.export({ format: "jwk" });
  const jwk = { kty: "OKP", crv: "Ed25519", x, kid } as const;
  return { signing: { ...jwk, d }, published: [jwk, ...earlier] };
}

/** Writes new keys with mode 0600; a file that is there already stays as it is. */
export async function createCapabilityKeysFile(path: string): Promise<void> {
  try {
    await writeFile(path, `${JSON.stringify(newCapabilityKeys(), null, 2)}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
    throw new Fault("CONFIG_INVALID", `\`${path}\` cannot be written`, { cause: error });
  }
}

/** Reads them; refuses a file that others may read. */
export async function loadCapabilityKeysFile(path: string): Promise<CapabilityKeys> {
  const parsed = keysFileSchema.safeParse(await loadOwnerOnlyJson(path));
  if (parsed.success) return parsed.data;
  const [first] = parsed.error.issues;
  const where = first === undefined ? "" : `: ${first.path.map(String).join(".") || "it"}, ${first.message}`;
  throw new Fault("CONFIG_INVALID", `\`${path}\` is no file of capability keys${where}`);
}
