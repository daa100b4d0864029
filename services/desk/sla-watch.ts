import { draft } from "../../schemas/envelope.ts";
import { newEventId } from "../platform/ids.ts";
import type { Log } from "../platform/log.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { DeskDeps } from "./desk-deps.ts";
import { toItemFact } from "./item-events.ts";

/** How often a desk looks: due times are minutes and hours. */
const watchEveryMs = 5_000;
/** At most this many in one transaction; the next look takes the rest. */
const watchMax = 200;

interface OverdueRow {
  readonly itemId: string;
  readonly tenantId: string;
  readonly correlationId: string;
  readonly firstEventId: string;
  readonly dueAt: Date;
  readonly now: Date;
}

/**
 * Says of each item that waits past its time, once, that it does. One desk at a time, by the database's clock. Returns
 * how many.
 * INVARIANT: test/integration/desk.test.ts "tells a breach once, with two desks".
 */
export async function announceBreaches(deps: DeskDeps, limit: number = watchMax): Promise<number> {
  const count = await deps.database.transaction(async (tx) => {
    // 1936482662 = 'slaf' in ASCII: the class of this lock, which ends with the transaction.
    const lock = await tx.query<{ mine: boolean }>("SELECT pg_try_advisory_xact_lock(1936482662, 0) AS mine");
    if (lock.rows[0]?.mine !== true) return 0;
    const found = await tx.query<OverdueRow>({
      name: "desk-overdue",
      text: `WITH overdue AS (
          SELECT i.item_id, i.tenant_id, i.correlation_id, i.first_event_id, i.due_at
          FROM takeover.items AS i
          WHERE i.closed_at IS NULL AND i.due_at <= clock_timestamp()
            AND NOT EXISTS (SELECT FROM desk.breaches AS b WHERE b.item_id = i.item_id)
            AND NOT EXISTS (SELECT FROM desk.claims AS c WHERE c.item_id = i.item_id AND c.resolved_at IS NOT NULL)
          ORDER BY i.due_at, i.item_id LIMIT $1
        ), told AS (
          INSERT INTO desk.breaches (item_id, tenant_id, due_at)
          SELECT item_id, tenant_id, due_at FROM overdue ON CONFLICT DO NOTHING RETURNING item_id
        )
        SELECT o.item_id AS "itemId", o.tenant_id AS "tenantId", o.correlation_id AS "correlationId",
          o.first_event_id AS "firstEventId", o.due_at AS "dueAt", clock_timestamp() AS now
        FROM overdue AS o JOIN told USING (item_id) ORDER BY o.due_at, o.item_id`,
      values: [limit],
    });
    const events = found.rows.map((row) =>
      toItemFact(
        draft("fabric.takeover.breached", { item_id: row.itemId, due_at: row.dueAt.getTime() }),
        row,
        {
          eventId: newEventId(deps.clock),
          nowMs: row.now.getTime(),
          environment: deps.environment,
        },
        { userId: null, origin: "schedule" },
      ),
    );
    await appendOutbox(tx, toOutboxRows(deps.codec, events));
    return events.length;
  });
  if (count > 0) notifyOutbox(deps.database);
  return count;
}

/** Looks again and again, until it is stopped; a look that fails is made up for by the next one. */
export function startSlaWatch(
  deps: DeskDeps & { readonly log: Log },
  everyMs: number = watchEveryMs,
): { stop(): Promise<void> } {
  let running: Promise<void> = Promise.resolve();
  let isBusy = false;
  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    running = announceBreaches(deps)
      .then(
        (count) => {
          // The receiver of the alarm reads the queue; the log line is for who reads neither.
          if (count > 0) deps.log.error({ count }, "takeover items wait past their time");
        },
        (error: unknown) => deps.log.warn({ err: error }, "due times were not looked at; trying again"),
      )
      .finally(() => (isBusy = false));
  }, everyMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
