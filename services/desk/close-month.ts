import { draft, toEnvelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { derivedUuid } from "../platform/ids.ts";
import { toTextPreview } from "../platform/masked-preview.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Tx } from "../platform/postgres.ts";
import type { DeskDeps } from "./desk-deps.ts";
import { deskRuntime } from "./item-events.ts";
import type { BookedMonth, MonthStatement } from "./month-statement.ts";
import { findOpenBefore, isOutOfOrder, toStatement } from "./month-statement.ts";

const noteMaxChars = 500;
/** A month can be closed when it is over by this: the ledger may be behind. What comes later still is carried. */
const graceMs = 3_600_000;

/** Months of a tenant as the ledger has them; handed in, since the tables are the ledger's. */
export type LoadBookedMonths = (tx: Tx, tenantId: string) => Promise<readonly BookedMonth[]>;

/** A month to be closed. */
export interface MonthToClose {
  readonly tenantId: string;
  /** A UTC month such as 2026-11. */
  readonly period: string;
  readonly note: string | null;
  readonly by: string;
  /** Only tells what would be stated. */
  readonly isDryRun: boolean;
}

/** A month's statement; `isNew` is false where it was closed before, and is told as it was then. */
export interface ClosedMonth extends MonthStatement {
  readonly closed_by: string;
  readonly closed_at: Date;
  readonly isNew: boolean;
}

interface ClosingRow extends Omit<ClosedMonth, "isNew"> {
  readonly event_id: string;
}

/**
 * Closes a month: what is booked is stated, as an event, and stands for good. Closed again, it answers what was stated.
 * Throws COST_PERIOD for a month that is not over, that has an open one before it, or that is empty and older than a closed one.
 */
export async function closeMonth(
  deps: DeskDeps & { readonly loadBookedMonths: LoadBookedMonths },
  one: MonthToClose,
): Promise<ClosedMonth> {
  const closed = await deps.database.transaction(async (tx): Promise<ClosedMonth> => {
    // Two who close one month at once: the second finds it closed. 1668248435 names the class of these locks.
    await tx.query("SELECT pg_advisory_xact_lock(1668248435, hashtext($1))", [one.tenantId]);
    const stated = await loadClosings(tx, one.tenantId);
    const before = stated.find(({ period }) => period === one.period);
    if (before !== undefined) return { ...before, isNew: false };
    const now = await loadNow(tx);
    if (now.getTime() < endOf(one.period) + graceMs) {
      throw new Fault(
        "COST_PERIOD",
        `\`${one.period}\` is not over; it can be closed an hour after its end, by UTC`,
      );
    }
    const booked = await deps.loadBookedMonths(tx, one.tenantId);
    const open = findOpenBefore(one.period, booked, stated);
    if (open !== null) throw new Fault("COST_PERIOD", `\`${open}\` is open still; close it first`);
    if (isOutOfOrder(one.period, stated) && !booked.some(({ period }) => period === one.period)) {
      throw new Fault("COST_PERIOD", `nothing is booked in \`${one.period}\`, and a newer month is closed`);
    }
    const statement = toStatement(one.period, booked, stated);
    const told = { ...statement, closed_by: one.by, closed_at: now, isNew: true };
    if (!one.isDryRun) await save(deps, tx, one, told);
    return told;
  });
  if (closed.isNew && !one.isDryRun) notifyOutbox(deps.database);
  return closed;
}

async function save(deps: DeskDeps, tx: Tx, one: MonthToClose, told: ClosedMonth): Promise<void> {
  const name = JSON.stringify(["cost-close", one.tenantId, one.period]);
  const eventId = `evt_${derivedUuid(name)}`;
  const note = one.note === null ? null : toTextPreview(one.note, noteMaxChars);
  const { period, amount_micros, carried_micros, calls, unpriced_calls } = told;
  await tx.query(
    `INSERT INTO desk.cost_closings (tenant_id, period, event_id, amount_micros, carried_micros, calls, unpriced_calls,
       closed_by, note, closed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      ...[one.tenantId, period, eventId, amount_micros.toString(), carried_micros.toString()],
      ...[calls.toString(), unpriced_calls.toString(), one.by, note, told.closed_at],
    ],
  );
  const event = toEnvelope(
    draft("fabric.cost.closed", {
      period,
      amount_micros,
      carried_micros,
      calls,
      unpriced_calls,
      closed_by: one.by,
      note,
    }),
    {
      eventId,
      recordedAtMs: told.closed_at.getTime(),
      tenantId: one.tenantId,
      environment: deps.environment,
      runtime: deskRuntime,
      correlationId: `cor_${derivedUuid(name)}`,
      origin: "human",
      userId: one.by,
    },
  );
  await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
}

async function loadClosings(tx: Tx, tenantId: string): Promise<readonly ClosingRow[]> {
  const found = await tx.query<ClosingRow>(
    `SELECT period, event_id, amount_micros, carried_micros, calls, unpriced_calls, closed_by, closed_at
      FROM desk.cost_closings WHERE tenant_id = $1`,
    [tenantId],
  );
  return found.rows;
}

async function loadNow(tx: Tx): Promise<Date> {
  const clock = await tx.query<{ now: Date }>("SELECT date_trunc('milliseconds', clock_timestamp()) AS now");
  return clock.rows[0]?.now ?? new Date(0);
}

/** The first moment after a month, UTC milliseconds. */
function endOf(period: string): number {
  const [year = 0, month = 1] = period.split("-").map(Number);
  return Date.UTC(year, month, 1);
}
