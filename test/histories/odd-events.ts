import { createHash } from "node:crypto";
import { episodeIdOf } from "../../processors/eval/episode-id.ts";
import type { Evidence, EvidenceType } from "../../processors/takeover/evidence.ts";
import { evidenceTypes, toEvidence } from "../../processors/takeover/evidence.ts";
import type { EventType } from "../../schemas/catalog.ts";
import type { Draft, Envelope } from "../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import type { Policy, Summaries } from "../../schemas/generated/types.ts";
import type { Random } from "../../services/seed/random.ts";

type Rest = Omit<Draft, "type" | "redacted_summary">;

const hourMs = 3_600_000;
const people = ["ann", "bob", "eve"] as const;
const effect = "write";

/** An event of the same goal as `base`, near it in time, early as often as late. */
function say<T extends EventType>(
  random: Random,
  base: Envelope,
  type: T,
  summary: Summaries[T],
  rest: Rest = {},
): Envelope {
  const at =
    base.recorded_at + random.pick([0, 1, -1, random.between(-hourMs, hourMs), random.between(0, 9)]);
  const given = {
    execution: base.execution,
    ...(base.subject === null ? {} : { subject: base.subject }),
    ...(base.policy === null ? {} : { policy: base.policy }),
    ...(base.plan_digest === null ? {} : { plan_digest: base.plan_digest }),
    ...(base.effect_id === null ? {} : { effect_id: base.effect_id }),
    ...(base.approval_id === null ? {} : { approval_id: base.approval_id }),
    ...(base.capability_id === null ? {} : { capability_id: base.capability_id }),
    ...(base.actor.agent_id === null ? {} : { agent_id: base.actor.agent_id }),
    ...rest,
  } as Omit<Draft<T>, "type" | "redacted_summary">;
  return toEnvelope(draft(type, summary, given) as Draft, {
    eventId: `evt_${random.uuidV7(at)}`,
    recordedAtMs: at,
    tenantId: base.tenant_id,
    environment: base.environment,
    runtime: base.runtime,
    correlationId: base.correlation_id,
    origin: random.pick(["human", "agent", "schedule"]),
    userId: base.actor.user_id,
    causationId: random.chance(0.5) ? base.event_id : null,
  });
}

/** A model call with numbers that cannot be. */
export function impossibleCall(random: Random, base: Envelope): Envelope {
  return say(random, base, "agent.model.completed", {
    ...model(random),
    ...random.pick<Partial<Summaries["agent.model.completed"]>>([
      { input_tokens: -5n },
      { input_tokens: 10n, cached_input_tokens: 11n },
      { cost_micros: -1n },
    ]),
  });
}

function model(random: Random): Summaries["agent.model.completed"] {
  const isMeasured = random.chance(0.6);
  return {
    model: random.pick(["claude-sonnet-4-5", "nobody-lists-this", "claude-opus-4-1"]),
    outcome: "succeeded",
    input_tokens: isMeasured ? BigInt(random.between(900, 90_000)) : null,
    cached_input_tokens: isMeasured ? BigInt(random.between(0, 900)) : null,
    cache_write_tokens: null,
    output_tokens: isMeasured ? BigInt(random.between(0, 5_000)) : null,
    reasoning_tokens: null,
    duration_ms: random.chance(0.5) ? BigInt(random.between(0, 90_000)) : null,
    cost_micros: random.chance(0.5) ? BigInt(random.between(0, 90_000)) : null,
    error_kind: null,
    // Few ids: two reports of one call are no rarity here.
    model_call_id: random.chance(0.6) ? `api:${String(random.between(1, 3))}` : null,
  };
}

/** One odd event about `base`, which has the fields that its kind needs or not. */
type Maker = (random: Random, base: Envelope) => Envelope;

const decisionOf = (random: Random, base: Envelope): string =>
  "decision_id" in base.redacted_summary ? base.redacted_summary.decision_id : `dec_${random.hex(8)}`;
const effectOf = (random: Random, base: Envelope): Rest =>
  base.effect_id === null ? { effect_id: `eff_${String(random.between(1, 40))}` } : {};
const approvalOf = (random: Random, base: Envelope): Rest =>
  base.approval_id === null ? { approval_id: `apr_${String(random.between(1, 40))}` } : {};
