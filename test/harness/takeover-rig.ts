import { takeover } from "../../processors/takeover/takeover.ts";
import type { Emission } from "../../processors/kit/emission.ts";
import { eventOf } from "../../processors/kit/given.ts";
import type { EventType } from "../../schemas/catalog.ts";
import type { Envelope, EnvelopeContext } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Outcome, TakeoverOutcome } from "../../schemas/generated/types.ts";
import { derivedUuid } from "../../services/platform/ids.ts";
import type { Database } from "../../services/platform/postgres.ts";

/** 2026-01-01, in milliseconds: seconds of the histories count from here. */
export const baseMs = 1_767_225_600_000;

/** Events of one history: `name` makes the id, `second` the recorded time. */
export interface Placed {
  readonly name: string;
  readonly second: number;
  readonly tenantId?: string;
  readonly correlationId?: string;
}

const contextOf = ({ name, second, tenantId, correlationId }: Placed): Partial<EnvelopeContext> => ({
  eventId: `evt_${derivedUuid(name)}`,
  recordedAtMs: baseMs + second * 1_000,
  tenantId: tenantId ?? "acme",
  correlationId: correlationId ?? "cor_1",
});

const subject = {
  tool: "shell.run",
  action: "run",
  resource_ref: "host:db1",
  data_class: "internal",
} as const;

export const deferredEvent = (plan: string, place: Placed): Envelope =>
  eventOf(
    draft(
      "agent.tool.deferred",
      {
        decision_id: `dec_${place.name}`,
        effect_class: "write",
        message: "wait",
        waits_for: ["repo.state"],
        deadline_at: baseMs,
      },
      { subject, plan_digest: plan, execution: { session_id: "s1", tool_call_id: `call_${place.name}` } },
    ),
    contextOf(place),
  );

export const answeredEvent = (plan: string, place: Placed): Envelope =>
  eventOf(
    draft(
      "agent.deferral.answered",
      {
        decision_id: `dec_${place.name}`,
        effect_class: "write",
        decision: "allow",
        deferred_since_at: baseMs,
      },
      { subject, plan_digest: plan, execution: { session_id: "s1", tool_call_id: `call_${place.name}` } },
    ),
    contextOf(place),
  );

export const unresolvedEvent = (effectId: string, place: Placed): Envelope =>
  eventOf(
    draft(
      "agent.effect.unresolved",
      { effect_class: "write", cause: "timeout" },
      { subject, effect_id: effectId },
    ),
    contextOf(place),
  );

export const reconciledEvent = (effectId: string, outcome: Outcome, place: Placed): Envelope =>
  eventOf(
    draft(
      "agent.effect.reconciled",
      { effect_class: "write", outcome, reconciled_by: "reconciler" },
      { subject, effect_id: effectId },
    ),
    contextOf(place),
  );

export const expiredEvent = (plan: string, place: Placed): Envelope =>
  eventOf(
    draft(
      "agent.approval.expired",
      { decision_id: `dec_${place.name}`, expired_at: baseMs },
      { subject, plan_digest: plan, approval_id: `apr_${place.name}` },
    ),
    contextOf(place),
  );

export const claimedEvent = (itemId: string, by: string, place: Placed): Envelope =>
  eventOf(
    draft("fabric.takeover.claimed", {
      item_id: itemId,
      claimed_by: by,
      lease_ends_at: baseMs + (place.second + 60) * 1_000,
    }),
    contextOf(place),
  );

export const reassignedEvent = (itemId: string, to: string, place: Placed): Envelope =>
  eventOf(
    draft("fabric.takeover.reassigned", {
      item_id: itemId,
      from_person: null,
      to_person: to,
      reassigned_by: "ann",
    }),
    contextOf(place),
  );

export const notedEvent = (itemId: string, note: string, place: Placed): Envelope =>
  eventOf(draft("fabric.takeover.noted", { item_id: itemId, author: "ann", note }), contextOf(place));

export const resolvedEvent = (itemId: string, outcome: TakeoverOutcome, place: Placed): Envelope =>
  eventOf(
    draft("fabric.takeover.resolved", {
      item_id: itemId,
      resolved_by: "ann",
      outcome,
      note: null,
      proposal: null,
    }),
    contextOf(place),
  );

/** A letter about an input of `cost` was set aside, or its way has ended. */
export const letterEvent = (
  letterId: string,
  what: "redriven" | "archived" | { readonly code: string },
  place: Placed,
): Envelope => {
  const common = { letter_id: letterId, consumer: "cost", attempts: 1, source_event_id: null };
  const source = { source_topic: "agent.model.completed", source_partition: 0, source_offset: 4n };
  if (typeof what === "object") {
    return eventOf(
      draft("fabric.letter.buried", {
        ...common,
        ...source,
        kind: "dead",
        fault_kind: "poison",
        code: what.code,
        detail: "it cannot be",
        consumer_version: "1",
        accountable: "sre",
      }),
      contextOf(place),
    );
  }
  return what === "redriven"
    ? eventOf(
        draft("fabric.letter.redriven", {
          ...common,
          ...source,
          redrive_id: "rdr_1",
          outcome: "processed",
          consumer_version: "2",
          redriven_by: "ann",
        }),
        contextOf(place),
      )
    : eventOf(
        draft("fabric.letter.archived", {
          ...common,
          ...source,
          kind: "dead",
          code: "BAD",
          archived_by: "ann",
          reason: "no use",
        }),
        contextOf(place),
      );
};

/** A consumer stopped at a gap, or a person let it go on. */
export const gapEvent = (partition: number, what: "found" | "resumed", place: Placed): Envelope => {
  const common = { consumer: "cost", source_topic: "agent.model.completed", source_partition: partition };
  return what === "found"
    ? eventOf(
        draft("fabric.gap.found", {
          ...common,
          expected_offset: 4n,
          found_offset: 40n,
          cause: "retention",
        }),
        contextOf(place),
      )
    : eventOf(
        draft("fabric.gap.resumed", {
          ...common,
          cause: "retention",
          choice: "log_start",
          stopped_offset: 4n,
          resumed_offset: 40n,
          resumed_by: "ann",
          reason: "looked",
        }),
        contextOf(place),
      );
};

/** Projects events and applies them in one transaction, as the host does; the inbox is not part of it. */
export async function applyEvents(
  database: Database,
  events: readonly Envelope<EventType>[],
): Promise<readonly Emission[]> {
  const changes = events.flatMap((event, index) =>
    takeover.project(event, { topic: event.type, partition: 0, offset: BigInt(index) }),
  );
  if (changes.length === 0) return [];
  return database.transaction((tx) => takeover.apply(tx, changes));
}

export interface StoredItem {
  readonly item_id: string;
  readonly tenant_id: string;
  readonly cause: string;
  readonly cause_key: string;
  readonly generation: number;
  readonly state: string;
  readonly occurrences: bigint;
  readonly opened_at: Date;
  readonly due_at: Date;
  readonly assigned_to: string | null;
  readonly closed_by: string | null;
  readonly closed_at: Date | null;
  readonly resolution_note: string | null;
  readonly outcome: string | null;
}

/** The queue as it stands, by cause, key and generation. */
export async function storedItems(database: Database): Promise<readonly StoredItem[]> {
  return (
    await database.query<StoredItem>("SELECT * FROM items ORDER BY tenant_id, cause, cause_key, generation")
  ).rows;
}
