import {
  addToTally,
  emptyTally,
  formulas,
  toMetrics,
  toShouldRefuse,
} from "../../processors/eval/metrics.ts";
import type { Metrics, Tally } from "../../processors/eval/metrics.ts";
import type { EpisodeRow } from "../../processors/eval/queries.ts";
import { listEpisodes, readEpisodes } from "../../processors/eval/queries.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { datasetFormats } from "../exporters/eval/dataset-writer.ts";
import { exportDataset } from "../exporters/eval/export-dataset.ts";
import { splitNames, toShares } from "../exporters/eval/splits.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import type { Database } from "../platform/postgres.ts";
import { readExpectedTools, readScoredEpisodes } from "./eval-files.ts";
import { toUntilMs } from "./eval-until.ts";
import { serviceDatabase } from "./wiring.ts";

type EvalActions = Pick<Actions, "evalList" | "evalExport" | "evalMetrics">;

/** A cut sorts every episode of a tenant: minutes, on years of data. */
const statementTimeoutMs = 30 * 60_000;
const states: readonly EpisodeRow["state"][] = ["completed", "failed", "interrupted", "open"];

/** `fabric eval list`, `export` and `metrics`: reading as the auditor. */
export function evalActions(configOf: (common: Common) => Promise<Config>): EvalActions {
  async function withAuditor<T>(common: Common, work: (database: Database) => Promise<T>): Promise<T> {
    const config = await configOf(common);
    const database = serviceDatabase(config, "auditor", { maxConnections: 1, statementTimeoutMs });
    try {
      return await work(database);
    } finally {
      await database.end();
    }
  }
  return {
    evalList: (common, { tenant, state, limit }) =>
      withAuditor(common, async (database) => {
        const rows = await listEpisodes(database, { tenantId: tenant ?? null, state: state ?? null, limit });
        const text = toTable(
          [
            "EPISODE",
            "TENANT",
            "STARTED",
            "STATE",
            "CALLS",
            "DENIED",
            "FAILED",
            "RECOVERED",
            "LABELS",
            "GOAL",
          ],
          rows.map((row) => [
            row.episode_id,
            row.tenant_id,
            row.started_at.toISOString().slice(0, 19).replace("T", " "),
            row.state,
            String(row.calls),
            String(row.denied),
            String(row.failed),
            row.stumbles === 0 ? "-" : `${String(row.recoveries)}/${String(row.stumbles)}`,
            row.labels.join(" ") || "-",
            toLine(row.goal ?? "-"),
          ]),
          common.screen.columns,
        );
        return { json: rows, text: rows.length === 0 ? "no episodes" : text };
      }),
    async evalExport(common, { out, format, tenant, until, state, onlyLabelled, split, shares, seed }) {
      const definition = {
        tenantId: tenant ?? null,
        untilMs: toUntilMs(until, systemClock.nowMs()),
        state: state === undefined ? null : oneOf(states, state, "state"),
        onlyLabelled,
        shares: toShares(shares),
        seed,
      };
      const manifest = await withAuditor(common, (database) =>
        exportDataset(database, {
          definition,
          format: oneOf(datasetFormats, format, "format"),
          dir: out,
          split: split === undefined ? null : oneOf(splitNames, split, "split"),
          signal: common.signal,
          onProgress: (done, of) => {
            if (common.screen.isWatched === true)
              common.screen.progress(`${String(done)} of ${String(of)} episodes`);
          },
        }),
      );
      const files = toTable(
        ["FILE", "ROWS"],
        manifest.files.map((file) => [file.name, String(file.rows)]),
        common.screen.columns,
      );
      const what = `version ${manifest.version}, ${String(manifest.rows)} episodes in ${String(manifest.leakage_groups)} groups, as recorded until ${manifest.until}`;
      return { json: manifest, text: `${files}\n\n${what}` };
    },
    async evalMetrics(common, { tenant, until, expected, file }) {
      if (file !== undefined && (tenant !== undefined || until !== undefined || expected !== undefined))
        throw new Fault("USAGE", "`--file` scores that file alone; leave the other options out");
      const tally =
        file === undefined
          ? await tallyDatabase(common, tenant, until, expected)
          : (await readScoredEpisodes(file)).reduce(addToTally, emptyTally);
      const metrics = toMetrics(tally);
      return { json: { ...metrics, formulas }, text: renderMetrics(common.screen, metrics) };
    },
  };

  async function tallyDatabase(
    common: Common,
    tenant: string | undefined,
    until: string | undefined,
    expectedFile: string | undefined,
  ): Promise<Tally> {
    const expected = expectedFile === undefined ? null : await readExpectedTools(expectedFile);
    const cut = { tenantId: tenant ?? null, untilMs: toUntilMs(until, systemClock.nowMs()) };
    return withAuditor(common, (database) =>
      database.transaction(async (tx) => {
        await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
        let tally = emptyTally;
        for await (const page of readEpisodes(tx, cut)) {
          common.signal.throwIfAborted();
          for (const { episode_id, steps, labels } of page) {
            const shouldRefuse = toShouldRefuse(labels.map((one) => one.label));
            tally = addToTally(tally, {
              steps,
              expectedTools: expected?.get(episode_id) ?? null,
              shouldRefuse,
            });
          }
        }
        return tally;
      }),
    );
  }
}

const names: Readonly<Record<keyof typeof formulas, string>> = {
  toolChoice: "tool choice",
  refusalPrecision: "refusal precision",
  refusalRecall: "refusal recall",
  recovery: "recovery",
};

function renderMetrics(screen: Screen, metrics: Metrics): string {
  const keys = Object.keys(names) as (keyof typeof formulas)[];
  const table = toTable(
    ["METRIC", "VALUE", "FROM"],
    keys.map((key) => {
      const { value, numerator, denominator } = metrics[key];
      return [
        names[key],
        value === null ? "-" : value.toFixed(4),
        `${String(numerator)}/${String(denominator)}`,
      ];
    }),
    screen.columns,
  );
  const legend = keys.map((key) => `${names[key]} = ${formulas[key]}`).join("\n");
  return `${String(metrics.episodes)} episodes\n\n${table}\n\n${legend}`;
}

const lineMaxChars = 60;

/** A prompt has lines and may be long; a row has room for its beginning. */
function toLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= lineMaxChars ? line : `${line.slice(0, lineMaxChars - 1)}…`;
}

function oneOf<T extends string>(known: readonly T[], text: string, what: string): T {
  const found = known.find((one) => one === text);
  if (found === undefined) throw new Fault("USAGE", `\`${text}\` is no ${what}; ${known.join(", ")} are`);
  return found;
}
