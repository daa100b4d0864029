import type { Envelope } from "../../schemas/envelope.ts";
import { toCause } from "../kit/emission.ts";
import type { Cause as Trigger } from "../kit/emission.ts";
import type { Cause } from "./causes.ts";
import { slaMs } from "./causes.ts";
import { clean, cut, toBounded } from "./words.ts";

/** Types that may open an item, and those that show that none is needed any more. */
export const evidenceTypes = [
  "agent.tool.deferred",
  "agent.tool.denied",
  "agent.deferral.answered",
  "agent.effect.unresolved",
  "agent.effect.reconciled",
  "agent.effect.ungated",
  "agent.approval.expired",
  "agent.approval.consumed",
  "agent.plan.diverged",
  "fabric.letter.buried",
  "fabric.breaker.tripped",
  "fabric.breaker.reset",
  "fabric.adapter.unrecognized",
  "fabric.gap.found",
  "fabric.gap.resumed",
  "fabric.budget.crossed",
] as const;
export type EvidenceType = (typeof evidenceTypes)[number];

/** One event that opens an item, or closes it without a person. Names are those of the columns. */
export interface Evidence {
  readonly event_id: string;
  readonly tenant_id: string;
  readonly cause: Cause;
  /** Events of one key are one item, until it is closed. */
  readonly cause_key: string;
  readonly role: "opens" | "closes";
  readonly event_type: string;
  readonly recorded_at: string;
  readonly due_after_ms: number;
  readonly title: string;
  readonly correlation_id: string;
  readonly user_id: string | null;
  readonly agent_id: string | null;
  readonly runtime_kind: string;
  readonly session_id: string | null;
  readonly tool_call_id: string | null;
  readonly tool: string | null;
  readonly action: string | null;
  readonly resource_ref: string | null;
  readonly risk: string | null;
  readonly decision_id: string | null;
  readonly reason_code: string | null;
  readonly policy_revision: string | null;
  readonly matched_rules: readonly string[];
  readonly plan_digest: string | null;
  readonly capability_id: string | null;
  readonly approval_id: string | null;
  readonly effect_id: string | null;
  readonly receipt_id: string | null;
  readonly payload_ref: string | null;
  /** What the item's own event inherits. */
  readonly trigger: Trigger;
}

interface Judgement {
  readonly role: "opens" | "closes";
  readonly cause: Cause;
  readonly key: readonly (string | number | null)[];
  readonly title: string;
}

/** An event as evidence; null when nobody has to look at it. */
export function toEvidence(event: Envelope<EvidenceType>): Evidence | null {
  const judged = judge(event);
  if (judged === null) return null;
  const summary = event.redacted_summary;
  return {
    event_id: clean(event.event_id.slice("evt_".length)),
    tenant_id: clean(event.tenant_id),
    cause: judged.cause,
    cause_key: toCauseKey(judged.key),
    role: judged.role,
    event_type: event.type,
    recorded_at: new Date(event.recorded_at).toISOString(),
    due_after_ms: slaMs[judged.cause],
    title: cut(clean(judged.title), titleMaxChars),
    correlation_id: clean(event.correlation_id),
    user_id: clean(event.actor.user_id),
    agent_id: clean(event.actor.agent_id),
    runtime_kind: clean(event.runtime.kind),
    session_id: clean(event.execution.session_id),
    tool_call_id: clean(event.execution.tool_call_id),
    tool: clean(event.subject?.tool ?? null),
    action: clean(event.subject?.action ?? null),
    resource_ref: clean(event.subject?.resource_ref ?? null),
    risk: event.policy?.risk ?? null,
    decision_id: clean("decision_id" in summary ? summary.decision_id : null),
    reason_code: clean(event.policy?.reason_code ?? null),
    policy_revision: clean(event.policy?.revision ?? null),
    matched_rules: (event.policy?.matched_rules ?? []).map(clean),
    plan_digest: clean(event.plan_digest),
    capability_id: clean(event.capability_id),
    approval_id: clean(event.approval_id),
    effect_id: clean(event.effect_id),
    receipt_id: clean(event.receipt_id),
    payload_ref: clean(event.payload_ref),
    trigger: cleanTrigger(toCause(event)),
  };
}

/** Denials that are no word of the policy, but of a fact that never came or of time that ran out. */
const deferExpired = "DEFER_EXPIRED";
const gateTimeout = "GATE_TIMEOUT";