const capabilityOf = (random: Random, base: Envelope): Rest =>
  base.capability_id === null ? { capability_id: `cap_${String(random.between(1, 40))}` } : {};
const refusal = (random: Random, base: Envelope): Policy => ({
  revision: base.policy?.revision ?? "policy@r1",
  risk: "high",
  decision: "deny",
  reason_code: random.pick(["GATE_TIMEOUT", "DEFER_EXPIRED", "FORCE_PUSH"]),
  matched_rules: ["r1", "r2"],
});

/** What the usual sessions do not tell of, or not in this order. */
const makers: Readonly<Record<string, Maker>> = {
  model: (random, base) => say(random, base, "agent.model.completed", model(random)),
  compacted: (random, base) =>
    say(random, base, "agent.session.compacted", { trigger: "automatic", summary_bytes: 5 }),
  started: (random, base) =>
    say(random, base, "agent.session.started", {
      source: random.pick(["resume", "fork", "clear"]),
      model: random.pick([null, "m1", "m2"]),
      working_directory: random.pick([null, "/home/dev/repo", "/srv/two"]),
    }),
  ended: (random, base) => say(random, base, "agent.session.ended", { reason: random.pick([null, "exit"]) }),
  turn: (random, base) =>
    say(random, base, "agent.turn.completed", {
      outcome: random.pick(["succeeded", "failed", "interrupted", "unknown"]),
      error_kind: random.pick([null, "overloaded"]),
      final_message_bytes: null,
      continued_by_hook: random.chance(0.3),
      background_tasks: 0,
    }),
  prompt: (random, base) =>
    say(random, base, "agent.prompt.submitted", {
      prompt_bytes: 3,
      preview: random.pick(["fix it", "Fix it ", "go on", "why\u0000?"]),
      command_name: null,
    }),
  lifecycle: (random, base) =>
    say(random, base, "agent.lifecycle.observed", { signal: "file_changed", detail: null, path: "/a" }),
  asked: (random, base) =>
    say(random, base, "agent.permission.requested", {
      effect_class: effect,
      input_preview: "{}",
      tool_alias: null,
    }),
  unasked: (random, base) =>
    say(random, base, "agent.permission.refused", {
      refused_by: random.pick(["user", "runtime", "gate"]),
      reason: null,
      tool_alias: null,
    }),
  denied: (random, base) =>
    say(
      random,
      base,
      "agent.tool.denied",
      { decision_id: decisionOf(random, base), effect_class: effect, message: "no" },
      { policy: refusal(random, base) },
    ),
  deferred: (random, base) =>
    say(random, base, "agent.tool.deferred", {
      decision_id: decisionOf(random, base),
      effect_class: effect,
      message: "wait",
      waits_for: random.pick([[], ["repo.state"], ["a", "b"]]),
      deadline_at: base.recorded_at + hourMs,
    }),
  answered: (random, base) =>
    say(random, base, "agent.deferral.answered", {
      decision_id: decisionOf(random, base),
      effect_class: effect,
      decision: random.pick(["allow", "deny", "require_approval"]),
      deferred_since_at: base.recorded_at,
    }),
  completed: (random, base) =>
    say(random, base, "agent.tool.completed", {
      outcome: random.pick(["succeeded", "failed", "blocked", "interrupted", "unknown"]),
      duration_ms: random.pick([null, 0n, 1_234n]),
      output_bytes: random.pick([null, 0, 3_000_000]),
      output_preview: null,
      error_preview: null,
      tool_alias: random.pick([null, "Bash"]),
    }),
  prepared: (random, base) =>
    say(
      random,
      base,
      "agent.effect.prepared",
      {
        decision_id: decisionOf(random, base),
        effect_class: effect,
        plan_preview: "{}",
        expires_at: base.recorded_at + hourMs,
      },
      approvalOf(random, base),
    ),
  voided: (random, base) =>
    say(
      random,
      base,
      "agent.approval.voided",
      { decision_id: decisionOf(random, base), reason: "another plan" },
      approvalOf(random, base),
    ),
  lapsed: (random, base) =>
    say(
      random,
      base,
      "agent.approval.expired",
      { decision_id: decisionOf(random, base), expired_at: base.recorded_at },
      approvalOf(random, base),
    ),
  consumed: (random, base) =>
    say(
      random,
      base,
      "agent.approval.consumed",
      { decision_id: decisionOf(random, base) },
      approvalOf(random, base),
    ),
  spent: (random, base) =>
    say(
      random,
      base,
      "agent.capability.spent",
      { usage_id: `use_${random.hex(4)}`, calls: 1, calls_used: random.between(1, 3), max_calls: 3 },
      capabilityOf(random, base),
    ),
  revoked: (random, base) =>
    say(
      random,
      base,
      "agent.capability.revoked",
      { reason: "left", scope: "session", calls_used: 0, max_calls: 2 },
      capabilityOf(random, base),
    ),
  rightEnded: (random, base) =>
    say(
      random,
      base,
      "agent.capability.expired",
      { expired_at: base.recorded_at, calls_used: 0, max_calls: 2 },
      capabilityOf(random, base),
    ),
  planRevoked: (random, base) =>
    say(random, base, "agent.plan.revoked", {
      reason: "wrong",
      capabilities: 1,
      expires_at: base.recorded_at + hourMs,
    }),
  attempted: (random, base) =>
    say(
      random,
      base,
      "agent.effect.attempted",
      { effect_class: effect, connector: "http", idempotency_key_digest: null },
      effectOf(random, base),
    ),
  receipted: (random, base) =>
    say(
      random,
      base,
      "agent.effect.receipted",
      {
        effect_class: effect,
        outcome: random.pick(["succeeded", "failed", "unknown"]),
        duration_ms: random.pick([null, 70n]),
        status: null,
      },
      { ...effectOf(random, base), receipt_id: `rcp_${random.hex(6)}` },
    ),
  unresolved: (random, base) =>
    say(
      random,
      base,
      "agent.effect.unresolved",
      { effect_class: effect, cause: random.pick(["timeout", "connection_lost", "crash"]) },
      effectOf(random, base),
    ),
  reconciled: (random, base) =>
    say(
      random,
      base,
      "agent.effect.reconciled",
      {
        effect_class: effect,
        outcome: random.pick(["succeeded", "failed", "unknown"]),
        reconciled_by: random.pick(["reconciler", "ann"]),
      },
      effectOf(random, base),
    ),
  ungated: (random, base) =>
    say(random, base, "agent.effect.ungated", {
      effect_class: effect,
      evidence: random.pick(["result_without_decision", "session_without_gate", "unfinished_item"]),
      detail: null,
    }),
  diverged: (random, base) =>
    say(random, base, "agent.plan.diverged", {
      decision_id: decisionOf(random, base),
      expected_digest: base.plan_digest ?? "sha256:none",
      actual_digest: null,
      detail: random.pick([null, "another host"]),
    }),
  labelled: (random, base) =>
    say(random, base, "agent.episode.labelled", {
      episode_id: random.chance(0.9)
        ? episodeIdOf(base.tenant_id, base.correlation_id)
        : `epi_${random.hex(8)}`,
      label: random.pick(["good", "bad", "unsafe"]),
      score: random.pick([null, 0, 80]),
      note: random.pick([null, "well done"]),
      author: random.pick(people),
      labelled_at: base.recorded_at + random.between(0, 3),
    }),
  unrecognized: (random, base) =>
    say(random, base, "fabric.adapter.unrecognized", {
      problem: random.pick(["wrong_type", "missing_field"]),
      field: random.pick([null, "/tool_input"]),
      event_name: random.pick([null, "PreToolUse"]),
      body_bytes: 9,
      gating: random.chance(0.7),
    }),
  activated: (random, base) =>
    say(random, base, "fabric.policy.activated", {
      bundle: "policy",
      revision: `policy@r${String(random.between(1, 3))}`,
      digest: random.hex(64),
      previous_revision: null,
      activated_by: random.pick(people),
    }),
  buried: (random, base) =>
    say(random, base, "fabric.letter.buried", {
      // A letter comes back now and then, also for another reason.
      letter_id: `ltr_${String(random.between(1, 40))}`,
      kind: "dead",
      fault_kind: "poison",
      code: random.pick(["BAD_NUMBER", "SCHEMA_INVALID"]),
      detail: "it cannot be",
      consumer: random.pick(["cost", "eval"]),
      consumer_version: "1",
      attempts: 1,
      source_topic: "agent.model.completed",
      source_partition: 0,
      source_offset: BigInt(random.between(0, 99)),
      source_event_id: base.event_id,
      accountable: "platform",
    }),
  redriven: (random, base) =>
    say(random, base, "fabric.letter.redriven", {
      letter_id: `ltr_${String(random.between(1, 40))}`,
      redrive_id: `rdr_${random.hex(8)}`,
      outcome: "processed",
      consumer: "cost",
      consumer_version: "1",
      attempts: 2,
      source_topic: "agent.model.completed",
      source_partition: 0,
      source_offset: 4n,
      source_event_id: base.event_id,
      redriven_by: random.pick(people),
    }),
  archived: (random, base) =>
    say(random, base, "fabric.letter.archived", {
      letter_id: `ltr_${String(random.between(1, 40))}`,
      kind: "dead",
      code: "BAD_NUMBER",
      consumer: "cost",
      attempts: 1,
      source_topic: "agent.model.completed",
      source_partition: 0,
      source_offset: 4n,
      source_event_id: base.event_id,
      archived_by: random.pick(people),
      reason: "no use",
    }),
  resumed: (random, base) =>
    say(random, base, "fabric.gap.resumed", {
      consumer: random.pick(["cost", "eval"]),
      source_topic: "agent.model.completed",
      source_partition: random.between(0, 2),
      cause: "retention",
      choice: "log_start",
      stopped_offset: 4n,
      resumed_offset: 40n,
      resumed_by: random.pick(people),
      reason: "looked",
    }),
  gap: (random, base) =>
    say(random, base, "fabric.gap.found", {
      consumer: random.pick(["cost", "eval"]),
      source_topic: "agent.model.completed",
      source_partition: random.between(0, 2),
      expected_offset: 4n,
      found_offset: 40n,
      cause: "retention",
    }),
  corrected: (random, base) =>
    say(random, base, "fabric.cost.corrected", {
      // The same correction may be told more than once, under other event ids and with another amount.
      correction_id: `cc_${String(random.between(1, 60))}`,
      corrects_event_id: random.chance(0.5) ? base.event_id : null,
      account: random.pick([
        "spend:model?model=claude-opus-4-1",
        "spend:tool?tool=web.fetch&user=ann",
        "spend:model",
      ]),
      amount_micros: BigInt(random.between(-60_000, 60_000)),
      // A repricing goes with its call, where a better report takes the call's place.
      cause: random.pick(["refund", "repriced"]),
      author: random.pick(people),
    }),
  // What was recorded before it is blank, whatever comes first.
  erased: (random, base) =>
    say(random, base, "fabric.tenant.erased", {
      erased_until_at: base.recorded_at - random.between(0, hourMs),
      erased_by: random.pick(people),
      reason: "contract ended",
    }),
  // The same month is closed more than once, by several: the first statement stands.
  closed: (random, base) =>
    say(random, base, "fabric.cost.closed", {
      period: random.pick(["2026-08", "2026-09"]),
      amount_micros: BigInt(random.between(0, 1_000_000)),
      carried_micros: BigInt(random.between(-5, 5)),
      calls: BigInt(random.between(0, 900)),
      unpriced_calls: 0n,
      closed_by: random.pick(people),
      note: random.pick([null, "looked at"]),
    }),
  anomalous: (random, base) =>
    say(random, base, "fabric.cost.anomalous", {
      scope: "tenant",
      scope_id: base.tenant_id,
      window_started_at: base.recorded_at,
      window_ms: 86_400_000n,
      observed_micros: 9_007_199_254_740_993n,
      expected_micros: 5n,
    }),
  crossed: (random, base) =>
    say(random, base, "fabric.budget.crossed", {
      budget_id: "tenant-month",
      scope: "tenant",
      scope_id: base.tenant_id,
      limit_kind: random.pick(["soft", "hard", "unknown"]),
      limit_micros: 5n,
      spent_micros: 6n,
      period: random.pick(["2026-09", "2026-10"]),
    }),
  tripped: (random, base) =>
    say(random, base, "fabric.breaker.tripped", {
      scope: "agent",
      scope_id: `agent_${String(random.between(1, 3))}`,
      measure: random.pick(["fan_out", "cost_rate"]),
      observed: 9n,
      threshold: 5n,
      window_ms: 60_000n,
      trip_id: null,
      window_ended_at: null,
      samples: null,
      resets_at: null,
    }),
  reset: (random, base) =>
    say(random, base, "fabric.breaker.reset", {
      scope: "agent",
      scope_id: `agent_${String(random.between(1, 3))}`,
      reset_by: random.pick(people),
      cause: "looked",
      trip_id: null,
    }),
};

