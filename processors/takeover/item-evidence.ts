/** A value as jsonb gives it back. */
type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** A row of the audit trail, as far as an item's evidence needs it. */
export interface TrailRow {
  readonly event_id: string;
  readonly event_type: string;
  readonly recorded_at: Date;
  readonly correlation_id: string;
  readonly causation_id: string | null;
  readonly origin: string;
  readonly user_id: string | null;
  readonly agent_id: string | null;
  readonly session_id: string | null;
  readonly tool_call_id: string | null;
  readonly tool: string | null;
  readonly action: string | null;
  readonly resource_ref: string | null;
  readonly risk: string | null;
  readonly decision: string | null;
  readonly reason_code: string | null;
  readonly policy_revision: string | null;
  readonly matched_rules: readonly string[] | null;
  readonly decision_id: string | null;
  readonly capability_id: string | null;
  readonly approval_id: string | null;
  readonly plan_digest: string | null;
  readonly effect_id: string | null;
  readonly receipt_id: string | null;
  readonly payload_ref: string | null;
  readonly summary: JsonValue;
}

/** An event that opened the item, or came again, or settled it. */
export interface CauseRow extends Omit<TrailRow, "causation_id" | "origin" | "summary" | "decision"> {
  readonly title: string;
  readonly role: "opens" | "closes";
}

/** What a person or the clock did with the item. */
export interface DeedRow {
  readonly event_id: string;
  readonly kind: string;
  readonly recorded_at: Date;
  readonly person: string | null;
  readonly assigned_to: string | null;
  readonly lease_ends_at: Date | null;
  readonly note: string | null;
  readonly outcome: string | null;
  readonly proposal: string | null;
}

/** All that an item rests on. Raw payloads are named by their reference in the vault, and are not in it. */
export interface ItemEvidence {
  readonly causes: readonly {
    readonly event_id: string;
    readonly event_type: string;
    readonly at: string;
    readonly role: "opens" | "closes";
    readonly title: string;
    readonly session_id: string | null;
    readonly tool_call_id: string | null;
    readonly correlation_id: string;
  }[];
  readonly who: readonly { readonly user_id: string | null; readonly agent_id: string | null }[];
  readonly decisions: readonly {
    readonly decision_id: string;
    readonly at: string;
    readonly decision: string | null;
    readonly reason_code: string | null;
    readonly risk: string | null;
    readonly policy_revision: string | null;
    readonly matched_rules: readonly string[];
  }[];
  readonly plans: readonly { readonly plan_digest: string; readonly preview: string | null }[];
  readonly approvals: readonly {
    readonly approval_id: string;
    readonly at: string;
    readonly what: string;
    readonly by: string | null;
  }[];
  readonly capability_ids: readonly string[];
  readonly effects: readonly {
    readonly effect_id: string | null;
    readonly receipt_id: string | null;
    readonly at: string;
    readonly what: string;
    readonly outcome: string | null;
  }[];
  readonly payload_refs: readonly string[];
  readonly deeds: readonly (Omit<DeedRow, "recorded_at" | "lease_ends_at"> & {
    readonly at: string;
    readonly lease_ends_at: string | null;
  })[];
  /** Events around the causes, oldest first: whose direct trigger is whose. */
  readonly chain: readonly {
    readonly event_id: string;
    readonly event_type: string;
    readonly at: string;
    readonly causation_id: string | null;
    readonly origin: string;
  }[];
  /** False when there is more than is shown. */
  readonly is_complete: boolean;
}

