import type { Transaction } from "../kit/transaction.ts";
import type { Spending } from "./budgets.ts";
import type { UsageRow } from "./usage-row.ts";
import { repricedCause, toDay, toldFirst } from "./usage-row.ts";
import type { Charge } from "./words.ts";

/** A change of what counts: a row came in, or went out because an earlier report of the same call came late. */
export interface Movement {
  readonly row: Spending;
  readonly sign: 1n | -1n;
}

/**
 * Adds rows and entries that are not there yet, and answers what counts now and did not before, and the other way round.
 * Of several rows of one call one counts: the first recorded of those that tell most. A repricing counts with the call that
 * it reprices: not where a better report took the call's place.
 * INVARIANT: the tables are the same whatever the order of arrival (test/property/cost.test.ts).
 */
export async function addCharges(tx: Transaction, all: readonly Charge[]): Promise<readonly Movement[]> {
  const charges = [...new Map(all.map((one) => [one.usage.event_id, one])).values()];
  const keyed = charges.filter(({ usage }) => usage.call_key !== null);
  await holdCalls(tx, keyed);
  const contested = keyed.length === 0 ? new Set<string>() : await findContested(tx, keyed);
  for (const { usage } of keyed) if (isRepricing(usage)) contested.add(keyOf(usage));
  const rows = charges.map(({ usage }) =>
    toColumns(usage, usage.call_key === null || !contested.has(keyOf(usage))),
  );
  const added = await tx.query<{ event_id: string; is_counted: boolean }>({
    name: "cost-add-usage",
    text: `INSERT INTO usage SELECT * FROM json_populate_recordset(NULL::usage, $1::json)
      ON CONFLICT (event_id) DO NOTHING RETURNING event_id, is_counted`,
    values: [JSON.stringify(rows)],
  });
  const entries = charges.flatMap((charge) => charge.entries);
  if (entries.length > 0) {
    await tx.query({
      name: "cost-add-entries",
      text: `INSERT INTO entries (event_id, line, account, amount_micros)
        SELECT * FROM unnest($1::text[], $2::smallint[], $3::text[], $4::bigint[])
        ON CONFLICT (event_id, line) DO NOTHING`,
      values: [
        entries.map((one) => one.event_id),
        entries.map((one) => one.line),
        entries.map((one) => clean(one.account)),
        entries.map((one) => one.amount_micros.toString()),
      ],
    });
  }
  const counted = new Set(added.rows.filter((row) => row.is_counted).map((row) => row.event_id));
  const movements: Movement[] = charges
    .filter(({ usage }) => counted.has(usage.event_id))
    .map(({ usage }) => ({ row: usage, sign: 1n }));
  if (contested.size > 0) {
    const all = keyed.filter(({ usage }) => contested.has(keyOf(usage)));
    const calls = all.filter(({ usage }) => usage.kind !== "correction");
    if (calls.length > 0) movements.push(...(await recount(tx, calls)));
    // After the calls, in a statement of its own: it reads which of them count now.
    movements.push(...(await recountCorrections(tx, all)));
  }
  return movements;
}

const isRepricing = (usage: UsageRow): boolean =>
  usage.kind === "correction" && usage.cause === repricedCause && usage.corrects_event_id !== null;

/**
 * Two transactions, such as one of the host and one of a redrive, do not write reports of one call at the same time: each
 * would find its own the only one. A call belongs to one goal, so that goals are held, which are fewer. A correction's key is
 * bound to no goal, and a repricing counts by what its call does: corrections are booked beside nothing else.
 * INVARIANT: test/integration/cost-commands.test.ts "lets one of two reports of a call count when two transactions book them",
 * "is taken back when …".
 */
async function holdCalls(tx: Transaction, keyed: readonly Charge[]): Promise<void> {
  const goals = new Set(keyed.map(({ usage }) => clean(`${usage.tenant_id}/${usage.correlation_id}`)));
  if (goals.size === 0) return;
  const isAlone = keyed.some(({ usage }) => usage.kind === "correction");
  await tx.query({
    name: isAlone ? "cost-hold-all" : "cost-hold-calls",
    // 1668248436 names the class of these locks. In one order, so that two never wait for each other.
    text: `SELECT pg_advisory_xact_lock${isAlone ? "" : "_shared"}(hashtextextended(current_schema() || ' corrections', 0)),
        pg_advisory_xact_lock(1668248436, k.h)
      FROM (SELECT DISTINCT hashtext(current_schema() || '/' || goal) AS h FROM unnest($1::text[]) AS goal ORDER BY 1) AS k`,
    values: [[...goals]],
  });
}

/** Calls of which more than one row is told, in the batch or before it. */
async function findContested(tx: Transaction, keyed: readonly Charge[]): Promise<Set<string>> {
  const contested = new Set<string>();
  const seen = new Set<string>();
  for (const { usage } of keyed) {
    const key = keyOf(usage);
    if (seen.has(key)) contested.add(key);
    seen.add(key);
  }
  const known = await tx.query<{ tenant_id: string; call_key: string }>({
    name: "cost-known-calls",
    text: `SELECT DISTINCT u.tenant_id, u.call_key FROM usage u
      JOIN unnest($1::text[], $2::text[]) AS k(tenant_id, call_key)
        ON u.tenant_id = k.tenant_id AND u.call_key = k.call_key`,
    values: toKeys(keyed),
  });
  for (const row of known.rows) contested.add(`${row.tenant_id}\n${row.call_key}`);
  return contested;
}

