import type { Envelope } from "../../schemas/envelope.ts";
import { episodeIdOf } from "./episode-id.ts";
import { clean, cut } from "./words.ts";

/** Types that say something about an episode. */
export const factTypes = [
  "agent.prompt.submitted",
  "agent.session.started",
  "agent.session.ended",
  "agent.turn.completed",
  "agent.subagent.started",
  "agent.model.completed",
  "agent.tool.requested",
  "agent.tool.authorized",
  "agent.tool.denied",
  "agent.tool.deferred",
  "agent.tool.completed",
  "agent.permission.refused",
  "agent.effect.ungated",
  "agent.effect.receipted",
] as const;
export type FactType = (typeof factTypes)[number];

/** What an event is to its episode. */
export const factKinds = [
  "prompt",
  "session",
  "ended",
  "turn",
  "subagent",
  "model",
  "requested",
  "decision",
  "completed",
  "refused",
  "ungated",
  "receipted",
] as const;
export type FactKind = (typeof factKinds)[number];

/** One event as its episode sees it. Names are those of the columns; amounts are decimal text, as JSON has no bigint. */
export interface Fact {
  readonly event_id: string;
  readonly episode_id: string;
  readonly tenant_id: string;
  readonly correlation_id: string;
  readonly kind: FactKind;
  readonly recorded_at: string;
  readonly environment: string;
  readonly runtime_kind: string;
  readonly user_id: string | null;
  readonly agent_id: string | null;
  readonly session_id: string | null;
  readonly call_key: string | null;
  readonly tool: string | null;
  readonly action: string | null;
  readonly resource: string | null;
  readonly effect_class: string | null;
  readonly plan_digest: string | null;
  readonly decision: string | null;
  readonly reason_code: string | null;
  readonly outcome: string | null;
  readonly duration_ms: string | null;
  readonly preview: string | null;
  readonly working_directory: string | null;
  readonly model: string | null;
  readonly input_tokens: string | null;
  readonly cached_input_tokens: string | null;
  readonly output_tokens: string | null;
  readonly cost_micros: string | null;
  /** Facts of one model call share it; null where the runtime has no id for it. */
  readonly model_call: string | null;
}

/** What one kind of event adds to the shared part. */
type Own = { readonly kind: FactKind } & Partial<Omit<Fact, "kind">>;

const previewMaxChars = 256;
const resourceMaxChars = 512;
/** No model call reads more tokens, takes longer or costs more than this; it also keeps sums of millions inside a bigint. */
const amountMax = 1_000_000_000n;

/** An event as a fact about its episode. */
export function toFact(event: Envelope<FactType>): Fact {
  const own = toOwn(event);
  return {
    event_id: event.event_id.slice("evt_".length),
    episode_id: episodeIdOf(event.tenant_id, event.correlation_id),
    tenant_id: clean(event.tenant_id),
    correlation_id: clean(event.correlation_id),
    recorded_at: new Date(event.recorded_at).toISOString(),
    environment: clean(event.environment),
    runtime_kind: clean(event.runtime.kind),
    user_id: clean(event.actor.user_id),
    agent_id: clean(event.actor.agent_id),
    session_id: clean(event.execution.session_id),
    call_key: callKinds.has(own.kind) ? callKeyOf(event) : null,
    tool: clean(event.subject?.tool ?? null),
    action: clean(event.subject?.action ?? null),
    resource: cut(clean(event.subject?.resource_ref ?? null), resourceMaxChars),
    effect_class: null,
    plan_digest: clean(event.plan_digest),
    decision: null,
    reason_code: null,
    outcome: null,
    duration_ms: null,
    preview: null,
    working_directory: null,
    model: null,
    input_tokens: null,
    cached_input_tokens: null,
    output_tokens: null,
    cost_micros: null,
    model_call: null,
    ...own,
  };
}

const callKinds: ReadonlySet<FactKind> = new Set([
  "requested",
  "decision",
  "completed",
  "refused",
  "ungated",
  "receipted",
]);