/** Puts the evidence together. Order between topics is none: everything is by its recorded time. */
export function toItemEvidence(
  causes: readonly CauseRow[],
  deeds: readonly DeedRow[],
  trail: readonly TrailRow[],
  isComplete: boolean,
): ItemEvidence {
  // A cause counts even where the trail has not got it yet.
  const inTrail = new Set(trail.map(({ event_id }) => event_id));
  const rows = [
    ...trail,
    ...causes
      .filter(({ event_id }) => !inTrail.has(event_id))
      .map((one): TrailRow => ({ ...one, causation_id: null, origin: "", decision: null, summary: null })),
  ].sort(byTime);
  const decided = rows.filter((one) => one.decision_id !== null);
  return {
    causes: causes.map((one) => ({
      event_id: `evt_${one.event_id}`,
      event_type: one.event_type,
      at: one.recorded_at.toISOString(),
      role: one.role,
      title: one.title,
      session_id: one.session_id,
      tool_call_id: one.tool_call_id,
      correlation_id: one.correlation_id,
    })),
    who: distinctBy(
      causes.map(({ user_id, agent_id }) => ({ user_id, agent_id })),
      ({ user_id, agent_id }) => JSON.stringify([user_id, agent_id]),
    ),
    decisions: distinctBy(
      // The ruling itself before the events that only name it.
      [...decided.filter((one) => one.decision !== null), ...decided],
      (one) => one.decision_id ?? "",
    ).map((one) => ({
      decision_id: one.decision_id ?? "",
      at: one.recorded_at.toISOString(),
      decision: one.decision,
      reason_code: one.reason_code,
      risk: one.risk,
      policy_revision: one.policy_revision,
      matched_rules: one.matched_rules ?? [],
    })),
    plans: [...new Set(rows.map((one) => one.plan_digest))]
      .filter((digest) => digest !== null)
      .map((digest) => ({
        plan_digest: digest,
        preview:
          rows
            .filter((one) => one.plan_digest === digest)
            .map((one) => textOf(one.summary, "plan_preview"))
            .find((preview) => preview !== null) ?? null,
      })),
    approvals: rows
      .filter((one) => one.approval_id !== null && one.event_type.startsWith("agent.approval."))
      .map((one) => ({
        approval_id: one.approval_id ?? "",
        at: one.recorded_at.toISOString(),
        what: one.event_type.slice("agent.approval.".length),
        by: ["agent.approval.granted", "agent.approval.refused"].includes(one.event_type)
          ? one.user_id
          : null,
      })),
    capability_ids: [...new Set(rows.map((one) => one.capability_id))].filter((id) => id !== null),
    effects: rows
      .filter(
        (one) => one.event_type.startsWith("agent.effect.") && one.event_type !== "agent.effect.prepared",
      )
      .map((one) => ({
        effect_id: one.effect_id,
        receipt_id: one.receipt_id,
        at: one.recorded_at.toISOString(),
        what: one.event_type.slice("agent.effect.".length),
        outcome: textOf(one.summary, "outcome"),
      })),
    payload_refs: [...new Set(rows.map((one) => one.payload_ref))].filter((ref) => ref !== null),
    deeds: deeds.map(({ recorded_at, lease_ends_at, ...deed }) => ({
      ...deed,
      event_id: `evt_${deed.event_id}`,
      at: recorded_at.toISOString(),
      lease_ends_at: lease_ends_at?.toISOString() ?? null,
    })),
    chain: rows.map((one) => ({
      event_id: `evt_${one.event_id}`,
      event_type: one.event_type,
      at: one.recorded_at.toISOString(),
      causation_id: one.causation_id,
      origin: one.origin,
    })),
    is_complete: isComplete,
  };
}

function byTime(one: TrailRow, other: TrailRow): number {
  return one.recorded_at.getTime() - other.recorded_at.getTime() || (one.event_id < other.event_id ? -1 : 1);
}

function distinctBy<T>(all: readonly T[], keyOf: (one: T) => string): T[] {
  const found = new Map<string, T>();
  for (const one of all) {
    const key = keyOf(one);
    if (!found.has(key)) found.set(key, one);
  }
  return [...found.values()];
}

function textOf(summary: JsonValue, name: string): string | null {
  if (typeof summary !== "object" || summary === null || Array.isArray(summary)) return null;
  const value = (summary as Readonly<Record<string, JsonValue>>)[name];
  return typeof value === "string" ? value : null;
}