/** Of two reports of one model call the one that tells what it cost goes before the one that tells tokens, or nothing. */
const knownFirst = `CASE WHEN kind = 'model'
  THEN array_position(ARRAY['${toldFirst.join("', '")}'], price_state) ELSE 0 END`;

/** What moved, as the database tells it. */
type MovedRow = Omit<Spending, "recorded_at"> & { recorded_at: Date; is_counted: boolean };
const movedColumns = `u.is_counted, u.tenant_id, u.recorded_at, u.user_id, u.agent_id, u.model, u.tool, u.correlation_id,
        u.amount_micros`;

/** Lets one row of each call count: the first recorded of those that tell most. */
async function recount(tx: Transaction, keyed: readonly Charge[]): Promise<Movement[]> {
  const moved = await tx.query<MovedRow>({
    name: "cost-recount",
    text: `UPDATE usage u SET is_counted = w.is_first
      FROM (SELECT event_id, row_number() OVER (PARTITION BY tenant_id, call_key
          ORDER BY ${knownFirst}, recorded_at, event_id) = 1 AS is_first
        FROM usage JOIN (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) AS k(tenant_id, call_key)) AS k
          USING (tenant_id, call_key)) AS w
      WHERE u.event_id = w.event_id AND u.is_counted <> w.is_first
      RETURNING ${movedColumns}`,
    values: toKeys(keyed),
  });
  return toMovements(moved.rows);
}

/**
 * Lets the first of each correction count, and a repricing only while the call that it reprices counts, or is not there.
 * Looks at the corrections among these and at those of the calls among these.
 */
async function recountCorrections(tx: Transaction, keyed: readonly Charge[]): Promise<Movement[]> {
  const moved = await tx.query<MovedRow>({
    name: "cost-recount-corrections",
    text: `WITH k AS (SELECT * FROM unnest($1::text[], $2::text[]) AS k(tenant_id, call_key)),
        corrections AS (
          SELECT c.tenant_id, c.call_key FROM k JOIN usage AS c USING (tenant_id, call_key) WHERE c.kind = 'correction'
          UNION
          SELECT c.tenant_id, c.call_key FROM k JOIN usage AS t USING (tenant_id, call_key)
            JOIN usage AS c ON c.corrects_event_id = t.event_id AND c.tenant_id = t.tenant_id
            WHERE c.kind = 'correction' AND c.cause = $3)
      UPDATE usage u SET is_counted = w.counts
      FROM (SELECT c.event_id, row_number() OVER (PARTITION BY c.tenant_id, c.call_key ORDER BY c.recorded_at, c.event_id) = 1
            AND NOT (c.cause = $3 AND t.event_id IS NOT NULL AND NOT t.is_counted) AS counts
          FROM corrections JOIN usage AS c USING (tenant_id, call_key)
          LEFT JOIN usage AS t
            ON t.event_id = c.corrects_event_id AND t.tenant_id = c.tenant_id AND t.kind <> 'correction') AS w
      WHERE u.event_id = w.event_id AND u.is_counted <> w.counts
      RETURNING ${movedColumns}`,
    values: [...toKeys(keyed), repricedCause],
  });
  return toMovements(moved.rows);
}

function toMovements(rows: readonly MovedRow[]): Movement[] {
  return rows.map(({ is_counted, ...row }) => ({
    row: { ...row, recorded_at: row.recorded_at.getTime() },
    sign: is_counted ? 1n : -1n,
  }));
}

function toKeys(keyed: readonly Charge[]): [string[], string[]] {
  return [keyed.map(({ usage }) => usage.tenant_id), keyed.map(({ usage }) => clean(usage.call_key ?? ""))];
}

function keyOf(usage: UsageRow): string {
  return `${usage.tenant_id}\n${clean(usage.call_key ?? "")}`;
}

/** Columns as JSON carries them: whole numbers as text, no NUL, times in their own form. */
function toColumns(usage: UsageRow, isCounted: boolean): Record<string, unknown> {
  const columns: Record<string, unknown> = { is_counted: isCounted, day: toDay(usage.recorded_at) };
  for (const [name, value] of Object.entries(usage)) {
    columns[name] =
      typeof value === "bigint"
        ? value.toString()
        : typeof value === "string"
          ? clean(value)
          : (value as unknown);
  }
  columns["recorded_at"] = new Date(usage.recorded_at).toISOString();
  if (usage.price_valid_from !== null)
    columns["price_valid_from"] = new Date(usage.price_valid_from).toISOString();
  return columns;
}

/** Postgres text holds no NUL; the mark in its place shows that there was one. */
function clean(text: string): string {
  return text.includes("\u0000") ? text.replaceAll("\u0000", "\uFFFD") : text;
}
