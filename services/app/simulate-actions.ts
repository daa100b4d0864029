import { readFile } from "node:fs/promises";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common, Recordings } from "../cli/actions.ts";
import type { Report } from "../cli/report.ts";
import type { Policy } from "../gate/policy/policy.ts";
import { durationMs } from "../gate/policy/duration.ts";
import { diffBundles } from "../gate/revisions/diff-bundles.ts";
import { loadRevision } from "../gate/revisions/revision-rows.ts";
import type { SimulationReport } from "../gate/simulate.ts";
import { simulate, toDifferences } from "../gate/simulate.ts";
import type { NeutralFacts, RecordedDecision, RecordedLine } from "../gate/simulate-record.ts";
import { toRecordedLine } from "../gate/simulate-record.ts";
import type { RecordedSource } from "../gate/simulate-source.ts";
import { loadRecordedDecision, readRecordedDecisions, readRecordedFile } from "../gate/simulate-source.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import type { Database } from "../platform/postgres.ts";
import { openTenantKeys } from "../platform/vault-seal.ts";
import { loadKekFile } from "../vault/kek-file.ts";
import { renderExplanation, toExplanation } from "./explain-text.ts";
import type { PolicyEngine } from "./policy-engine.ts";
import { findBundle, openPolicy, openPolicyEngine } from "./policy-engine.ts";
import { renderDifferences, renderSimulation } from "./simulate-text.ts";
import { serviceDatabase } from "./wiring.ts";

type SimulateActions = Pick<Actions, "policySimulate" | "policyExplain" | "policyDiff">;

/** `fabric policy simulate|explain|diff`: read what was recorded, and write nothing. */
export function simulateActions(configOf: (common: Common) => Promise<Config>): SimulateActions {
  return {
    policySimulate: (common, { bundle, details, recordings }) =>
      withRecords(common, configOf, async (records) => {
        const engine = await openPolicyEngine();
        const policy = await openPolicy(engine, bundle, records.database);
        const report = await runSimulation(engine, policy, records, recordings, details);
        return {
          json: report,
          text: renderSimulation(common.screen, report),
          exit: report.reproduced.different > 0 ? 1 : 0,
        };
      }),
    policyExplain: (common, { id, bundle, request }) =>
      bundle !== undefined && request !== undefined
        ? explainFile(common, bundle, request)
        : explainRecorded(common, configOf, id, bundle),
    policyDiff: (common, { before, after, simulate: isJudged, recordings }) =>
      withRecords(common, configOf, async (records) => {
        const [left, right] = [
          await findBundle(before, records.database),
          await findBundle(after, records.database),
        ];
        const differences = diffBundles(left.files, right.files);
        const text = [
          differences.length === 0
            ? "the bundles say the same"
            : renderDifferences(common.screen, differences),
        ];
        let report: SimulationReport | null = null;
        if (isJudged) {
          const engine = await openPolicyEngine();
          report = await runSimulation(
            engine,
            engine.judge.load(right),
            records,
            recordings,
            50,
            engine.judge.load(left),
          );
          text.push(renderSimulation(common.screen, report));
        }
        return {
          json: { differences, ...(report === null ? {} : { simulation: report }) },
          text: text.join("\n\n"),
          exit: differences.length > 0 ? 1 : 0,
        };
      }),
  };
}

/** The database with what was recorded; opened when it is asked for, so that a file needs none. */
interface Records {
  database(): Database;
  source(): Promise<RecordedSource>;
}

async function withRecords(
  common: Common,
  configOf: (common: Common) => Promise<Config>,
  work: (records: Records) => Promise<Report>,
): Promise<Report> {
  let opened: Database | null = null;
  let config: Config | null = null;
  // A configuration that is not there is a fault only when the database is wanted.
  const problem = await configOf(common).then(
    (found) => {
      config = found;
      return null;
    },
    (error: unknown) => error,
  );
  function known(): Config {
    if (config === null) throw problem;
    return config;
  }
  function database(): Database {
    opened ??= serviceDatabase(known(), "auditor", { maxConnections: 2 });
    return opened;
  }
  try {
    return await work({
      database,
      async source() {
        const { kekFile, environment } = known();
        const keys = kekFile === undefined ? null : openTenantKeys(database(), await loadKekFile(kekFile));
        return { database: database(), keys, environment };
      },
    });
  } finally {
    await (opened as Database | null)?.end();
  }
}

const fileFacts = (): NeutralFacts => ({
  nowMs: systemClock.nowMs(),
  tenantId: "local",
  environment: "development",
});

