import type { Draft } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { TakeoverOutcome } from "../../schemas/generated/types.ts";
import { newEventId } from "../platform/ids.ts";
import { toTextPreview } from "../platform/masked-preview.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Tx } from "../platform/postgres.ts";
import type { DeskDeps } from "./desk-deps.ts";
import { toItemFact } from "./item-events.ts";
import type { ItemRow } from "./item-row.ts";
import { loadItem } from "./item-row.ts";

/** Long enough to read the evidence and to ask somebody; short enough that who went home holds nobody up. */
export const leaseMs = 30 * 60_000;

const textMaxChars = 2_000;

/** Which item, and who. */
export interface Target {
  readonly tenantId: string;
  readonly itemId: string;
  readonly by: string;
}

/** How a person closed an item. A proposal is words for another person: nothing reads it to act on it. */
export interface Resolution {
  readonly outcome: Exclude<TakeoverOutcome, "unknown">;
  readonly note: string | null;
  readonly proposal: string | null;
}

/**
 * Takes the item for a while, or for a while longer. One of several who try at once gets it.
 * INVARIANT: test/integration/desk.test.ts "gives an item to one of many who claim it at once".
 */
export async function claimItem(deps: DeskDeps, target: Target, forMs: number = leaseMs): Promise<ItemRow> {
  return command(deps, target, async (tx, item) => {
    const held = await hold(tx, item, target.by, target.by, forMs);
    return {
      nowMs: held.nowMs,
      draft: draft("fabric.takeover.claimed", {
        item_id: item.itemId,
        claimed_by: target.by,
        lease_ends_at: held.leaseEndsMs,
      }),
    };
  });
}

/** Writes something down about an item, whoever holds it, also when it is closed. */
export async function noteItem(deps: DeskDeps, target: Target, note: string): Promise<ItemRow> {
  return command(deps, target, (_tx, item) =>
    Promise.resolve({
      nowMs: item.readAt.getTime(),
      draft: draft("fabric.takeover.noted", {
        item_id: item.itemId,
        author: target.by,
        note: toTextPreview(note, textMaxChars),
      }),
    }),
  );
}

/** Hands the item over: only who holds it may, or anybody when nobody does. */
export async function reassignItem(
  deps: DeskDeps,
  target: Target,
  to: string,
  forMs: number = leaseMs,
): Promise<ItemRow> {
  return command(deps, target, async (tx, item) => {
    const held = await hold(tx, item, target.by, to, forMs);
    return {
      nowMs: held.nowMs,
      draft: draft("fabric.takeover.reassigned", {
        item_id: item.itemId,
        from_person: item.claimedBy,
        to_person: to,
        reassigned_by: target.by,
      }),
    };
  });
}

/**
 * Closes the item. It says what came of it and what is proposed, and does nothing of it.
 * INVARIANT: test/integration/desk.test.ts "proposes and never acts: the desk's role can touch nothing else".
 */
export async function resolveItem(deps: DeskDeps, target: Target, resolution: Resolution): Promise<ItemRow> {
  return command(deps, target, async (tx, item) => {
    const held = await hold(tx, item, target.by, target.by, leaseMs);
    await tx.query({
      name: "desk-resolve",
      text: "UPDATE desk.claims SET resolved_at = $2 WHERE item_id = $1",
      values: [item.itemId, new Date(held.nowMs)],
    });
    return {
      nowMs: held.nowMs,
      draft: draft("fabric.takeover.resolved", {
        item_id: item.itemId,
        resolved_by: target.by,
        outcome: resolution.outcome,
        note: resolution.note === null ? null : toTextPreview(resolution.note, textMaxChars),
        proposal: resolution.proposal === null ? null : toTextPreview(resolution.proposal, textMaxChars),
      }),
    };
  });
}

interface Done {
  readonly nowMs: number;
  readonly draft: Draft;
}

/** Looks at the item, does the work, and says so, in one transaction. Answers with the item as it is after it. */
async function command(
  deps: DeskDeps,
  target: Target,
  work: (tx: Tx, item: ItemRow) => Promise<Done>,
): Promise<ItemRow> {
  const after = await deps.database.transaction(async (tx) => {
    const item = await loadItem(tx, target.tenantId, target.itemId);
    const done = await work(tx, item);
    const event = toItemFact(
      done.draft,
      item,
      { eventId: newEventId(deps.clock), nowMs: done.nowMs, environment: deps.environment },
      { userId: target.by, origin: "human" },
    );
    const seen = await loadItem(tx, target.tenantId, target.itemId);
    await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
    return seen;
  });
  notifyOutbox(deps.database);
  return after;
}

/** Puts the lease to `holder`, unless it runs for another than `by`; throws TAKEOVER_HELD or TAKEOVER_CLOSED. */
async function hold(
  tx: Tx,
  item: ItemRow,
  by: string,
  holder: string,
  forMs: number,
): Promise<{ readonly nowMs: number; readonly leaseEndsMs: number }> {
  if (item.closedAt !== null) throw new Fault("TAKEOVER_CLOSED", closedDetail(item));
  // Who waits for the row's lock finds the winner's row, and its condition is judged on that.
  const found = await tx.query<{ now: Date; lease_ends_at: Date }>({
    name: "desk-hold",
    text: `INSERT INTO desk.claims AS c (item_id, tenant_id, held_by, lease_ends_at)
      VALUES ($1, $2, $4, clock_timestamp() + $5 * interval '1 millisecond')
      ON CONFLICT (item_id) DO UPDATE SET held_by = EXCLUDED.held_by,
        lease_ends_at = clock_timestamp() + $5 * interval '1 millisecond'
      WHERE c.resolved_at IS NULL AND (c.held_by = $3 OR c.lease_ends_at <= clock_timestamp())
      RETURNING c.lease_ends_at, clock_timestamp() AS now`,
    values: [item.itemId, item.tenantId, by, holder, forMs],
  });
  const [row] = found.rows;
  if (row !== undefined) return { nowMs: row.now.getTime(), leaseEndsMs: row.lease_ends_at.getTime() };
  const now = await loadItem(tx, item.tenantId, item.itemId);
  if (now.closedAt !== null) throw new Fault("TAKEOVER_CLOSED", closedDetail(now));
  const until = now.leaseEndsAt === null ? "" : ` until ${now.leaseEndsAt.toISOString()}`;
  throw new Fault("TAKEOVER_HELD", `${now.claimedBy ?? "another person"} holds it${until}`);
}

function closedDetail(item: ItemRow): string {
  return `${item.state} by ${item.closedBy ?? "somebody"}`;
}
