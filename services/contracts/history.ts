import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AvroRecord } from "../../schemas/avro-json.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { catalog, eventTypes } from "../../schemas/catalog.ts";
import { composeSchema } from "../../schemas/compose.ts";
import { Fault } from "../../schemas/faults.ts";
import type { HistoricVersion } from "../../schemas/lint-history.ts";
import { compareVersions, withoutDocs } from "../../schemas/lint-history.ts";
import { loadJson, loadSources } from "./sources.ts";

/** Every version ever registered of each type, oldest first: `schemas/history/<type>/<version>.avsc`. */
export async function loadHistory(folder: string): Promise<ReadonlyMap<string, readonly HistoricVersion[]>> {
  const root = join(folder, "history");
  const entries = await readdir(root, { withFileTypes: true }).catch(() => []);
  const history = new Map<string, readonly HistoricVersion[]>();
  for (const entry of entries) {
    if (!entry.isDirectory()) continue;
    const files = (await readdir(join(root, entry.name))).filter((name) => /^\d+\.\d+\.avsc$/.test(name));
    const versions = await Promise.all(
      files.map(async (name) => ({
        version: name.slice(0, -".avsc".length),
        schema: (await loadJson(join(root, entry.name, name))) as AvroRecord,
      })),
    );
    history.set(
      entry.name,
      versions.sort((one, other) => compareVersions(one.version, other.version)),
    );
  }
  return history;
}

/** What accepting did. */
export interface AcceptReport {
  readonly accepted: readonly { readonly type: EventType; readonly version: string }[];
}

/**
 * Adds the current schema of each type to the history under its catalogue version. A version that is there already
 * never changes; a different schema under the same version is refused.
 */
export async function acceptHistory(folder: string): Promise<AcceptReport> {
  const [sources, history] = await Promise.all([loadSources(folder), loadHistory(folder)]);
  const accepted: { type: EventType; version: string }[] = [];
  for (const type of eventTypes) {
    const { version } = catalog[type];
    const summary = sources.summaries.get(type);
    if (summary === undefined) continue;
    const schema = composeSchema(type, sources.envelope, summary, sources.shared);
    const before = history.get(type)?.find((one) => one.version === version);
    if (before !== undefined) {
      if (withoutDocs(before.schema) !== withoutDocs(schema))
        throw new Fault(
          "SCHEMA_INCOMPATIBLE",
          `${type} ${version} is taken: raise the version in schemas/catalog.ts`,
        );
      continue;
    }
    const target = join(folder, "history", type);
    await mkdir(target, { recursive: true });
    await writeFile(join(target, `${version}.avsc`), `${JSON.stringify(schema, null, 2)}\n`, { flag: "wx" });
    accepted.push({ type, version });
  }
  return { accepted };
}

/** For a person. */
export function renderAccept(report: AcceptReport): string {
  if (report.accepted.length === 0) return "the history has every current schema\n";
  return report.accepted.map(({ type, version }) => `added ${type} ${version} to the history\n`).join("");
}
