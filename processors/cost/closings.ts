import type { Envelope } from "../../schemas/envelope.ts";
import type { Transaction } from "../kit/transaction.ts";

/** What a person stated of a month when closing it. Names are those of the columns; amounts are decimal text. */
export interface Closing {
  readonly tenant_id: string;
  /** A UTC month such as 2026-11. */
  readonly period: string;
  readonly event_id: string;
  readonly closed_at: string;
  readonly amount_micros: string;
  readonly carried_micros: string;
  readonly calls: string;
  readonly unpriced_calls: string;
  readonly closed_by: string;
  readonly note: string | null;
}

/** A closed month as its event tells. Throws for what is no month: the host then sets the event aside. */
export function toClosing(event: Envelope<"fabric.cost.closed">): Closing {
  const { period, closed_by, note, ...amounts } = event.redacted_summary;
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(period)) throw new RangeError(`\`${period}\` is no month`);
  return {
    tenant_id: clean(event.tenant_id),
    period,
    event_id: event.event_id,
    closed_at: new Date(event.recorded_at).toISOString(),
    amount_micros: amounts.amount_micros.toString(),
    carried_micros: amounts.carried_micros.toString(),
    calls: amounts.calls.toString(),
    unpriced_calls: amounts.unpriced_calls.toString(),
    closed_by: clean(closed_by),
    note: note === null ? null : clean(note),
  };
}

/**
 * Keeps the first statement of each month, whatever the order in which they come.
 * INVARIANT: test/integration/cost-commands.test.ts "keeps the first statement of a month, whatever comes first".
 */
export async function addClosings(tx: Transaction, all: readonly Closing[]): Promise<void> {
  const first = new Map<string, Closing>();
  for (const one of all) {
    const key = `${one.tenant_id}\n${one.period}`;
    const known = first.get(key);
    if (known === undefined || isBefore(one, known)) first.set(key, one);
  }
  if (first.size === 0) return;
  await tx.query({
    name: "cost-add-closings",
    text: `INSERT INTO closings AS c SELECT * FROM json_populate_recordset(NULL::closings, $1::json)
      ON CONFLICT (tenant_id, period) DO UPDATE SET event_id = excluded.event_id, closed_at = excluded.closed_at,
        amount_micros = excluded.amount_micros, carried_micros = excluded.carried_micros, calls = excluded.calls,
        unpriced_calls = excluded.unpriced_calls, closed_by = excluded.closed_by, note = excluded.note
      WHERE (excluded.closed_at, excluded.event_id) < (c.closed_at, c.event_id)`,
    values: [JSON.stringify([...first.values()])],
  });
}

function isBefore(one: Closing, other: Closing): boolean {
  return one.closed_at === other.closed_at ? one.event_id < other.event_id : one.closed_at < other.closed_at;
}

/** Postgres text holds no NUL; the mark in its place shows that there was one. */
function clean(text: string): string {
  return text.replaceAll("\u0000", "\uFFFD");
}

/** A month of a tenant as the ledger has it now. */
export interface BookedMonth {
  readonly period: string;
  readonly amount_micros: bigint;
  readonly calls: bigint;
  /** Booked with 0 for want of a price or of tokens, and repriced by no entry. */
  readonly unpriced_calls: bigint;
}

/** Every month in which something was booked, the oldest first. */
export async function loadBookedMonths(tx: Transaction, tenantId: string): Promise<readonly BookedMonth[]> {
  const found = await tx.query<BookedMonth>(
    `SELECT to_char(day, 'YYYY-MM') AS period, sum(amount_micros)::bigint AS amount_micros, sum(calls)::bigint AS calls,
        count(*) FILTER (WHERE price_state IN ('unpriced', 'unmeasured') AND NOT EXISTS (
          SELECT FROM cost.usage AS r WHERE r.corrects_event_id = u.event_id AND r.tenant_id = u.tenant_id AND r.is_counted
        )) AS unpriced_calls
      FROM cost.usage AS u WHERE tenant_id = $1 AND is_counted GROUP BY 1 ORDER BY 1`,
    [tenantId],
  );
  return found.rows;
}

/** A month with what was stated of it; null where it is open. */
export interface MonthLine {
  readonly tenant_id: string;
  readonly period: string;
  readonly booked_micros: bigint;
  readonly stated_micros: bigint | null;
  readonly carried_micros: bigint | null;
  /** Booked since the month was closed, or taken back. */
  readonly late_micros: bigint | null;
  readonly closed_at: Date | null;
  readonly closed_by: string | null;
  readonly note: string | null;
}

/** Months of the ledger, the newest first. */
export async function loadMonths(
  tx: Transaction,
  question: { readonly tenantId: string | null; readonly limit: number },
): Promise<readonly MonthLine[]> {
  const found = await tx.query<MonthLine>(
    `SELECT tenant_id, period, coalesce(b.booked_micros, 0)::bigint AS booked_micros, c.amount_micros AS stated_micros,
        c.carried_micros, coalesce(b.booked_micros, 0)::bigint - c.amount_micros AS late_micros, c.closed_at, c.closed_by,
        c.note
      FROM (SELECT tenant_id, to_char(day, 'YYYY-MM') AS period, sum(amount_micros)::bigint AS booked_micros
        FROM cost.usage WHERE is_counted AND ($1::text IS NULL OR tenant_id = $1) GROUP BY 1, 2) AS b
      FULL JOIN (SELECT * FROM cost.closings WHERE $1::text IS NULL OR tenant_id = $1) AS c USING (tenant_id, period)
      ORDER BY period DESC, tenant_id LIMIT $2`,
    [question.tenantId, question.limit],
  );
  return found.rows;
}