function toOwn(event: Envelope<FactType>): Own {
  switch (event.type) {
    case "agent.prompt.submitted":
      return { kind: "prompt", preview: toPreview(event.redacted_summary.preview) };
    case "agent.session.started": {
      const { working_directory, model } = event.redacted_summary;
      return { kind: "session", working_directory: toPlace(working_directory), model: clean(model) };
    }
    case "agent.session.ended":
      return { kind: "ended" };
    case "agent.turn.completed":
      return { kind: "turn", outcome: known(event.redacted_summary.outcome) };
    case "agent.subagent.started":
      return { kind: "subagent" };
    case "agent.model.completed": {
      const { model, outcome, duration_ms, model_call_id, ...counted } = event.redacted_summary;
      const { session_id, attempt } = event.execution;
      return {
        kind: "model",
        model: clean(model),
        outcome: known(outcome),
        duration_ms: toAmount(duration_ms),
        input_tokens: toAmount(counted.input_tokens),
        cached_input_tokens: toAmount(counted.cached_input_tokens),
        output_tokens: toAmount(counted.output_tokens),
        cost_micros: toAmount(counted.cost_micros),
        model_call:
          model_call_id === null ? null : toKey(JSON.stringify([session_id, model_call_id, attempt])),
      };
    }
    case "agent.tool.requested": {
      const { effect_class, input_preview, working_directory } = event.redacted_summary;
      return {
        kind: "requested",
        effect_class,
        preview: toPreview(input_preview),
        working_directory: toPlace(working_directory),
      };
    }
    case "agent.tool.authorized":
      return toDecision(event, event.redacted_summary.modified ? "modify" : "allow");
    case "agent.tool.denied":
      return toDecision(event, "deny");
    case "agent.tool.deferred":
      return toDecision(event, "defer");
    case "agent.tool.completed": {
      const { outcome, duration_ms } = event.redacted_summary;
      return { kind: "completed", outcome: known(outcome), duration_ms: toAmount(duration_ms) };
    }
    case "agent.permission.refused":
      return { kind: "refused", outcome: "blocked", reason_code: event.redacted_summary.refused_by };
    case "agent.effect.ungated":
      return { kind: "ungated", effect_class: event.redacted_summary.effect_class };
    case "agent.effect.receipted": {
      const { effect_class, outcome, duration_ms } = event.redacted_summary;
      return {
        kind: "receipted",
        effect_class,
        outcome: known(outcome),
        duration_ms: toAmount(duration_ms),
      };
    }
  }
}

/** A refusal that asks for a person travels as a denial; the policy says which it was. */
function toDecision(
  event: Envelope<"agent.tool.authorized" | "agent.tool.denied" | "agent.tool.deferred">,
  byType: string,
): Own {
  return {
    kind: "decision",
    effect_class: event.redacted_summary.effect_class,
    decision: known(event.policy?.decision ?? null) ?? byType,
    reason_code: clean(event.policy?.reason_code ?? null),
  };
}

/** Runtimes count their calls per session; one without ids is told apart by what was planned, then by the event itself. */
function callKeyOf(event: Envelope): string {
  const { session_id, turn_id, tool_call_id } = event.execution;
  const call =
    tool_call_id === null
      ? event.plan_digest === null
        ? ["event", event.event_id]
        : ["plan", turn_id, event.plan_digest]
      : ["call", tool_call_id];
  return toKey(JSON.stringify([session_id, ...call]));
}

/** An index row holds 2,700 bytes; no runtime's id comes near. */
function toKey(text: string): string {
  return cut(clean(text), 600);
}

function toPreview(text: string): string {
  return cut(clean(text), previewMaxChars);
}

function toPlace(folder: string | null): string | null {
  return cut(clean(folder), resourceMaxChars);
}

function known<T extends string>(symbol: T | "unknown" | null): T | null {
  return symbol === "unknown" ? null : symbol;
}

/** What is below zero or past every bound is a mistake of its reporter, and counts as the bound. */
function toAmount(amount: bigint | null): string | null {
  if (amount === null) return null;
  return (amount < 0n ? 0n : amount > amountMax ? amountMax : amount).toString();
}
