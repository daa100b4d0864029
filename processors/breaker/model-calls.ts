import type { Transaction } from "../kit/transaction.ts";
import type { Counts, ModelReport, ScopeKey, Tally } from "./words.ts";
import { nothing, toStartedMs } from "./words.ts";

type Reported = Tally & { readonly report: ModelReport };

interface CallRow {
  readonly tenant_id: string;
  readonly call_key: string;
  readonly event_id: string;
  readonly silence: number;
  readonly recorded_at: Date;
  readonly scopes: readonly ScopeKey[];
  readonly cost_micros: bigint;
  readonly priced: bigint;
  readonly wait_ms: bigint;
}

/**
 * Of several reports of one model call one counts: the one that tells more, then the first recorded, as in the ledger.
 * Answers what is to be added, and what is to be taken back because a better report came.
 * INVARIANT: test/integration/breaker.test.ts "counts a model call once …".
 */
export async function settleReports(
  tx: Transaction,
  tallies: readonly Tally[],
): Promise<{ readonly added: readonly Tally[]; readonly takenBack: readonly Tally[] }> {
  const reported = tallies.filter((one): one is Reported => one.report !== null);
  if (reported.length === 0) return { added: tallies, takenBack: [] };
  const best = new Map<string, Reported>();
  for (const one of reported) {
    const known = best.get(keyOf(one.report));
    if (known === undefined || isBetter(one, known)) best.set(keyOf(one.report), one);
  }
  await holdCalls(tx, [...best.keys()]);
  const known = await loadCalls(tx, [...best.values()]);
  const winners = [...best].filter(([key, one]) => {
    const before = known.get(key);
    return before === undefined || isBetter(one, before);
  });
  await saveCalls(
    tx,
    winners.map(([, one]) => one),
  );
  return {
    added: [...tallies.filter((one) => one.report === null), ...winners.map(([, one]) => one)],
    takenBack: winners.flatMap(([key]) => {
      const before = known.get(key);
      return before === undefined ? [] : [{ ...before, counts: negate(before.counts) }];
    }),
  };
}

/** Two batches, such as one of the host and one of a redrive, do not settle one call at the same time. */
async function holdCalls(tx: Transaction, keys: readonly string[]): Promise<void> {
  await tx.query({
    name: "breaker-hold-calls",
    // 1651664234 names the class of these locks. In one order, so that two never wait for each other.
    text: `SELECT pg_advisory_xact_lock(1651664234, k.h)
      FROM (SELECT DISTINCT hashtext(current_schema() || '/' || key) AS h FROM unnest($1::text[]) AS key ORDER BY 1) AS k`,
    values: [keys],
  });
}

async function loadCalls(tx: Transaction, all: readonly Reported[]): Promise<ReadonlyMap<string, Reported>> {
  const found = await tx.query<CallRow>({
    name: "breaker-load-calls",
    text: `SELECT c.* FROM model_calls AS c
      JOIN unnest($1::text[], $2::text[]) AS k(tenant_id, call_key) USING (tenant_id, call_key)`,
    values: [all.map((one) => one.report.tenantId), all.map((one) => one.report.callKey)],
  });
  return new Map(
    found.rows.map((row) => {
      const report = {
        tenantId: row.tenant_id,
        callKey: row.call_key,
        eventId: row.event_id,
        silence: row.silence,
      };
      const recordedMs = row.recorded_at.getTime();
      const { cost_micros, priced, wait_ms } = row;
      const counts: Counts = { ...nothing, cost_micros, priced, wait_ms };
      return [
        keyOf(report),
        { report, scopes: row.scopes, startedMs: toStartedMs(recordedMs), recordedMs, counts },
      ];
    }),
  );
}

async function saveCalls(tx: Transaction, all: readonly Reported[]): Promise<void> {
  if (all.length === 0) return;
  const rows = all.map(({ report, recordedMs, scopes, counts }) => ({
    tenant_id: report.tenantId,
    call_key: report.callKey,
    event_id: report.eventId,
    silence: report.silence,
    recorded_at: new Date(recordedMs).toISOString(),
    scopes,
    cost_micros: counts.cost_micros.toString(),
    priced: counts.priced.toString(),
    wait_ms: counts.wait_ms.toString(),
  }));
  await tx.query({
    name: "breaker-save-calls",
    text: `INSERT INTO model_calls SELECT * FROM json_populate_recordset(NULL::model_calls, $1::json)
      ON CONFLICT (tenant_id, call_key) DO UPDATE SET event_id = excluded.event_id, silence = excluded.silence,
        recorded_at = excluded.recorded_at, scopes = excluded.scopes, cost_micros = excluded.cost_micros,
        priced = excluded.priced, wait_ms = excluded.wait_ms`,
    values: [JSON.stringify(rows)],
  });
}

function isBetter(one: Reported, other: Reported): boolean {
  if (one.report.silence !== other.report.silence) return one.report.silence < other.report.silence;
  if (one.recordedMs !== other.recordedMs) return one.recordedMs < other.recordedMs;
  return one.report.eventId < other.report.eventId;
}

/** Neither a tenant nor JSON has the sign between. */
function keyOf({ tenantId, callKey }: ModelReport): string {
  return `${tenantId}\n${callKey}`;
}

function negate(counts: Counts): Counts {
  return Object.fromEntries(
    Object.entries(counts).map(([name, count]) => [name, -(count as bigint)]),
  ) as unknown as Counts;
}
