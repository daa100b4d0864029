import { randomBytes } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { KeyEncryptionKey } from "../platform/vault-seal.ts";
import { openMemoryKek } from "../platform/vault-seal.ts";

const kekFileSchema = z.strictObject({
  kek_id: z.string().min(1).max(64),
  key: z.base64().length(44),
});

/** Others than the owner may do nothing with the file. */
const othersBits = 0o077;

/** Makes a local key-encryption key with mode 0600; a file that is there already stays as it is. */
export async function createKekFile(path: string): Promise<void> {
  const key = { kek_id: `local-${randomBytes(4).toString("hex")}`, key: randomBytes(32).toString("base64") };
  try {
    await writeFile(path, `${JSON.stringify(key, null, 2)}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
    throw new Fault("KEY_UNAVAILABLE", `\`${path}\` cannot be written`, { cause: error });
  }
}

/** Reads it; refuses a file that others may read. Without this key no evidence can be opened again. */
export async function loadKekFile(path: string): Promise<KeyEncryptionKey> {
  let text: string;
  try {
    const { mode } = await stat(path);
    if ((mode & othersBits) !== 0)
      throw new Error(`its mode is ${(mode & 0o777).toString(8)}; run chmod 600`);
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new Fault(
      "KEY_UNAVAILABLE",
      `\`${path}\`: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    );
  }
  const parsed = kekFileSchema.safeParse(parseJson(text));
  // The parser's message could quote the key.
  if (!parsed.success) throw new Fault("KEY_UNAVAILABLE", `\`${path}\` is not a key file of \`fabric up\``);
  return openMemoryKek(parsed.data.kek_id, Buffer.from(parsed.data.key, "base64"));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
