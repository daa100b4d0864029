import type { Envelope } from "../../schemas/envelope.ts";
import type { Random } from "./random.ts";
import { createRandom } from "./random.ts";
import type { Recorder } from "./recorder.ts";
import { createRecorder } from "./recorder.ts";
import type { Caller } from "./tool-call.ts";
import { recordToolCall } from "./tool-call.ts";
import { callKinds, models, runtimes, toTenants, toWorkMoment } from "./world.ts";

/** What the history is made from; the same plan gives the same events, byte for byte. */
export interface SeedPlan {
  readonly seed: number;
  readonly sessions: number;
  /** First day of the span, 00:00 UTC. */
  readonly startMs: number;
  readonly days: number;
  /** Names of the tenants begin with it. */
  readonly tenantPrefix: string;
}

const hourMs = 3_600_000;
const revisionDays = 21;
const prompts = [
  "fix the failing test in module #",
  "add a page for invoices, part #",
  "why does the build of branch # fail?",
  "deploy shop-# when the checks are green",
  "clean up the warnings in module #",
] as const;

/** All sessions one after the other, each as its events in the order in which they were recorded. */
export function* generateSessions(plan: SeedPlan): Generator<readonly Envelope[]> {
  for (let index = 0; index < plan.sessions; index += 1) yield generateSession(plan, index);
}

/** Session `index` of a plan; it depends on no other one. */
export function generateSession(plan: SeedPlan, index: number): readonly Envelope[] {
  const random = createRandom(plan.seed, index);
  const tenant = random.weighted(toTenants(plan.tenantPrefix));
  const person = `person-${String(random.between(1, tenant.people))}@${tenant.tenantId}.example`;
  const runtime = random.weighted(runtimes);
  const startMs = toWorkMoment(random, plan.startMs, plan.days);
  // A client's clock that is off by up to an hour is rare, and it happens.
  const skewMs = random.chance(0.005) ? random.between(-hourMs, hourMs) : -random.between(0, 40);
  const sessionId = `ses_${random.hex(24)}`;
  const to = createRecorder(
    random,
    startMs,
    {
      tenantId: tenant.tenantId,
      environment: random.chance(0.8) ? "development" : "production",
      runtime: {
        kind: runtime.kind,
        adapter_version: "1",
        runtime_version: runtime.version,
        permission_mode: random.chance(0.9) ? "default" : "bypass",
        sandbox: null,
      },
      correlationId: `cor_${random.uuidV7(startMs)}`,
      origin: "agent",
      userId: person,
    },
    skewMs,
  );
  const execution = { session_id: sessionId };
  const { model } = random.weighted(models);
  to.record(
    "agent.session.started",
    { source: "startup", model, working_directory: "/home/dev/repo" },
    { execution },
  );
  const turns = Math.min(random.skewed(2, 0.7), 12);
  const caller = {
    sessionId,
    approverId: `approver-${String(random.between(1, 5))}@${tenant.tenantId}.example`,
    revision: `policy@r${String(1 + Math.floor((startMs - plan.startMs) / (revisionDays * 24 * hourMs)))}`,
  };
  for (let turn = 1; turn <= turns; turn += 1)
    recordTurn(random, to, model, { ...caller, turnId: `turn-${String(turn)}`, agentId: null });
  to.wait(random.skewed(20_000, 1));
  to.record("agent.session.ended", { reason: "exit" }, { execution });
  return to.events;
}

function recordTurn(random: Random, to: Recorder, model: string, caller: Caller): void {
  const execution = { session_id: caller.sessionId, turn_id: caller.turnId };
  to.wait(random.skewed(30_000, 0.9));
  const preview = random.pick(prompts).replace("#", String(random.between(1, 40)));
  to.record(
    "agent.prompt.submitted",
    { prompt_bytes: preview.length, preview, command_name: null },
    { execution },
    { origin: "human" },
  );
  to.record("agent.turn.started", { trigger: "prompt" }, { execution });
  recordSteps(random, to, model, caller, Math.min(random.skewed(5, 0.8), 60));
  if (random.chance(0.12)) {
    const children = random.between(1, 4);
    for (let child = 0; child < children; child += 1) recordChild(random, to, model, caller);
  }
  to.record(
    "agent.turn.completed",
    {
      outcome: random.chance(0.95) ? "succeeded" : "interrupted",
      error_kind: null,
      final_message_bytes: random.skewed(700, 0.8),
      continued_by_hook: false,
      background_tasks: 0,
    },
    { execution },
  );
}

function recordChild(random: Random, to: Recorder, model: string, caller: Caller): void {
  const execution = { session_id: caller.sessionId, turn_id: caller.turnId };
  const agentId = `agent_${random.hex(12)}`;
  const child = { subagent_id: agentId, subagent_kind: random.pick(["explore", "test", "review"]) };
  const who = { execution, agent_id: agentId };
  to.record("agent.subagent.started", child, who);
  recordSteps(random, to, model, { ...caller, agentId }, random.between(1, 6));
  to.record("agent.subagent.stopped", { ...child, outcome: "succeeded", final_message_bytes: 400 }, who);
}

/** A model call, then what it asks for. */
function recordSteps(random: Random, to: Recorder, model: string, caller: Caller, steps: number): void {
  for (let step = 0; step < steps; step += 1) {
    const durationMs = random.skewed(3_500, 0.7);
    to.wait(durationMs);
    const input = random.skewed(18_000, 0.9);
    const cached = Math.floor(input * random.unit() * 0.9);
    const output = random.skewed(350, 0.9);
    to.record(
      "agent.model.completed",
      {
        model,
        outcome: random.chance(0.985) ? "succeeded" : "failed",
        input_tokens: BigInt(input),
        cached_input_tokens: BigInt(cached),
        cache_write_tokens: BigInt(Math.floor((input - cached) * 0.5)),
        output_tokens: BigInt(output),
        reasoning_tokens: BigInt(Math.floor(output * random.unit() * 0.5)),
        duration_ms: BigInt(durationMs),
        cost_micros: null,
        error_kind: null,
        model_call_id: null,
      },
      {
        execution: { session_id: caller.sessionId, turn_id: caller.turnId },
        ...(caller.agentId === null ? {} : { agent_id: caller.agentId }),
      },
    );
    recordToolCall(random, to, random.weighted(callKinds), caller);
  }
}
