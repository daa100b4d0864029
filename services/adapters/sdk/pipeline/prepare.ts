import { canonicalDigest } from "../../../platform/canonical-json.ts";
import type { Allowed, GateQuestion, NeedsApproval, Refused } from "../gate/gate-answer.ts";
import type { GateClient } from "../gate/gate-client.ts";
import type { JsonObject } from "../json.ts";
import { NotJson, toFrozenObject } from "../json.ts";
import type { HookedCall, Place } from "../registry/hook-points.ts";
import type { Denial, HookOutcome, HookRegistry } from "../registry/registry.ts";
import type { ApprovalService } from "./approval.ts";
import { askPerson, toNoWord } from "./ask-person.ts";
import type { BlockedOutcome } from "./outcome.ts";
import { toBlocked } from "./outcome.ts";
import type { ProposedCall, Tool } from "./tool.ts";

/** A last look before the body, after every decision; a text: why not. */
export type Guard = (call: HookedCall & Place) => string | null | Promise<string | null>;

export interface PrepareOptions {
  readonly hooks: HookRegistry;
  readonly gate: Pick<GateClient, "decide">;
  readonly approvals: ApprovalService | null;
  readonly guards: readonly Guard[];
  readonly approvalTimeoutMs: number;
}

/** A call that may run, with exactly this input. */
export interface PreparedCall {
  readonly place: Place;
  readonly call: HookedCall;
  readonly decision: Allowed;
  readonly inputDigest: string;
  readonly context: readonly string[];
}
type Prepared = { readonly ready: PreparedCall } | { readonly blocked: BlockedOutcome };
type Judged = { readonly decision: Allowed } | { readonly blocked: BlockedOutcome };

/** Where a call is, as its events say it. */
export function toPlace(proposed: ProposedCall): Place {
  const { sessionId, parentSessionId, turnId, agentId } = proposed;
  return {
    sessionId,
    ...(parentSessionId === undefined ? {} : { parentSessionId }),
    ...(turnId === undefined ? {} : { turnId }),
    ...(agentId === undefined ? {} : { agentId }),
  };
}

/** The call as handlers see it. */
export function toHookedCall(proposed: ProposedCall, input: JsonObject, origin: string): HookedCall {
  const { id, tool, workingDirectory } = proposed;
  return { id, tool, input, origin, ...(workingDirectory === undefined ? {} : { workingDirectory }) };
}

/** The input, frozen, or what is wrong with it. */
export function readInput(
  tool: Tool,
  input: unknown,
): { readonly input: JsonObject } | { readonly blocked: BlockedOutcome } {
  let read: JsonObject;
  try {
    read = toFrozenObject(input);
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    return { blocked: toBlocked("guard", "INPUT_UNREADABLE", `the input is ${error.message}`) };
  }
  let wrong: string | null;
  try {
    wrong = tool.check?.(read) ?? null;
  } catch {
    wrong = "the tool cannot tell whether this is an input of its own";
  }
  return wrong === null ? { input: read } : { blocked: toBlocked("guard", "SCHEMA_MISMATCH", wrong) };
}

/**
 * The first stage: handlers, the gate, a person where one is asked for, the last look. Handlers rewrite before the gate
 * decides: after it nothing changes but by its own word.
 * INVARIANT: what runs is what the gate allowed (services/adapters/sdk/pipeline/pipeline.test.ts).
 */
export async function prepare(
  proposed: ProposedCall,
  tool: Tool,
  options: PrepareOptions,
  signal: AbortSignal,
): Promise<Prepared> {
  const asked = readInput(tool, proposed.input);
  if ("blocked" in asked) return asked;
  const place = toPlace(proposed);
  const { hooks } = options;
  const checked = await hooks.emit("PreToolUse", {
    ...place,
    call: toHookedCall(proposed, asked.input, hooks.origin()),
  });
  if (checked.denied !== null) return { blocked: toHookBlock(checked.denied) };
  const rewritten = readInput(tool, checked.event.call.input);
  if ("blocked" in rewritten) return rewritten;

  const judged = await judge(toQuestion(proposed, rewritten.input), checked.asks, options, signal);
  if ("blocked" in judged) return judged;
  const { decision } = judged;
  let { call } = checked.event;
  const context = [...checked.context];
  if (decision.modifiedInput !== null) {
    const modified = readInput(tool, decision.modifiedInput);
    if ("blocked" in modified) return modified;
    call = { ...call, input: modified.input };
    const again = await hooks.emit("PreToolUse", { ...place, call });
    const no = toSecondThought(again, call, checked.asks);
    if (no !== null) return { blocked: no };
    context.push(`the input was changed by policy: ${decision.message}`);
  }
  const no = await lookOnce({ ...place, ...call }, options.guards, signal);
  if (no !== null) return { blocked: no };
  return { ready: { place, call, decision, inputDigest: canonicalDigest(call.input), context } };
}

