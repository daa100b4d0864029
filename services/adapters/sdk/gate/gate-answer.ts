import type { JsonObject } from "../json.ts";
import { isJsonObject, toFrozenObject } from "../json.ts";

/** What the gate was asked, in the harness' words. */
export interface GateQuestion {
  readonly sessionId: string;
  readonly parentSessionId?: string;
  readonly turnId?: string;
  readonly callId: string;
  readonly agentId?: string;
  readonly tool: string;
  readonly input: JsonObject;
  readonly workingDirectory?: string;
  readonly permissionMode?: string;
  readonly traceparent?: string;
}

/** Limits that come with an allow. */
export interface CallConstraints {
  readonly network?: "none" | "listed" | "any";
  readonly maxRuntimeSeconds?: number;
  readonly paths?: readonly string[];
  readonly maxCalls?: number;
}

interface DecisionBase {
  readonly reasonCode: string;
  readonly message: string;
  /** Null when nobody decided. */
  readonly decisionId: string | null;
  readonly policyRevision: string | null;
  readonly labels: readonly string[];
}
export interface Allowed extends DecisionBase {
  readonly decision: "allow";
  readonly constraints: CallConstraints;
  readonly planDigest: string | null;
  /** The right that a resource verifies and spends. */
  readonly capability: {
    readonly id: string;
    readonly token: string | null;
    readonly expiresAt: string;
  } | null;
  /** Set when the call goes on with another input than the one asked for. */
  readonly modifiedInput: JsonObject | null;
}
export interface NeedsApproval extends DecisionBase {
  readonly decision: "require_approval";
  readonly approval: { readonly id: string; readonly expiresAt: string };
}
export interface Refused extends DecisionBase {
  readonly decision: "deny" | "defer";
  /** Facts that a deferred call waits for: the same call may be asked again. */
  readonly waitsFor: readonly string[];
}
/** A decision; whatever is not understood is a refusal. */
export type GateDecision = Allowed | NeedsApproval | Refused;

/** The question as the gate takes it. */
export function toWire(question: GateQuestion, runtime: string): JsonObject {
  const { sessionId, parentSessionId, turnId, callId, agentId, tool, input } = question;
  const optional = {
    parent_session_id: parentSessionId,
    turn_id: turnId,
    agent_id: agentId,
    working_directory: question.workingDirectory,
    permission_mode: question.permissionMode,
    traceparent: question.traceparent,
  };
  return {
    runtime,
    session_id: sessionId,
    tool_call_id: callId,
    tool,
    input,
    ...(Object.fromEntries(
      Object.entries(optional).filter(([, value]) => value !== undefined),
    ) as JsonObject),
  };
}

/** A no that nobody decided. */
export function toRefusal(reasonCode: string, message: string): Refused {
  return {
    decision: "deny",
    reasonCode,
    message,
    decisionId: null,
    policyRevision: null,
    labels: [],
    waitsFor: [],
  };
}

const garbage = (what: string): Refused =>
  toRefusal("GATE_GARBAGE", `the gate's answer is not understood (${what}); nothing was run`);

/**
 * Reads an answer of `/v1/gate/decide`. Only what is fully understood allows. Pure.
 * INVARIANT: services/adapters/sdk/gate/gate-answer.test.ts "allows nothing that is not an allow".
 */
export function readAnswer(answer: unknown): GateDecision {
  if (!isJsonObject(answer)) return garbage("not an object");
  const { reason_code: reasonCode, message, decision_id: decisionId, policy_revision: revision } = answer;
  if (typeof reasonCode !== "string" || typeof message !== "string") return garbage("no reason");
  if (typeof decisionId !== "string" || typeof revision !== "string") return garbage("no decision id");
  const base = {
    reasonCode,
    message,
    decisionId,
    policyRevision: revision,
    labels: textsOf(answer["labels"]),
  };
  switch (answer["decision"]) {
    case "allow":
    case "modify":
      return readAllowed(answer, base);
    case "require_approval": {
      const approval = answer["approval"];
      if (!isJsonObject(approval)) return garbage("no ticket");
      const { id, expires_at: expiresAt } = approval;
      if (typeof id !== "string" || typeof expiresAt !== "string") return garbage("no ticket");
      return { ...base, decision: "require_approval", approval: { id, expiresAt } };
    }
    case "defer": {
      const defer = answer["defer"];
      return { ...base, decision: "defer", waitsFor: isJsonObject(defer) ? textsOf(defer["facts"]) : [] };
    }
    case "deny":
      return { ...base, decision: "deny", waitsFor: [] };
    default:
      return garbage("an unknown decision");
  }
}

function readAllowed(answer: JsonObject, base: Omit<DecisionBase, "decision">): Allowed | Refused {
  // Only for runtimes that said that they have a dialog, which this one never does.
  if (answer["confirm"] !== undefined) return garbage("a question for a user's dialog");
  const constraints = readConstraints(answer["constraints"]);
  if (constraints === null) return garbage("its limits");
  const capability = readCapability(answer["capability"]);
  if (capability === undefined) return garbage("its right");
  const digest = answer["plan_digest"];
  if (digest !== null && typeof digest !== "string") return garbage("its digest");
  const modified = answer["modified_input"];
  if (answer["decision"] === "modify" && !isJsonObject(modified)) return garbage("no changed input");
  if (answer["decision"] === "allow" && modified !== undefined) return garbage("an input beside an allow");
  return {
    ...base,
    decision: "allow",
    constraints,
    capability,
    planDigest: digest,
    modifiedInput: modified === undefined ? null : toFrozenObject(modified),
  };
}

/** Null: a limit that is not known, which nobody would keep. */
function readConstraints(given: unknown): CallConstraints | null {
  if (!isJsonObject(given)) return null;
  const read: { -readonly [K in keyof CallConstraints]: CallConstraints[K] } = {};
  for (const [key, value] of Object.entries(given)) {
    if (key === "network" && (value === "none" || value === "listed" || value === "any"))
      read.network = value;
    else if (key === "max_runtime_seconds" && isCount(value)) read.maxRuntimeSeconds = value;
    else if (key === "max_calls" && isCount(value)) read.maxCalls = value;
    else if (key === "paths" && Array.isArray(value)) read.paths = textsOf(value);
    else return null;
  }
  return read;
}

/** Undefined: not understood. */
function readCapability(given: unknown): Allowed["capability"] | undefined {
  if (given === undefined) return null;
  if (!isJsonObject(given)) return undefined;
  const { id, token, expires_at: expiresAt } = given;
  if (typeof id !== "string" || typeof expiresAt !== "string") return undefined;
  return token === null || typeof token === "string" ? { id, token, expiresAt } : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? (value as unknown[]).filter((one) => typeof one === "string") : [];
}