/** Deeds on items that the evidence makes, on the next ones of the same cause, and on items that nobody knows. */
function deed(random: Random, about: Evidence, base: Envelope): Envelope {
  const itemId = random.chance(0.95)
    ? itemIdOf(about, random.pick([1, 1, 1, 2, 3]))
    : `tko_${random.hex(32)}`;
  const at = { item_id: itemId };
  switch (random.between(0, 6)) {
    case 0:
      return say(random, base, "fabric.takeover.claimed", {
        ...at,
        claimed_by: random.pick(people),
        lease_ends_at: base.recorded_at + hourMs,
      });
    case 1:
      return say(random, base, "fabric.takeover.noted", { ...at, author: random.pick(people), note: "seen" });
    case 2:
      return say(random, base, "fabric.takeover.reassigned", {
        ...at,
        from_person: null,
        to_person: random.pick(people),
        reassigned_by: random.pick(people),
      });
    case 3:
      return say(random, base, "fabric.takeover.breached", { ...at, due_at: base.recorded_at });
    case 4:
      return say(random, base, "fabric.takeover.opened", {
        ...at,
        cause: about.cause,
        cause_key: about.cause_key,
        title: about.title,
        due_at: base.recorded_at,
      });
    default:
      return say(random, base, "fabric.takeover.resolved", {
        ...at,
        resolved_by: random.pick(people),
        outcome: random.pick(["no_action", "incident_proposed", "fixed_elsewhere"]),
        note: random.pick([null, "done"]),
        proposal: null,
      });
  }
}

