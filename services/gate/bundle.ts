import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Bundle } from "./rules.ts";
import { bundleFiles, parseBundle } from "./rules-parse.ts";

/** Reads a bundle's folder; throws CONFIG_INVALID with every problem, each with file and line. */
export async function loadBundle(dir: string): Promise<Bundle> {
  const texts = new Map<string, string>();
  for (const file of bundleFiles) {
    try {
      texts.set(file, await readFile(join(dir, file), "utf8"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  const parsed = parseBundle(texts);
  if (parsed.ok) return parsed.bundle;
  const lines = parsed.problems.map(({ file, line, text }) => `${join(dir, file)}:${String(line)}: ${text}`);
  throw new Fault("CONFIG_INVALID", `the policy bundle is refused\n${lines.join("\n")}`);
}
