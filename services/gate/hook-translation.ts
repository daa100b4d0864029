import type { Adapter, Translation, UnrecognizedHook } from "../../schemas/adapter.ts";
import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { GateRequest } from "../../schemas/gate.ts";
import type { Runtime, UnrecognizedProblem } from "../../schemas/generated/types.ts";
import { toSize, valueBytes } from "../platform/adapter-kit.ts";
import { parseJsonBody } from "../platform/json-body.ts";
import { toListedPaths, toPathText } from "../platform/listed-paths.ts";
import { toJsonPreview } from "../platform/masked-preview.ts";
import type { Classified } from "./classified.ts";
import type { HookWork } from "./hook-work.ts";

/** What came with a call beside its payload. */
export interface HookOrigin {
  readonly tenantId: string;
  readonly subject: string;
  readonly traceparent: string | null;
}

/** Translates a body; one that is no JSON, or that an adapter chokes on, is unrecognized like any other. */
export function translateBody(adapter: Adapter, raw: Buffer): Translation {
  let payload: unknown;
  try {
    payload = parseJsonBody(raw);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return toUnreadable(adapter, raw.length, "not_json");
  }
  try {
    return adapter.translate(payload, raw.length);
  } catch {
    return toUnreadable(adapter, raw.length, "unknown");
  }
}

/** The work of a body that was not taken in: that it came, from whom, and how large it said it was. `note` is what is kept. */
export function toOversizedWork(adapter: Adapter, bytes: number, note: string, origin: HookOrigin): HookWork {
  return toHookWork(toUnreadable(adapter, bytes, "too_large"), Buffer.from(note, "utf8"), origin);
}

/** Nothing is known of what was asked, so it counts as asking for an effect. */
function toUnreadable(adapter: Adapter, bytes: number, problem: UnrecognizedProblem): UnrecognizedHook {
  return {
    kind: "unrecognized",
    call: {},
    runtime: toUnseenRuntime(adapter),
    draft: draft("fabric.adapter.unrecognized", {
      problem,
      field: null,
      event_name: null,
      body_bytes: toSize(bytes),
      gating: true,
    }),
    eventName: null,
  };
}

/** The runtime of something that it did not say itself. */
export const toUnseenRuntime = (adapter: Adapter): Runtime => ({
  kind: adapter.runtime,
  adapter_version: adapter.version,
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
});

/** Whether a tool waits for the answer. */
export function isGating(translation: Translation): boolean {
  switch (translation.kind) {
    case "gated":
      return true;
    case "observed":
      return false;
    case "unrecognized":
      return translation.draft.redacted_summary.gating;
  }
}

/** The work that a translated hook makes. */
export function toHookWork(translation: Translation, raw: Buffer, origin: HookOrigin): HookWork {
  const shared = {
    runtime: translation.runtime,
    call: translation.call,
    raw,
    dataClass: "confidential",
    ...origin,
  } as const;
  switch (translation.kind) {
    case "observed":
      return translation.reported === undefined
        ? { request: null, observations: translation.observations, ...shared }
        : {
            request: null,
            reported: ofSubject(translation.reported, origin),
            ...(translation.endsOnce === true ? { endsOnce: true } : {}),
            observations: translation.observations,
            ...shared,
          };
    case "gated":
      return {
        request: ofSubject(translation.request, origin),
        observations: translation.observations,
        ...shared,
        traceparent: origin.traceparent ?? translation.request.traceparent ?? null,
      };
    case "unrecognized":
      return { request: null, observations: [{ draft: translation.draft, causes: [] }], ...shared };
  }
}

const previewMaxChars = 512;

/**
 * The request as it is judged and stored: who acts is the token's subject. A `user_id` in the body stays a claim in the
 * payload: what is counted by user would otherwise be counted by whatever a call claims.
 * INVARIANT: test/integration/gate-hooks.test.ts "names the token's subject as who acted, whatever the request claims".
 */
export function ofSubject(request: GateRequest, { subject }: Pick<HookOrigin, "subject">): GateRequest {
  return Object.assign({}, request, { user_id: subject });
}

/**
 * A request that its caller wrote in the gate's own language. That a dialog will ask the user is an adapter's word, by what
 * it knows of its runtime: by the caller's word alone every rule that asks the user would be an allow.
 * INVARIANT: test/integration/gate-hooks.test.ts "takes no caller's word for a dialog of the user".
 */
export function ofCaller(request: GateRequest, origin: Pick<HookOrigin, "subject">): GateRequest {
  const { user_dialog: _claimed, ...rest } = request;
  return ofSubject(rest, origin);
}

/**
 * The work of a harness that speaks the gate's own language: its intent is made here. `request` is already the token's
 * subject's.
 */
export function toOwnWork(
  request: GateRequest,
  { effect, touched }: Pick<Classified, "effect" | "touched">,
  raw: Buffer,
  origin: HookOrigin,
): HookWork {
  const runtime: Runtime = {
    kind: request.runtime,
    adapter_version: "own",
    runtime_version: null,
    permission_mode: request.permission_mode ?? null,
    sandbox: null,
  };
  const rest = {
    execution: {
      session_id: request.session_id,
      turn_id: request.turn_id ?? null,
      tool_call_id: request.tool_call_id ?? null,
    },
    ...(request.agent_id === undefined ? {} : { agent_id: request.agent_id }),
  };
  const summary = {
    effect_class: effect,
    input_preview: toJsonPreview(request.input, previewMaxChars),
    tool_alias: request.tool_alias ?? null,
  };
  const intent =
    request.phase === "permission"
      ? draft("agent.permission.requested", summary, rest)
      : draft(
          "agent.tool.requested",
          {
            input_bytes: valueBytes(request.input) ?? 0,
            paths: toListedPaths([...new Set(touched.map(({ path }) => path))]),
            working_directory:
              request.working_directory === undefined ? null : toPathText(request.working_directory),
            ...summary,
          },
          rest,
        );
  const callAnchor =
    request.tool_call_id === undefined ? undefined : ({ scope: "call", id: request.tool_call_id } as const);
  return {
    runtime,
    ...origin,
    traceparent: origin.traceparent ?? request.traceparent ?? null,
    call: {
      sessionId: request.session_id,
      ...(request.turn_id === undefined ? {} : { turnId: request.turn_id }),
      ...(request.tool_call_id === undefined ? {} : { toolCallId: request.tool_call_id }),
      ...(request.agent_id === undefined ? {} : { agentId: request.agent_id }),
      phase: request.phase,
    },
    request,
    observations: [
      {
        draft: intent,
        causes: [
          ...(request.phase === "permission" && callAnchor !== undefined ? [callAnchor] : []),
          ...(request.turn_id === undefined ? [] : [{ scope: "turn", id: request.turn_id } as const]),
          { scope: "session", id: request.session_id },
        ],
        ...(request.phase === "before_tool" && callAnchor !== undefined ? { anchor: callAnchor } : {}),
      },
    ],
    raw,
    dataClass: "confidential",
  };
}
