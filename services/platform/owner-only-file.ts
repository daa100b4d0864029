import { readFile, stat } from "node:fs/promises";
import { Fault } from "../../schemas/faults.ts";

/** Others than the owner may do nothing with the file. */
const othersBits = 0o077;

/**
 * Reads a JSON file of keys. Throws CONFIG_INVALID when others may read it, or when it is no JSON; no message quotes what
 * is in it.
 */
export async function loadOwnerOnlyJson(path: string): Promise<unknown> {
  try {
    const { mode } = await stat(path);
    if ((mode & othersBits) !== 0) throw new Error("others may read it; run chmod 600");
    return JSON.parse(await readFile(path, "utf8")) as unknown;
  } catch (error) {
    // A parser's message could quote the key.
    const why =
      error instanceof SyntaxError ? "it is not JSON" : error instanceof Error ? error.message : "unreadable";
    throw new Fault("CONFIG_INVALID", `\`${path}\`: ${why}`);
  }
}
