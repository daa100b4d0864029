import { eventOf } from "../../processors/kit/given.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Decision, Outcome } from "../../schemas/generated/types.ts";

/** Where an event of a story stands. `n` gives its id and orders events of one moment. */
export interface At {
  readonly n: number;
  readonly atMs: number;
  readonly correlation?: string;
  readonly tenant?: string;
  readonly session?: string;
  readonly user?: string;
}

/** What a call was about. */
export interface CallStory {
  readonly id: string | null;
  readonly tool?: string;
  readonly resource?: string | null;
  readonly plan?: string;
  readonly input?: string;
  readonly folder?: string | null;
}

const eventIdOf = (n: number): string => `evt_01900000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;

/** 2026-01-01T00:00:00Z. */
export const storyStartMs = 1_767_225_600_000;

const contextOf = (at: At): Parameters<typeof eventOf>[1] => ({
  eventId: eventIdOf(at.n),
  recordedAtMs: storyStartMs + at.atMs,
  correlationId: at.correlation ?? "cor_1",
  tenantId: at.tenant ?? "acme",
  userId: at.user ?? "dana",
});
const executionOf = (at: At, call: CallStory | null = null) => ({
  session_id: at.session ?? "s1",
  turn_id: "t1",
  tool_call_id: call?.id ?? null,
});
const aboutOf = (at: At, call: CallStory) => ({
  execution: executionOf(at, call),
  plan_digest: `sha256:${call.plan ?? call.id ?? "0"}`,
  subject: {
    tool: call.tool ?? "shell.run",
    action: "run",
    resource_ref: call.resource === undefined ? "repo:x" : call.resource,
    data_class: "internal" as const,
  },
});

/** Events of a story, in few words. */
export const tell = {
  prompt: (at: At, preview: string): Envelope =>
    eventOf(
      draft(
        "agent.prompt.submitted",
        { prompt_bytes: preview.length, preview, command_name: null },
        { execution: executionOf(at) },
      ),
      contextOf(at),
    ),
  session: (at: At, folder: string | null): Envelope =>
    eventOf(
      draft(
        "agent.session.started",
        { source: "startup", model: "m1", working_directory: folder },
        { execution: executionOf(at) },
      ),
      contextOf(at),
    ),
  ended: (at: At): Envelope =>
    eventOf(draft("agent.session.ended", { reason: null }, { execution: executionOf(at) }), contextOf(at)),
  turn: (at: At, outcome: Outcome): Envelope =>
    eventOf(
      draft(
        "agent.turn.completed",
        {
          outcome,
          error_kind: null,
          final_message_bytes: null,
          continued_by_hook: false,
          background_tasks: 0,
        },
        { execution: executionOf(at) },
      ),
      contextOf(at),
    ),
  subagent: (at: At, subagentId: string): Envelope =>
    eventOf(
      draft(
        "agent.subagent.started",
        { subagent_id: subagentId, subagent_kind: null },
        { execution: executionOf(at) },
      ),
      contextOf(at),
    ),
  model: (
    at: At,
    inputTokens: bigint | null,
    outputTokens: bigint | null,
    costMicros: bigint | null,
    modelCallId: string | null = null,
  ): Envelope =>
    eventOf(
      draft(
        "agent.model.completed",
        {
          model: "m1",
          outcome: "succeeded",
          input_tokens: inputTokens,
          cached_input_tokens: inputTokens === null ? null : inputTokens / 2n,
          cache_write_tokens: null,
          output_tokens: outputTokens,
          reasoning_tokens: null,
          duration_ms: 5n,
          cost_micros: costMicros,
          error_kind: null,
          model_call_id: modelCallId,
        },
        { execution: executionOf(at) },
      ),
      contextOf(at),
    ),
  erased: (at: At, untilMs: number): Envelope =>
    eventOf(
      draft("fabric.tenant.erased", { erased_until_at: untilMs, erased_by: "eve", reason: "contract ended" }),
      contextOf(at),
    ),
  requested: (at: At, call: CallStory): Envelope =>
    eventOf(
      draft(
        "agent.tool.requested",
        {
          effect_class: "execute",
          input_bytes: 2,
          input_preview: call.input ?? "ls",
          paths: [],
          working_directory: call.folder ?? null,
          tool_alias: null,
        },
        aboutOf(at, call),
      ),
      contextOf(at),
    ),
  decided: (at: At, call: CallStory, decision: Decision, reason = "RULE"): Envelope => {
    const policy = {
      revision: "r1",
      risk: "low" as const,
      decision,
      reason_code: reason,
      matched_rules: ["rule"],
    };
    const told = { decision_id: `dec_${at.n}`, effect_class: "execute" as const };
    const rest = { ...aboutOf(at, call), policy };
    if (decision === "allow" || decision === "modify") {
      const summary = { ...told, modified: decision === "modify" };
      return eventOf(draft("agent.tool.authorized", summary, rest), contextOf(at));
    }
    if (decision === "defer") {
      const summary = { ...told, message: "later", waits_for: ["fact"], deadline_at: storyStartMs };
      return eventOf(draft("agent.tool.deferred", summary, rest), contextOf(at));
    }
    return eventOf(draft("agent.tool.denied", { ...told, message: "no" }, rest), contextOf(at));
  },
  completed: (at: At, call: CallStory, outcome: Outcome, durationMs: bigint | null = 7n): Envelope =>
    eventOf(
      draft(
        "agent.tool.completed",
        {
          outcome,
          duration_ms: durationMs,
          output_bytes: null,
          output_preview: null,
          error_preview: null,
          tool_alias: null,
        },
        { execution: executionOf(at, call) },
      ),
      contextOf(at),
    ),
  refused: (at: At, call: CallStory): Envelope =>
    eventOf(
      draft(
        "agent.permission.refused",
        { refused_by: "user", reason: null, tool_alias: null },
        aboutOf(at, call),
      ),
      contextOf(at),
    ),
  ungated: (at: At, call: CallStory): Envelope =>
    eventOf(
      draft(
        "agent.effect.ungated",
        { effect_class: "execute", evidence: "result_without_decision", detail: null },
        aboutOf(at, call),
      ),
      contextOf(at),
    ),
  label: (at: At, episodeId: string, author: string, label: string, score: number | null = null): Envelope =>
    eventOf(
      draft(
        "agent.episode.labelled",
        { episode_id: episodeId, label, score, note: null, author, labelled_at: storyStartMs + at.atMs },
        { user_id: author },
      ),
      contextOf(at),
    ),
};
