import { hash } from "node:crypto";
import type { EvidenceRow } from "../platform/vault-seal.ts";
import { toAnchorKey, toCallKey, toSessionKey } from "./call-keys.ts";
import type { Classify } from "./classified.ts";
import { withRealPaths } from "./classified.ts";
import type { HookOutcome, HookWork } from "./hook-work.ts";
import type { RequestSurroundings } from "./operands.ts";
import { intentDigest, toPlan } from "./plan.ts";
import type { Policy } from "./policy/policy.ts";
import { digestOf } from "./result-check.ts";
import { classifySafely } from "./stages/classify-stage.ts";

/** Where a payload is, or will be with the commit. */
export interface StoredPayload {
  readonly ref: string;
  readonly digest: string;
  /** Null: it is in the vault already. */
  readonly row: EvidenceRow | null;
}

/** A hook call on its way through the queue: what stays the same from one attempt to the next, and what does not. */
export interface QueuedCall {
  readonly work: HookWork;
  /** The one policy that this call is decided by, whatever is activated meanwhile. */
  readonly policy: Policy;
  /** Null when the payload did not say which session it belongs to. */
  readonly sessionKey: string | null;
  /** The session that this one says it is a child of. */
  readonly parentKey: string | null;
  /** Null when the runtime named no call: then each one is new. */
  readonly callKey: string | null;
  /** Digest of the plan as proposed: approvals, deferrals and revocations are found by it. */
  readonly intentDigest: string | null;
  /** Files whose content would run, and where links lead, as it was when it was asked. */
  readonly around: RequestSurroundings;
  /** Classifies by what lies around. */
  readonly classify: Classify;
  readonly anchorKeys: readonly string[];
  /** When its caller is told no, on the clock of `performance.now`. */
  readonly deadlineMs: number;
  /** Answers the caller; only the first answer counts. */
  readonly answer: (outcome: HookOutcome) => void;
  payload: StoredPayload | null;
  /** Where the exact request is when it is large. */
  requestRef: string | null;
  attempts: number;
  /** Its events are larger than the broker takes: it is denied, and its intent is recorded without what it names. */
  isTooLarge: boolean;
  /** The caller has its answer, and waits no more. */
  isSettled: boolean;
  /** Its commit is on the wire: whether it is decided is not known before the database answers. */
  isCommitting: boolean;
}

/** What a call is put together with. */
export interface QueueContext {
  readonly policy: Policy;
  readonly classify: Classify;
  readonly environment: string;
  readonly around: RequestSurroundings;
}

/** Puts a call together with its keys. */
export function toQueuedCall(
  work: HookWork,
  { policy, classify, environment, around }: QueueContext,
  { deadlineMs, answer }: Pick<QueuedCall, "deadlineMs" | "answer">,
): QueuedCall {
  const { tenantId, runtime, call, request, reported } = work;
  const sessionKey =
    call.sessionId === undefined ? null : toSessionKey(tenantId, runtime.kind, call.sessionId);
  const parentId = (request ?? reported)?.parent_session_id;
  const classifyHere = withRealPaths(classify, around.realPaths);
  const intent =
    request === null
      ? null
      : intentDigest(
          toPlan(request, classifyHere(request, policy), { environment, operands: [], constraints: {} }),
        );
  const twin = request === null ? twinDigest(work, classifyHere, policy) : null;
  // Of what is asked, the plan counts; of what is told, the bytes: a second result of one call is another one.
  const digest = request === null ? (twin ?? hash("sha256", toTrimmed(work.raw), "hex")) : intent;
  const named = twin === null ? call : { ...call, phase: "result" };
  const causes = work.observations.flatMap((one) => one.causes);
  return {
    work,
    policy,
    sessionKey,
    parentKey:
      parentId === undefined || parentId === call.sessionId
        ? null
        : toSessionKey(tenantId, runtime.kind, parentId),
    callKey: sessionKey === null ? null : toCallKey(sessionKey, named, digest),
    intentDigest: intent,
    around,
    classify: classifyHere,
    anchorKeys: sessionKey === null ? [] : causes.map((anchor) => toAnchorKey(sessionKey, anchor)),
    deadlineMs,
    answer,
    payload: null,
    requestRef: null,
    attempts: 0,
    isTooLarge: false,
    isSettled: false,
    isCommitting: false,
  };
}

/** Two forms of one client send the same document, one of them with a line's end. */
function toTrimmed(raw: Buffer): Buffer {
  let end = raw.length;
  while (end > 0 && spaces.has(raw[end - 1] ?? 0)) end -= 1;
  return raw.subarray(0, end);
}
const spaces = new Set([0x09, 0x0a, 0x0d, 0x20]);

/**
 * Where two adapters watch one client, a result is told twice: it is the same one when the same input ran. What one of them
 * alarms about is kept. Null: it is told by its bytes.
 */
function twinDigest(
  { endsOnce, reported, observations }: HookWork,
  classify: Classify,
  policy: Policy,
): string | null {
  if (endsOnce !== true || reported === undefined) return null;
  if (observations.some(({ draft }) => draft.type === "agent.effect.ungated")) return null;
  return digestOf(
    reported.tool,
    reported.input,
    classifySafely(classify, reported, policy).entry?.volatile ?? [],
  );
}

/** Whether its caller still waits. One whose time is up is told so: its timer may be late, or wait for a commit. */
export function isStillOpen(call: QueuedCall, nowMs: number): boolean {
  if (!call.isSettled && call.deadlineMs <= nowMs) call.answer({ kind: "failed", code: "GATE_TIMEOUT" });
  return !call.isSettled;
}