/** The gate's word, and a person's where the gate or a handler wants it; after that the gate's once more. */
async function judge(
  question: GateQuestion,
  asks: readonly { readonly handler: string; readonly reason: string }[],
  { gate, approvals, approvalTimeoutMs }: PrepareOptions,
  signal: AbortSignal,
): Promise<Judged> {
  const first = await gate.decide(question);
  if (first.decision === "deny" || first.decision === "defer") return { blocked: toGateBlock(first) };
  const ticket = first.decision === "require_approval" ? first : null;
  // Without a service the model gets the ticket, and asks the same again when it is settled.
  if (ticket !== null && approvals === null) return { blocked: toGateBlock(ticket) };
  const questions = [
    ...asks.map(({ handler, reason }) => ({
      approvalId: null,
      askedBy: `hook:${handler}` as const,
      reason,
      expiresAt: null,
    })),
    ...(ticket === null
      ? []
      : [
          {
            approvalId: ticket.approval.id,
            askedBy: "gate" as const,
            reason: ticket.message,
            expiresAt: ticket.approval.expiresAt,
          },
        ]),
  ];
  for (const one of questions) {
    const answer = await askPerson({ ...one, call: question }, approvals, approvalTimeoutMs, signal);
    if (answer === "approved") continue;
    const rest =
      one.approvalId === null
        ? { handler: one.askedBy.slice("hook:".length) }
        : { approvalId: one.approvalId };
    return { blocked: toBlocked("approval", ...toNoWord(answer, one.reason), rest) };
  }
  if (questions.length === 0 && first.decision === "allow") return { decision: first };
  // Time has passed: today's policy and facts decide, and a ticket is used up.
  const last = await gate.decide(question);
  return last.decision === "allow" ? { decision: last } : { blocked: toGateBlock(last) };
}

/** Handlers see what the gate put in place. They may refuse it; a change of theirs is one that nobody judged. */
function toSecondThought(
  again: HookOutcome<"PreToolUse">,
  call: HookedCall,
  asked: readonly { readonly handler: string }[],
): BlockedOutcome | null {
  if (again.denied !== null) return toHookBlock(again.denied);
  if (canonicalDigest(again.event.call.input) !== canonicalDigest(call.input)) {
    return toBlocked("hook", "REWRITE_TOO_LATE", "a hook changed what policy had put in place of the input", {
      handler: again.rewrittenBy.join(", "),
    });
  }
  const unasked = again.asks.find((one) => !asked.some((other) => other.handler === one.handler));
  return unasked === undefined
    ? null
    : toBlocked("approval", "APPROVAL_REQUIRED", unasked.reason, { handler: unasked.handler });
}

async function lookOnce(
  call: HookedCall & Place,
  guards: readonly Guard[],
  signal: AbortSignal,
): Promise<BlockedOutcome | null> {
  for (const guard of guards) {
    let no: string | null;
    try {
      no = await guard(call);
    } catch {
      no = "a guard failed";
    }
    if (no !== null) return toBlocked("guard", "GUARD_REFUSED", no);
  }
  return signal.aborted ? toBlocked("guard", "INTERRUPTED", "the call was stopped before it ran") : null;
}

function toQuestion(proposed: ProposedCall, input: JsonObject): GateQuestion {
  const { workingDirectory, permissionMode, traceparent } = proposed;
  return {
    ...toPlace(proposed),
    callId: proposed.id,
    tool: proposed.tool,
    input,
    ...(workingDirectory === undefined ? {} : { workingDirectory }),
    ...(permissionMode === undefined ? {} : { permissionMode }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

function toHookBlock({ handler, reasonCode, message }: Denial): BlockedOutcome {
  return toBlocked("hook", reasonCode, message, { handler });
}

function toGateBlock(decision: NeedsApproval | Refused): BlockedOutcome {
  const { reasonCode, message } = decision;
  switch (decision.decision) {
    case "require_approval":
      return toBlocked("gate", reasonCode, message, { approvalId: decision.approval.id });
    case "defer": {
      const facts = decision.waitsFor.join(", ");
      return toBlocked("gate", reasonCode, `${message} (waits for ${facts}: ask the same again later)`);
    }
    case "deny":
      return toBlocked("gate", reasonCode, message);
  }
}