/** As the queue names its items: test/integration/takeover.test.ts holds the form. */
function itemIdOf({ tenant_id, cause, cause_key }: Evidence, generation: number): string {
  const name = [tenant_id, cause, cause_key, String(generation)].join("\u001F");
  return `tko_${createHash("sha256").update(name).digest("hex").slice(0, 32)}`;
}

const deedShare = 0.25;
/** Types that the kinds of odd events are most telling about. */
const telling: ReadonlySet<EventType> = new Set([
  "agent.effect.unresolved",
  "agent.effect.attempted",
  "agent.tool.deferred",
  "agent.approval.requested",
  "agent.approval.expired",
]);

/** `count` events beside what agents usually do: of each kind at least one where there is room. */
export function oddEvents(random: Random, usual: readonly Envelope[], count: number): readonly Envelope[] {
  const kinds = Object.values(makers);
  const rare = usual.filter((event) => telling.has(event.type));
  const events: Envelope[] = [];
  const pickBase = (): Envelope => {
    const from = rare.length > 0 && random.chance(0.5) ? rare : usual;
    const found = from[random.between(0, from.length - 1)];
    if (found === undefined) throw new Error("an odd event needs a usual one");
    return found;
  };
  for (let index = 0; index < Math.ceil(count * (1 - deedShare)); index += 1) {
    const make = index < kinds.length ? kinds[index] : kinds[random.between(0, kinds.length - 1)];
    if (make !== undefined) events.push(make(random, pickBase()));
  }
  const evidence = [...usual, ...events].flatMap((event) => {
    if (!(evidenceTypes as readonly EventType[]).includes(event.type)) return [];
    const row = toEvidence(event as Envelope<EvidenceType>);
    return row?.role === "opens" ? [{ row, event }] : [];
  });
  while (evidence.length > 0 && events.length < count) {
    const about = evidence[random.between(0, evidence.length - 1)];
    if (about !== undefined) events.push(deed(random, about.row, about.event));
  }
  return events;
}
