import { readFile } from "node:fs/promises";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { AuthKeys } from "../platform/auth-keys.ts";
import { loadAuthKeysFile, newAuthKeys } from "../platform/auth-keys.ts";
import { budgetReporter } from "../platform/budget-reporter.ts";
import { loadOwnerOnlyJson } from "../platform/owner-only-file.ts";
import { writeAtomically } from "../stack/state.ts";
import { writeSecretOnce } from "./local-settings.ts";

const fileSchema = z.strictObject({
  signing: z.looseObject({ kty: z.literal("OKP"), kid: z.string().min(1), d: z.string().min(1) }),
  jwk: z.looseObject({ kty: z.literal("OKP"), kid: z.string().min(1) }),
});

/**
 * Makes the key of this machine's watch over spending, once, and tells the gate of it. It vouches for the watch alone, which
 * tells how budgets stand and nothing else: no agent that reads it can lift a freeze by it.
 */
export async function createWatchKey(watchKeyFile: string, authKeysFile: string): Promise<void> {
  await writeSecretOnce(watchKeyFile, () => {
    const { signing, verification } = newAuthKeys();
    return `${JSON.stringify({ signing, jwk: verification[0]?.jwk }, null, 2)}\n`;
  });
  const { jwk } = await loadFile(watchKeyFile);
  const known = await loadAuthKeysFile(authKeysFile);
  if (known.verification.some((one) => one.jwk.kid === jwk.kid)) return;
  const added = { jwk, roles: ["reporter"], subjects: [budgetReporter] };
  const all = { ...known, verification: [...known.verification, added] };
  await writeAtomically(authKeysFile, `${JSON.stringify(all, null, 2)}\n`, 0o600);
}

/** The private half, to sign tokens of the watch with. */
export async function loadWatchKey(watchKeyFile: string): Promise<AuthKeys["signing"]> {
  await readFile(watchKeyFile).catch((error: unknown) => {
    throw new Fault("USAGE", "this machine's watch has no key yet; `fabric up` makes it", { cause: error });
  });
  return (await loadFile(watchKeyFile)).signing;
}

async function loadFile(watchKeyFile: string): Promise<z.output<typeof fileSchema>> {
  const parsed = fileSchema.safeParse(await loadOwnerOnlyJson(watchKeyFile));
  if (!parsed.success) throw new Fault("CONFIG_INVALID", `\`${watchKeyFile}\` is not a key of \`fabric up\``);
  return parsed.data;
}
