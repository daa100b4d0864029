import { basename } from "node:path";
import type { AvroRecord } from "../../schemas/avro-json.ts";
import { catalog, eventTypes } from "../../schemas/catalog.ts";
import { composeSchema, toRecordName } from "../../schemas/compose.ts";
import { lintSchema, lintSummary, lintTopicName } from "../../schemas/lint.ts";
import type { HistoricVersion } from "../../schemas/lint-history.ts";
import { lintHistory, withoutDocs } from "../../schemas/lint-history.ts";
import { whyUnresolvable } from "../platform/avro-resolution.ts";
import { generatedFilesStale } from "./generate.ts";
import { loadHistory } from "./history.ts";
import type { SchemaSources } from "./sources.ts";
import { loadSources } from "./sources.ts";

/** One thing that is wrong with the contracts. */
export interface ContractFinding {
  readonly file: string;
  readonly path: string;
  readonly rule: string;
  readonly text: string;
}

/** What `fabric schema check` says; no findings: all is well. */
export interface CheckReport {
  readonly types: number;
  readonly versions: number;
  readonly findings: readonly ContractFinding[];
}

/** Lint, full compatibility with every version in the history, and staleness of what is generated. Reads only. */
export async function checkSchemas(folder: string): Promise<CheckReport> {
  const [sources, history] = await Promise.all([loadSources(folder), loadHistory(folder)]);
  const findings: ContractFinding[] = [...lintSources(sources), ...judgeHistory(sources, history)];
  for (const name of await generatedFilesStale(folder, sources)) {
    findings.push({
      file: `generated/${name}`,
      path: "",
      rule: "stale",
      text: "it differs from what the sources make: run `fabric schema generate`",
    });
  }
  const versions = [...history.values()].reduce((sum, list) => sum + list.length, 0);
  return { types: sources.summaries.size, versions, findings };
}

/** The rules of `schemas/lint.ts` on every hand-written file and topic name. */
export function lintSources(sources: SchemaSources): ContractFinding[] {
  const defined = new Set<string>();
  return [
    ...sources.shared.flatMap((one) => lintSchema("shared.avsc", one, defined)),
    ...lintSchema("envelope.avsc", sources.envelope, defined),
    ...[...sources.summaries].flatMap(([type, summary]) => {
      const file = `events/${type}.avsc`;
      return [
        ...lintTopicName(type),
        ...lintSummary(file, type, summary, `${toRecordName(type)}Summary`),
        ...lintSchema(file, summary, defined),
      ];
    }),
  ];
}

/** Every current schema against every version that was ever registered. */
export function judgeHistory(
  sources: SchemaSources,
  history: ReadonlyMap<string, readonly HistoricVersion[]>,
): ContractFinding[] {
  const findings: ContractFinding[] = [];
  for (const type of eventTypes) {
    const summary = sources.summaries.get(type);
    if (summary === undefined) continue;
    const current = composeSchema(type, sources.envelope, summary, sources.shared);
    const past = history.get(type) ?? [];
    const file = `events/${type}.avsc`;
    findings.push(...lintHistory(file, current, catalog[type].version, past));
    findings.push(...past.flatMap((version) => judgeCompatibility(file, current, version)));
    if (!past.some((one) => withoutDocs(one.schema) === withoutDocs(current))) {
      findings.push({
        file,
        path: "",
        rule: "not_in_history",
        text: `${type} ${catalog[type].version} is not in the history: run \`fabric schema generate --accept\``,
      });
    }
  }
  for (const type of history.keys()) {
    if (!sources.summaries.has(type))
      findings.push({
        file: `history/${basename(type)}`,
        path: "",
        rule: "type_removed",
        text: `${type} was registered once: keep its schema`,
      });
  }
  return findings;
}

/** FULL_TRANSITIVE, one step of it: each of two versions reads what the other wrote. */
function judgeCompatibility(file: string, current: AvroRecord, past: HistoricVersion): ContractFinding[] {
  const backward = whyUnresolvable(past.schema, current);
  const forward = whyUnresolvable(current, past.schema);
  const finding = (rule: string, text: string): ContractFinding => ({ file, path: "", rule, text });
  return [
    ...(backward === null
      ? []
      : [finding("backward", `records of ${past.version} cannot be read: ${backward}`)]),
    ...(forward === null
      ? []
      : [finding("forward", `a consumer at ${past.version} cannot read it: ${forward}`)]),
  ];
}

/** For a person. */
export function renderCheck(report: CheckReport): string {
  if (report.findings.length === 0)
    return `${report.types} schemas are good against ${report.versions} versions\n`;
  const lines = report.findings.map(
    ({ file, path, rule, text }) => `${file}${path === "" ? "" : `: ${path}`}: ${text} [${rule}]\n`,
  );
  return `${lines.join("")}${report.findings.length} findings\n`;
}