function judge(event: Envelope<EvidenceType>): Judgement | null {
  const tool = event.subject?.tool ?? "a tool";
  const what = event.subject?.resource_ref == null ? tool : `${tool} on ${event.subject.resource_ref}`;
  switch (event.type) {
    case "agent.tool.deferred": {
      const { waits_for } = event.redacted_summary;
      const facts = waits_for.length === 0 ? "facts" : waits_for.join(", ");
      return opens("deferred", [planKey(event)], `${what} waits for ${facts}`);
    }
    case "agent.deferral.answered": {
      const { decision } = event.redacted_summary;
      return {
        role: "closes",
        cause: "deferred",
        key: [planKey(event)],
        title: `${what} was asked for again and decided: ${toWords(decision)}`,
      };
    }
    case "agent.tool.denied": {
      const reason = event.policy?.reason_code;
      // The plan that was put off and whose facts never came is the same work for the same person.
      if (reason === deferExpired)
        return opens("deferred", [planKey(event)], `${what}: the facts never came, refused`);
      if (reason === gateTimeout) {
        // A slow gate refuses many calls for one cause.
        return opens(
          "gate_timeout",
          [event.environment, event.runtime.kind, event.subject?.tool ?? null],
          `${tool} was refused: the gate ran out of time`,
        );
      }
      return null;
    }
    case "agent.effect.unresolved":
      return opens(
        "effect_unresolved",
        [effectKey(event)],
        `${what}: nobody knows whether it happened (${toWords(event.redacted_summary.cause)})`,
      );
    case "agent.effect.reconciled": {
      const { outcome, reconciled_by } = event.redacted_summary;
      // Still unknown is no answer: the item stays.
      if (outcome === "unknown") return null;
      return {
        role: "closes",
        cause: "effect_unresolved",
        key: [effectKey(event)],
        title: `${what}: ${toWords(outcome)}, as ${reconciled_by} found out`,
      };
    }
    case "agent.effect.ungated": {
      const { evidence } = event.redacted_summary;
      return opens(
        "effect_ungated",
        [event.runtime.kind, event.execution.session_id ?? event.correlation_id, evidence],
        `${what} ran without a decision: ${toWords(evidence)}`,
      );
    }
    case "agent.approval.expired":
      return opens("approval_expired", [approvedKey(event)], `${what}: nobody agreed in time`);
    case "agent.approval.consumed":
      // The same plan was asked for again, and passed.
      return {
        role: "closes",
        cause: "approval_expired",
        key: [approvedKey(event)],
        title: `${what}: somebody agreed, and it passed`,
      };
    case "agent.plan.diverged": {
      const { expected_digest, detail } = event.redacted_summary;
      return opens(
        "plan_diverged",
        [expected_digest],
        `${what} is not what was agreed to${detail === null ? "" : `: ${detail}`}`,
      );
    }
    case "fabric.letter.buried": {
      const { consumer, code, source_topic } = event.redacted_summary;
      return opens("letter", letterKey(event), `${consumer} set aside inputs of ${source_topic}: ${code}`);
    }
    case "fabric.breaker.tripped": {
      const { scope, scope_id, measure } = event.redacted_summary;
      return opens(
        "breaker",
        [scope, scope_id],
        `${scope} ${scope_id} is read-only: ${toWords(measure)} is past its limit`,
      );
    }
    case "fabric.breaker.reset": {
      const { scope, scope_id, reset_by } = event.redacted_summary;
      return {
        role: "closes",
        cause: "breaker",
        key: [scope, scope_id],
        title: `${scope} ${scope_id} was reset by ${reset_by}`,
      };
    }
    case "fabric.adapter.unrecognized": {
      const { gating, problem, field, event_name } = event.redacted_summary;
      if (!gating) return null;
      return opens(
        "adapter_unrecognized",
        [event.runtime.kind, event_name, field, problem],
        `${event.runtime.kind} sends ${event_name ?? "something"} that the adapter does not understand: ${toWords(problem)}${field === null ? "" : ` at ${field}`}`,
      );
    }
    case "fabric.gap.found": {
      const { consumer, source_topic, source_partition, cause } = event.redacted_summary;
      return opens(
        "gap",
        [consumer, source_topic, source_partition],
        `${consumer} stands still at ${source_topic}/${String(source_partition)}: records are gone (${toWords(cause)})`,
      );
    }
    case "fabric.gap.resumed": {
      const { consumer, source_topic, source_partition, choice, resumed_by } = event.redacted_summary;
      return {
        role: "closes",
        cause: "gap",
        key: [consumer, source_topic, source_partition],
        title: `${resumed_by} let ${consumer} go on at ${source_topic}/${String(source_partition)}: ${toWords(choice)}`,
      };
    }
    case "fabric.budget.crossed": {
      const { budget_id, scope, scope_id, limit_kind, period } = event.redacted_summary;
      // A limit of a kind that this version does not know may be one that refuses.
      if (limit_kind === "soft") return null;
      return opens(
        "budget",
        [budget_id, scope, scope_id, period],
        `${scope} ${scope_id} has spent what it may in ${period}`,
      );
    }
  }
}

function opens(cause: Cause, key: Judgement["key"], title: string): Judgement {
  return { role: "opens", cause, key, title };
}

/** The plan as it was asked for; a call without one stands for itself. */
function planKey(event: Envelope): string {
  return event.plan_digest ?? event.execution.tool_call_id ?? event.event_id;
}

function approvedKey(event: Envelope): string {
  return event.plan_digest ?? event.approval_id ?? event.event_id;
}

function effectKey(event: Envelope): string {
  return event.effect_id ?? event.plan_digest ?? event.event_id;
}

/** Letters of one consumer, fault and topic are one item. */
export function letterKey(event: Envelope<"fabric.letter.buried">): Judgement["key"] {
  const { consumer, code, source_topic } = event.redacted_summary;
  return [consumer, code, source_topic];
}

/** Longest title of an item. */
export const titleMaxChars = 256;
/** An index row of Postgres holds 2,700 bytes; this fits whatever the script. */
const keyPartMaxChars = 160;

/** Parts are joined by a sign that none of them holds, so that two keys are never one. */
export function toCauseKey(parts: Judgement["key"]): string {
  return parts
    .map((part) => toBounded(clean(String(part ?? "-")).replaceAll("|", "¦"), keyPartMaxChars))
    .join("|");
}

export function toWords(symbol: string): string {
  return symbol.replaceAll("_", " ");
}

/** Evidence keeps it as jsonb, which holds no NUL either. */
function cleanTrigger(trigger: Trigger): Trigger {
  return JSON.parse(
    JSON.stringify(trigger, (_key, value: unknown) => (typeof value === "string" ? clean(value) : value)),
  ) as Trigger;
}
