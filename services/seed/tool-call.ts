import type { Policy, Subject } from "../../schemas/generated/types.ts";
import type { Random } from "./random.ts";
import type { Recorder } from "./recorder.ts";
import type { CallKind } from "./world.ts";

/** Who calls, and what the events of the call have in common. */
export interface Caller {
  readonly sessionId: string;
  readonly turnId: string;
  readonly agentId: string | null;
  readonly approverId: string;
  readonly revision: string;
}

interface Call {
  readonly kind: CallKind;
  readonly preview: string;
  readonly policy: Policy;
  readonly rest: {
    readonly agent_id?: string;
    readonly execution: {
      readonly session_id: string;
      readonly turn_id: string;
      readonly tool_call_id: string;
    };
    readonly subject: Subject;
    readonly plan_digest: string;
    readonly policy: Policy;
  };
}

const approvalLifeMs = 15 * 60_000;
const capabilityLifeMs = 5 * 60_000;
const deferLifeMs = 10 * 60_000;
/** Medians of what happens between a request and its end. */
const decideMs = 4;
const approvalWaitMs = 90_000;
const receiptMs = 1_800;

/** One tool call from the request to its end, whatever that is. */
export function recordToolCall(random: Random, to: Recorder, kind: CallKind, caller: Caller): void {
  const number = String(random.between(1, 400));
  const call = toCall(random, kind, number, caller);
  const asked = request(to, call);
  to.wait(random.skewed(decideMs, 0.5));
  switch (kind.verdict) {
    case "allow":
      carryOut(random, to, call, asked, null);
      return;
    case "deny":
      deny(random, to, call, asked, kind.reason);
      return;
    case "defer":
      to.record(
        "agent.tool.deferred",
        {
          decision_id: `dec_${random.uuidV7(to.nowMs())}`,
          effect_class: kind.effect,
          message: "the state of the resource is not known; try again",
          waits_for: ["resource_state"],
          deadline_at: to.nowMs() + deferLifeMs,
        },
        call.rest,
        { causationId: asked },
      );
      return;
    case "require_approval":
      approve(random, to, call, asked, caller);
      return;
  }
}

function toCall(random: Random, kind: CallKind, number: string, caller: Caller): Call {
  const policy: Policy = {
    revision: caller.revision,
    risk: kind.risk,
    decision: kind.verdict,
    reason_code: kind.reason,
    matched_rules: kind.verdict === "deny" ? [kind.rule, "allow-workspace"] : [kind.rule],
  };
  return {
    kind,
    preview: kind.preview.replace("#", number),
    policy,
    rest: {
      ...(caller.agentId === null ? {} : { agent_id: caller.agentId }),
      execution: {
        session_id: caller.sessionId,
        turn_id: caller.turnId,
        tool_call_id: `call_${random.hex(20)}`,
      },
      subject: {
        tool: kind.tool,
        action: kind.action,
        resource_ref: kind.resource.replace("#", number),
        data_class: kind.dataClass,
      },
      plan_digest: `sha256:${random.hex(64)}`,
      policy,
    },
  };
}

function request(to: Recorder, call: Call): string {
  const { policy: _policy, ...rest } = call.rest;
  return to.record(
    "agent.tool.requested",
    {
      effect_class: call.kind.effect,
      input_bytes: call.preview.length,
      input_preview: call.preview,
      paths: [],
      working_directory: "/home/dev/repo",
      tool_alias: null,
    },
    rest,
    { payloadRef: `vault://seed/${call.rest.execution.tool_call_id}` },
  );
}

function deny(random: Random, to: Recorder, call: Call, asked: string, reason: string): void {
  const policy: Policy = { ...call.policy, decision: "deny", reason_code: reason };
  to.record(
    "agent.tool.denied",
    {
      decision_id: `dec_${random.uuidV7(to.nowMs())}`,
      effect_class: call.kind.effect,
      message: "the policy refuses this",
    },
    { ...call.rest, policy },
    { causationId: asked },
  );
}

/** An allowed call: its right where it has effects, the work, the result. */
function carryOut(random: Random, to: Recorder, call: Call, asked: string, approvalId: string | null): void {
  const { kind } = call;
  const decisionId = `dec_${random.uuidV7(to.nowMs())}`;
  const isRead = kind.effect === "read" || kind.effect === "none";
  const capabilityId = isRead ? null : `cap_${random.uuidV7(to.nowMs())}`;
  const policy: Policy = { ...call.policy, decision: "allow" };
  const rest = {
    ...call.rest,
    policy,
    ...(capabilityId === null ? {} : { capability_id: capabilityId }),
  };
  const decided = to.record(
    "agent.tool.authorized",
    { decision_id: decisionId, effect_class: kind.effect, modified: false },
    rest,
    { causationId: asked },
  );
  if (approvalId !== null)
    to.record(
      "agent.approval.consumed",
      { decision_id: decisionId },
      { ...call.rest, policy: { ...policy, decision: null }, approval_id: approvalId },
      { causationId: asked },
    );
  if (capabilityId !== null)
    to.record(
      "agent.capability.issued",
      { effect_class: kind.effect, expires_at: to.nowMs() + capabilityLifeMs, max_calls: 1 },
      { ...rest, policy: { ...policy, decision: null } },
      { causationId: decided },
    );
  if (approvalId !== null && capabilityId !== null) sendEffect(random, to, call, capabilityId, approvalId);
  else to.wait(random.skewed(kind.durationMs, 0.8));
  complete(random, to, call, decided);
}

