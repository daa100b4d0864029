import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { composeSchema } from "../../schemas/compose.ts";
import { emitSources } from "../../schemas/emit-sources.ts";
import { emitTypes } from "../../schemas/emit-types.ts";
import { toAsyncapi } from "./asyncapi.ts";
import type { SchemaSources } from "./sources.ts";
import { loadSources } from "./sources.ts";

/** What generating did, or would do: file names inside `schemas/generated`. */
export interface GenerateReport {
  /** Files that differ from what the sources make, are missing, or belong to no source any more. */
  readonly stale: readonly string[];
  readonly written: boolean;
}

/** File name → content, from the sources alone: the same sources always make the same bytes. */
export function toGeneratedFiles(sources: SchemaSources): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [type, summary] of sources.summaries) {
    const schema = composeSchema(type, sources.envelope, summary, sources.shared);
    files.set(`${type}.avsc`, `${JSON.stringify(schema, null, 2)}\n`);
  }
  files.set("types.ts", emitTypes(sources.envelope, sources.shared, sources.summaries));
  files.set("sources.ts", emitSources(sources.envelope, sources.shared, sources.summaries));
  files.set("asyncapi.yaml", toAsyncapi(sources));
  return files;
}

/** Names of the files in `schemas/generated` that are not what the sources make. */
export async function generatedFilesStale(folder: string, sources: SchemaSources): Promise<string[]> {
  const target = join(folder, "generated");
  const files = toGeneratedFiles(sources);
  const present = await readdir(target).catch(() => [] as string[]);
  const stale = present.filter((name) => !files.has(name));
  for (const [name, content] of files) {
    const before = present.includes(name) ? await readFile(join(target, name), "utf8") : null;
    if (before !== content) stale.push(name);
  }
  return stale.sort();
}

/** Writes `schemas/generated`; with `check` it writes nothing and lists what is stale. */
export async function generateSchemas(
  folder: string,
  options: { readonly check?: boolean } = {},
): Promise<GenerateReport> {
  const sources = await loadSources(folder);
  const stale = await generatedFilesStale(folder, sources);
  if (options.check === true) return { stale, written: false };
  const target = join(folder, "generated");
  await mkdir(target, { recursive: true });
  const files = toGeneratedFiles(sources);
  for (const name of stale) {
    const content = files.get(name);
    if (content === undefined) await rm(join(target, name));
    else await writeFile(join(target, name), content);
  }
  return { stale, written: true };
}

/** For a person. */
export function renderGenerate(report: GenerateReport): string {
  if (report.stale.length === 0) return "schemas/generated is up to date\n";
  const list = report.stale.map((name) => `  ${name}\n`).join("");
  return report.written
    ? `wrote schemas/generated:\n${list}`
    : `schemas/generated is stale, run \`fabric schema generate\`:\n${list}`;
}
