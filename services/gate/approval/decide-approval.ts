import { Fault } from "../../../schemas/faults.ts";
import type { Clock } from "../../platform/clock.ts";
import { newEventId, toUuid } from "../../platform/ids.ts";
import { toTextPreview } from "../../platform/masked-preview.ts";
import type { EventEncoder } from "../../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../../platform/outbox.ts";
import type { Database, Tx } from "../../platform/postgres.ts";
import { lineMax } from "../facts.ts";
import { toDecidedEvent } from "./approval-events.ts";
import type { ApprovalRow } from "./approval-row.ts";
import { loadApproval } from "./approval-row.ts";

export interface ApprovalDeps {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
}

/** What a person said of a plan. */
export interface ApprovalWord {
  readonly approvalId: string;
  readonly isApproved: boolean;
  /** The plan that the person saw; null: a refusal needs none. */
  readonly planDigest: string | null;
  readonly note: string | null;
  readonly by: string;
}

const noteMaxChars = 512;

/**
 * Approves or refuses, with its event, in one transaction. Only an open approval, in its time, of the plan that was seen,
 * and never by who asked for it or works in the session.
 * INVARIANT: test/integration/approvals.test.ts "is not for the one who asked", "comes too late after its end".
 */
export async function decideApproval(
  deps: ApprovalDeps,
  tenantId: string,
  word: ApprovalWord,
): Promise<ApprovalRow> {
  const row = await deps.database.transaction(async (tx) => {
    const found = await loadApproval(tx, tenantId, word.approvalId, { isForUpdate: true });
    if (found === null) throw new Fault("APPROVAL_UNKNOWN");
    if (await isOwn(tx, found, word.by)) throw new Fault("APPROVAL_OWN");
    if (found.state === "expired") throw new Fault("APPROVAL_EXPIRED");
    if (found.state !== "pending") throw new Fault("APPROVAL_DECIDED", `it is ${found.state} already`);
    if (word.planDigest !== null && word.planDigest !== found.planDigest) throw new Fault("APPROVAL_DIGEST");
    return decide(tx, deps, found, word);
  });
  notifyOutbox(deps.database);
  return row;
}

async function decide(
  tx: Tx,
  deps: ApprovalDeps,
  found: ApprovalRow,
  word: ApprovalWord,
): Promise<ApprovalRow> {
  const note = word.note === null ? null : toTextPreview(word.note, noteMaxChars);
  const state = word.isApproved ? "approved" : "refused";
  const written = await tx.query<{ decided_at: Date }>({
    name: "approval-decide",
    text: `UPDATE gate.approvals SET state = $2, decided_at = clock_timestamp(), decided_by = $3, note = $4
      WHERE approval_id = $1::uuid AND state = 'pending' AND expires_at > clock_timestamp() RETURNING decided_at`,
    values: [toUuid(found.approvalId), state, word.by, note],
  });
  const decidedAt = written.rows[0]?.decided_at;
  if (decidedAt === undefined) throw new Fault("APPROVAL_EXPIRED");
  const event = toDecidedEvent(
    found,
    { isApproved: word.isApproved, by: word.by, note },
    { eventId: newEventId(deps.clock), nowMs: decidedAt.getTime(), environment: deps.environment },
  );
  await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
  return { ...found, state, decidedAt, decidedBy: word.by, note };
}

/** Whoever asked for it, or had a call of the same session or of one above it decided; in a line that is cut off, everybody may have. */
async function isOwn(tx: Tx, { requester, sessionKey }: ApprovalRow, subject: string): Promise<boolean> {
  if (requester === subject) return true;
  const found = await tx.query<{ own: boolean }>({
    name: "approval-own",
    text: `WITH RECURSIVE line (key, step) AS (SELECT $1::uuid, 0 UNION ALL
        SELECT p.root_key, line.step + 1 FROM line JOIN gate.sessions AS p ON p.session_key = line.key
        WHERE p.root_key IS NOT NULL AND line.step < ${String(lineMax)})
      SELECT EXISTS (SELECT FROM line JOIN gate.decisions AS d ON d.session_key = line.key
        WHERE d.request ->> 'user_id' = $2)
        OR EXISTS (SELECT FROM line WHERE line.step >= ${String(lineMax)}) AS own`,
    values: [sessionKey, subject],
  });
  return found.rows[0]?.own === true;
}