/** The execution gateway's part: the right is spent, the effect is sent, the resource answers or does not. */
function sendEffect(
  random: Random,
  to: Recorder,
  call: Call,
  capabilityId: string,
  approvalId: string,
): void {
  const { effect } = call.kind;
  const rest = {
    ...call.rest,
    policy: { ...call.policy, decision: null },
    capability_id: capabilityId,
    approval_id: approvalId,
    effect_id: `eff_${random.uuidV7(to.nowMs())}`,
  };
  to.record(
    "agent.capability.spent",
    { usage_id: `use_${random.hex(16)}`, calls: 1, calls_used: 1, max_calls: 1 },
    { ...call.rest, policy: rest.policy, capability_id: capabilityId, user_id: "runner" },
  );
  to.record(
    "agent.effect.attempted",
    { effect_class: effect, connector: "http", idempotency_key_digest: `sha256:${random.hex(64)}` },
    rest,
  );
  const durationMs = random.skewed(receiptMs, 0.7);
  to.wait(durationMs);
  if (random.chance(0.05)) {
    to.record("agent.effect.unresolved", { effect_class: effect, cause: "timeout" }, rest);
    to.wait(random.skewed(60_000, 0.5));
    const outcome = random.chance(0.7) ? "succeeded" : "failed";
    to.record(
      "agent.effect.reconciled",
      { effect_class: effect, outcome, reconciled_by: "reconciler" },
      rest,
    );
    return;
  }
  const fails = random.chance(0.06);
  to.record(
    "agent.effect.receipted",
    {
      effect_class: effect,
      outcome: fails ? "failed" : "succeeded",
      duration_ms: BigInt(durationMs),
      status: fails ? "503" : "200",
    },
    { ...rest, receipt_id: `rcp_${random.uuidV7(to.nowMs())}` },
  );
}

function complete(random: Random, to: Recorder, call: Call, decided: string): void {
  const fails = random.chance(0.07);
  const summary = {
    outcome: fails ? "failed" : "succeeded",
    duration_ms: BigInt(random.skewed(Math.max(1, call.kind.durationMs), 0.6)),
    output_bytes: random.skewed(1_800, 1.1),
    output_preview: null,
    error_preview: fails ? "exit code 1" : null,
    tool_alias: null,
  } as const;
  const { policy: _policy, ...rest } = call.rest;
  to.record("agent.tool.completed", summary, rest, { causationId: decided });
  // Some runtimes tell of one result by two hooks.
  if (random.chance(0.01)) to.record("agent.tool.completed", summary, rest, { causationId: decided });
}

/** A person is asked; the call comes again with an id of its own once the answer is there. */
function approve(random: Random, to: Recorder, call: Call, asked: string, caller: Caller): void {
  const { kind } = call;
  const approvalId = `apr_${random.uuidV7(to.nowMs())}`;
  const decisionId = `dec_${random.uuidV7(to.nowMs())}`;
  const expiresAt = to.nowMs() + approvalLifeMs;
  const rest = { ...call.rest, approval_id: approvalId };
  to.record(
    "agent.effect.prepared",
    { decision_id: decisionId, effect_class: kind.effect, plan_preview: call.preview, expires_at: expiresAt },
    rest,
    { causationId: asked },
  );
  const requested = to.record(
    "agent.approval.requested",
    {
      decision_id: decisionId,
      effect_class: kind.effect,
      risk_score: random.between(60, 95),
      expires_at: expiresAt,
      message: "a person has to agree to this",
    },
    rest,
    { causationId: asked },
  );
  const answer = {
    policy: { ...call.policy, decision: null, reason_code: null },
    subject: call.rest.subject,
    plan_digest: call.rest.plan_digest,
    approval_id: approvalId,
    execution: { session_id: caller.sessionId },
  };
  const fate = random.unit();
  if (fate < 0.07) {
    to.wait(approvalLifeMs);
    to.record("agent.approval.expired", { decision_id: decisionId, expired_at: expiresAt }, answer, {
      causationId: requested,
      origin: "schedule",
      userId: null,
    });
    return;
  }
  to.wait(Math.min(random.skewed(approvalWaitMs, 0.9), approvalLifeMs - 1_000));
  const byPerson = { causationId: requested, origin: "human", userId: caller.approverId };
  const said = { decision_id: decisionId, requester_id: null, note: null, decided_at: to.nowMs() };
  if (fate < 0.17) {
    to.record("agent.approval.refused", said, answer, byPerson);
    return;
  }
  to.record("agent.approval.granted", said, answer, byPerson);
  to.wait(random.skewed(4_000, 0.6));
  const execution = { ...call.rest.execution, tool_call_id: `call_${random.hex(20)}` };
  const again: Call = { ...call, rest: { ...call.rest, execution } };
  const askedAgain = request(to, again);
  to.wait(random.skewed(decideMs, 0.5));
  carryOut(random, to, again, askedAgain, approvalId);
}
