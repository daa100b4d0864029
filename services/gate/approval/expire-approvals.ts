import { newEventId, toUuid } from "../../platform/ids.ts";
import type { Log } from "../../platform/log.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../../platform/outbox.ts";
import { toExpiredEvent } from "./approval-events.ts";
import { approvalColumns, approvalJoins, toApprovalRow } from "./approval-row.ts";
import type { ApprovalDeps } from "./decide-approval.ts";

/** How often a gate looks, and how much it does at once. Nothing passes by an approval past its time meanwhile. */
const sweepEveryMs = 3_000;
const sweepMax = 200;

/** Marks approvals whose time is up, and says so, each once. One gate at a time. Returns how many. */
export async function expireApprovals(deps: ApprovalDeps, limit: number = sweepMax): Promise<number> {
  const expired = await deps.database.transaction(async (tx) => {
    // 1702390898 = 'expr': the class of this lock, which ends with the transaction.
    const lock = await tx.query<{ mine: boolean }>("SELECT pg_try_advisory_xact_lock(1702390898, 0) AS mine");
    if (lock.rows[0]?.mine !== true) return 0;
    const found = await tx.query({
      name: "approval-expired",
      text: `SELECT ${approvalColumns} FROM gate.approvals AS a ${approvalJoins}
        WHERE (a.state IN ('pending', 'approved') AND a.expires_at <= clock_timestamp())
          OR (a.state = 'expired' AND NOT a.is_announced)
        ORDER BY a.approval_id LIMIT $1 FOR UPDATE OF a SKIP LOCKED`,
      values: [limit],
    });
    const rows = found.rows.map(toApprovalRow);
    if (rows.length === 0) return 0;
    await tx.query({
      name: "approval-expire",
      text: "UPDATE gate.approvals SET state = 'expired', is_announced = true WHERE approval_id = ANY ($1::uuid[])",
      values: [rows.map((one) => toUuid(one.approvalId))],
    });
    const events = rows.map((row) =>
      toExpiredEvent(row, {
        eventId: newEventId(deps.clock),
        nowMs: deps.clock.nowMs(),
        environment: deps.environment,
      }),
    );
    await appendOutbox(tx, toOutboxRows(deps.codec, events));
    return rows.length;
  });
  if (expired > 0) notifyOutbox(deps.database);
  return expired;
}

/** Looks again and again, until it is stopped; a look that fails is made up for by the next one. */
export function startExpiringApprovals(
  deps: ApprovalDeps & { readonly log: Log },
  everyMs: number = sweepEveryMs,
): { stop(): Promise<void> } {
  let running: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    running = running
      .then(() => expireApprovals(deps))
      .then(
        () => undefined,
        (error: unknown) =>
          deps.log.warn({ err: error }, "approvals past their time were not marked; trying again"),
      );
  }, everyMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
