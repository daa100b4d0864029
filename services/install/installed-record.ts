import { z } from "zod";
import { readText } from "./config-files.ts";

const recordSchema = z.object({
  runtime: z.string(),
  form: z.enum(["http", "shell", "node", "plugin"]),
  gateUrl: z.string(),
  program: z.string(),
  clientVersion: z.string(),
  adapterVersion: z.string(),
  configurationHash: z.string(),
  installedAt: z.string(),
  /** Absent in records of before: none. */
  approvalWaitMs: z.number().int().nonnegative().default(0),
  /** Of a library; null: none was given. */
  packagesDir: z.string().nullable().default(null),
  /** What stood in each file of the client before, for an undo to the byte; `digest`: of what was written. */
  files: z.array(z.object({ path: z.string(), before: z.string().nullable(), digest: z.string() })),
});
/** What was installed for a runtime: kept in our folder, mode 0600, since it quotes the client's files. */
export type InstalledRecord = z.output<typeof recordSchema>;

export const recordPath = (fabricDir: string): string => `${fabricDir}/installed.json`;

/** The record of a runtime; null where nothing is installed, or where it cannot be understood. */
export async function readRecord(fabricDir: string): Promise<InstalledRecord | null> {
  const text = await readText(recordPath(fabricDir));
  if (text === null) return null;
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
