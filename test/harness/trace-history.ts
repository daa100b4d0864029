import { eventOf } from "../../processors/kit/given.ts";
import type { EventType } from "../../schemas/catalog.ts";
import type { Draft, Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Decision, Execution } from "../../schemas/generated/types.ts";

/** A span and its parent, each by what its id is made from; the root is `["goal"]`. */
export interface ExpectedSpan {
  readonly identity: string;
  readonly parent: string | null;
}

/** Events of one correlation, in the order in which they happened, with the tree that they make. */
export interface TraceHistory {
  readonly tenantId: string;
  readonly correlationId: string;
  readonly events: readonly Envelope[];
  readonly expected: readonly ExpectedSpan[];
}

export interface HistoryOptions {
  readonly seed: number;
  readonly calls: number;
  readonly startMs?: number;
  readonly traceparent?: string;
  readonly correlationId?: string;
}

const goal = JSON.stringify(["goal"]);
const ref = (...parts: readonly string[]): string => JSON.stringify(parts);

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * A session with turns, model calls, tool calls of every fate, approvals, rights, effects and child agents. The expected
 * tree is written down beside the events, by hand as it were: nothing of the processor is used.
 */
export function traceHistory(options: HistoryOptions): TraceHistory {
  const random = randomOf(options.seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const tenantId = "acme";
  const correlationId = options.correlationId ?? `cor_${String(options.seed)}`;
  const session = `s${String(options.seed)}`;
  let nowMs = options.startMs ?? 1_767_225_600_000;
  let made = 0;
  const events: Envelope[] = [];
  const expected: ExpectedSpan[] = [{ identity: goal, parent: null }];
  const span = (identity: string, parent: string): string => {
    expected.push({ identity, parent });
    return identity;
  };
  function say<T extends EventType>(
    one: Draft<T>,
    place: Partial<Execution>,
    causationId: string | null = null,
  ): Envelope<T> {
    made += 1;
    nowMs += 1 + Math.floor(random() * 50);
    const hex = (options.seed * 100_000 + made).toString(16).padStart(12, "0");
    const event = eventOf(
      { ...one, execution: { session_id: session, ...place } },
      {
        eventId: `evt_01900000-0000-7000-8000-${hex}`,
        tenantId,
        correlationId,
        recordedAtMs: nowMs,
        causationId,
        traceparent: options.traceparent ?? null,
      },
    );
    events.push(event as Envelope);
    return event;
  }
  const policy = (decision: Decision) => ({
    revision: "policy@1",
    risk: "low" as const,
    decision,
    reason_code: "BY_TEST",
    matched_rules: ["rule-a"],
  });

  const sessionSpan = span(ref("session", session), goal);
  say(draft("agent.session.started", { source: "startup", model: "claude-x", working_directory: null }), {});
  let turn = "";
  let turnSpan = sessionSpan;
  for (let n = 0; n < options.calls; n += 1) {
    if (n % 4 === 0) {
      if (turn !== "") {
        say(
          draft("agent.turn.completed", {
            outcome: "succeeded",
            error_kind: null,
            final_message_bytes: 1,
            continued_by_hook: false,
            background_tasks: 0,
          }),
          { turn_id: turn },
        );
      }
      turn = `t${String(n)}`;
      turnSpan = span(ref("turn", session, turn), sessionSpan);
      say(draft("agent.turn.started", { trigger: "prompt" }), { turn_id: turn });
    }
    const place: Partial<Execution> = { turn_id: turn };
    let home = turnSpan;
    let agent: string | undefined;
    if (random() < 0.2) {
      agent = `a${String(n)}`;
      const spawn = `spawn${String(n)}`;
      const spawnCall = span(ref("call", session, spawn), turnSpan);
      const asked = toolRequested("agent.spawn", { ...place, tool_call_id: spawn });
      rule(
        asked,
        spawnCall,
        { ...place, tool_call_id: spawn },
        "allow",
        `dec_${correlationId}_s${String(n)}`,
      );
      home = span(ref("agent", session, agent), spawnCall);
      say(
        draft("agent.subagent.started", { subagent_id: agent, subagent_kind: "explorer" }),
        place,
        asked.event_id,
      );
    }
    if (random() < 0.5) {
      const model = say(
        draft(
          "agent.model.completed",
          {
            model: "claude-x",
            outcome: random() < 0.1 ? "failed" : "succeeded",
            input_tokens: 100n,
            cached_input_tokens: 10n,
            cache_write_tokens: null,
            output_tokens: 20n,
            reasoning_tokens: null,
            duration_ms: 5n,
            cost_micros: 12n,
            error_kind: null,
            model_call_id: null,
          },
          agent === undefined ? {} : { agent_id: agent },
        ),
        place,
      );
      span(ref("model", model.event_id), home);
    }
    call(n, place, home, agent);
    if (agent !== undefined) {
      say(
        draft("agent.subagent.stopped", {
          subagent_id: agent,
          subagent_kind: "explorer",
          outcome: "succeeded",
          final_message_bytes: null,
        }),
        place,
      );
      completed(`spawn${String(n)}`, place, "succeeded", null, undefined);
      span(ref("run", session, `spawn${String(n)}`), ref("call", session, `spawn${String(n)}`));
    }
  }
  say(
    draft("agent.turn.completed", {
      outcome: "succeeded",
      error_kind: null,
      final_message_bytes: 1,
      continued_by_hook: false,
      background_tasks: 0,
    }),
    { turn_id: turn },
  );
  say(draft("agent.session.ended", { reason: "exit" }), {});
  return { tenantId, correlationId, events, expected };

  function call(n: number, place: Partial<Execution>, home: string, agent: string | undefined): void {
    const hasId = random() < 0.8;
    const id = hasId ? `c${String(n)}` : null;
    const at = { ...place, tool_call_id: id };
    const asked = toolRequested("shell.run", at, agent);
    const callSpan = span(
      hasId ? ref("call", session, `c${String(n)}`) : ref("call", asked.event_id.slice(4)),
      home,
    );
    const decisionId = `dec_${correlationId}_${String(n)}`;
    const fate = pick(["allow", "allow", "allow", "deny", "defer", "approval", "effect"]);
    const rest = agent === undefined ? {} : { agent_id: agent };
    if (fate === "deny" || fate === "defer") {
      rule(asked, callSpan, at, fate, decisionId, agent);
      return;
    }
    if (fate === "approval") {
      const decision = rule(asked, callSpan, at, "require_approval", decisionId, agent);
      const approvalId = `apr_${correlationId}_${String(n)}`;
      span(ref("approval", approvalId), decision);
      const until = nowMs + 60_000;
      say(
        draft(
          "agent.approval.requested",
          { decision_id: decisionId, effect_class: "write", risk_score: 3, expires_at: until, message: "m" },
          { ...rest, approval_id: approvalId },
        ),
        at,
        asked.event_id,
      );
      const decided = {
        decision_id: decisionId,
        requester_id: null,
        note: null,
        decided_at: nowMs,
      };
      const about = { ...rest, approval_id: approvalId };
      switch (pick(["granted", "refused", "expired"])) {
        case "granted":
          say(draft("agent.approval.granted", decided, about), {}, asked.event_id);
          break;
        case "refused":
          say(draft("agent.approval.refused", decided, about), {}, asked.event_id);
          break;
        default:
          say(
            draft("agent.approval.expired", { decision_id: decisionId, expired_at: until }, about),
            {},
            asked.event_id,
          );
      }
      return;
    }
    rule(asked, callSpan, at, "allow", decisionId, agent);
    if (fate === "effect") {
      const capabilityId = `cap_${correlationId}_${String(n)}`;
      const right = span(ref("capability", capabilityId), callSpan);
      const about = { ...rest, capability_id: capabilityId };
      say(
        draft(
          "agent.capability.issued",
          { effect_class: "write", expires_at: nowMs + 9_000, max_calls: 1 },
          about,
        ),
        at,
        asked.event_id,
      );
      span(ref("spend", capabilityId, `use${String(n)}`), right);
      say(
        draft(
          "agent.capability.spent",
          { usage_id: `use${String(n)}`, calls: 1, calls_used: 1, max_calls: 1 },
          { capability_id: capabilityId },
        ),
        {},
        asked.event_id,
      );
      const effectId = `eff_${correlationId}_${String(n)}`;
      const effect = span(ref("effect", effectId), hasId ? callSpan : right);
      const facts = { ...about, effect_id: effectId };
      say(
        draft(
          "agent.effect.attempted",
          { effect_class: "write", connector: "http", idempotency_key_digest: null },
          facts,
        ),
        at,
        asked.event_id,
      );
      if (random() < 0.5) {
        say(
          draft(
            "agent.effect.receipted",
            { effect_class: "write", outcome: "succeeded", duration_ms: 3n, status: "200" },
            { ...facts, receipt_id: `rcp_${String(n)}` },
          ),
          at,
        );
      } else {
        say(draft("agent.effect.unresolved", { effect_class: "write", cause: "timeout" }, facts), at);
        if (random() < 0.5) {
          const settled = say(
            draft(
              "agent.effect.reconciled",
              { effect_class: "write", outcome: "succeeded", reconciled_by: "reconciler" },
              facts,
            ),
            at,
          );
          span(ref("reconciliation", settled.event_id), effect);
        }
      }
    }
    completed(id, place, pick(["succeeded", "succeeded", "failed"]), asked.event_id, agent);
    span(id === null ? ref("run", asked.event_id.slice(4)) : ref("run", session, id), callSpan);
  }

  function toolRequested(tool: string, at: Partial<Execution>, agent?: string) {
    return say(
      draft(
        "agent.tool.requested",
        {
          effect_class: "write",
          input_bytes: 2,
          input_preview: "{}",
          paths: [],
          working_directory: null,
          tool_alias: null,
        },
        {
          subject: { tool, action: "run", resource_ref: null, data_class: "internal" },
          ...(agent === undefined ? {} : { agent_id: agent }),
        },
      ),
      at,
    );
  }

  function rule(
    asked: Envelope,
    callSpan: string,
    at: Partial<Execution>,
    decision: Decision,
    decisionId: string,
    agent?: string,
  ): string {
    const rest = {
      policy: policy(decision),
      subject: asked.subject ?? {
        tool: null,
        action: null,
        resource_ref: null,
        data_class: "unknown" as const,
      },
      ...(agent === undefined ? {} : { agent_id: agent }),
    };
    const told = { decision_id: decisionId, effect_class: "write" as const };
    if (decision === "allow") {
      say(draft("agent.tool.authorized", { ...told, modified: false }, rest), at, asked.event_id);
    } else if (decision === "defer") {
      say(
        draft(
          "agent.tool.deferred",
          { ...told, message: "later", waits_for: ["fact"], deadline_at: nowMs + 1_000 },
          rest,
        ),
        at,
        asked.event_id,
      );
    } else {
      say(draft("agent.tool.denied", { ...told, message: "no" }, rest), at, asked.event_id);
    }
    return span(ref("decision", decisionId), callSpan);
  }

  function completed(
    id: string | null,
    place: Partial<Execution>,
    outcome: "succeeded" | "failed",
    causationId: string | null,
    agent: string | undefined,
  ): void {
    say(
      draft(
        "agent.tool.completed",
        {
          outcome,
          duration_ms: 4n,
          output_bytes: null,
          output_preview: null,
          error_preview: null,
          tool_alias: null,
        },
        agent === undefined ? {} : { agent_id: agent },
      ),
      { ...place, tool_call_id: id },
      causationId,
    );
  }
}