async function runSimulation(
  engine: PolicyEngine,
  policy: Policy,
  records: Records,
  recordings: Recordings,
  detailsMax: number,
  /** Judges anew what recordings were answered by; null: what was answered counts. */
  instead: Policy | null = null,
): Promise<SimulationReport> {
  const sinceMs = recordings.since === undefined ? null : toSince(recordings.since);
  const lines =
    recordings.file === undefined
      ? readRecordedDecisions(await records.source(), {
          sinceMs,
          tenantId: recordings.tenant ?? null,
          limit: recordings.limit ?? null,
        })
      : readRecordedFile(recordings.file, fileFacts());
  const known = new Map<string, Promise<Policy | null>>();
  return simulate(instead === null ? lines : answeredBy(lines, engine, instead), {
    policy,
    judge: engine.judgeRecord,
    detailsMax,
    policyOf(revision) {
      if (instead !== null) return Promise.resolve(instead);
      const loading =
        known.get(revision) ?? loadStored(engine, records, revision, recordings.file !== undefined);
      known.set(revision, loading);
      return loading;
    },
  });
}

/** The recordings, answered by another policy than the one that answered them. */
async function* answeredBy(
  lines: AsyncIterable<RecordedLine>,
  engine: PolicyEngine,
  policy: Policy,
): AsyncGenerator<RecordedLine> {
  for await (const line of lines) {
    if (line.kind === "unreadable") {
      yield line;
      continue;
    }
    const { decision, reason, matchedRules, planDigest } = engine.judgeRecord(line.record, policy);
    const answer = {
      decision,
      reason_code: reason,
      matched_rules: [...matchedRules],
      plan_digest: planDigest,
      policy_revision: policy.revision,
    };
    yield { kind: "decision", record: { ...line.record, answer } };
  }
}

async function loadStored(
  engine: PolicyEngine,
  records: Records,
  revision: string,
  isOfFile: boolean,
): Promise<Policy | null> {
  // A file may come from elsewhere: then no database has to be there.
  if (isOfFile || revision === "") return null;
  const stored = await loadRevision(records.database(), revision);
  try {
    return stored === null ? null : engine.judge.load(stored);
  } catch {
    return null;
  }
}

/** `7d`, or a time. UTC milliseconds. */
export function toSince(text: string): number {
  const span = durationMs.safeParse(text);
  if (span.success) return systemClock.nowMs() - span.data;
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) {
    throw new Fault(
      "USAGE",
      `\`${text}\` is no span such as 7d or 12h, and no time such as 2026-01-05T12:00:00Z`,
    );
  }
  return time;
}

async function explainFile(common: Common, bundle: string, file: string): Promise<Report> {
  const engine = await openPolicyEngine();
  const policy = await openPolicy(engine, bundle, () => {
    throw new Fault("USAGE", `\`${bundle}\` is no folder`);
  });
  let json: unknown;
  try {
    json = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw new Fault("USAGE", `\`${file}\` cannot be read as JSON`, { cause: error });
  }
  const given = json as { readonly request?: unknown; readonly facts?: unknown };
  const line = toRecordedLine(
    { decisionId: null, request: given.request ?? json, facts: given.facts ?? {}, answer: null },
    fileFacts(),
  );
  return explainLine(common, engine, line, policy);
}

async function explainRecorded(
  common: Common,
  configOf: (common: Common) => Promise<Config>,
  id: string | undefined,
  bundle: string | undefined,
): Promise<Report> {
  if (id === undefined) {
    throw new Fault("USAGE", "give a decision id or a tool call id, or --bundle DIR with --request FILE");
  }
  return withRecords(common, configOf, async (records) => {
    const line = await loadRecordedDecision(await records.source(), id, systemClock.nowMs());
    if (line === null) {
      return {
        json: null,
        text: `no decision is recorded under ${id}; give a decision id (dec_…) or the runtime's id of a call`,
        exit: 1,
      };
    }
    const engine = await openPolicyEngine();
    const revision = line.kind === "decision" ? (line.record.answer?.policy_revision ?? "") : "";
    const wanted = bundle ?? revision;
    const policy =
      bundle === undefined
        ? await loadStored(engine, records, revision, false)
        : await openPolicy(engine, bundle, records.database);
    if (policy === null) {
      throw new Fault(
        "POLICY_UNKNOWN",
        `\`${wanted}\` decided this, and is not stored or does not load any more; explain it by another one with --bundle`,
      );
    }
    return explainLine(common, engine, line, policy);
  });
}

function explainLine(common: Common, engine: PolicyEngine, line: RecordedLine, policy: Policy): Report {
  if (line.kind === "unreadable") throw new Fault("REQUEST_INVALID", line.why);
  const record: RecordedDecision = line.record;
  const ruling = engine.judgeRecord(record, policy);
  const isOther = record.answer !== null && record.answer.policy_revision !== policy.revision;
  const differs = record.answer === null ? [] : toDifferences(record.answer, ruling);
  const explanation = toExplanation(record, policy, ruling, { differs, isOther });
  return {
    json: explanation,
    text: renderExplanation(common.screen, explanation),
    exit: differs.length > 0 && !isOther ? 1 : 0,
  };
}
