import { hash } from "node:crypto";
import type { EvidenceRow } from "../platform/vault-seal.ts";
import { toAnchorKey, toCallKey, toSessionKey } from "./call-keys.ts";
import type { Classify } from "./classified.ts";
import { withRealPaths } from "./classified.ts";
import type { HookOutcome, HookWork } from "./hook-work.ts";
import type { RequestSurroundings } from "./operands.ts";
import { intentDigest, toPlan } from "./plan.ts";
import type { Policy } from "./policy/policy.ts";

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
  // Of what is asked, the plan counts; of what is told, the bytes: a second result of one call is another one.
  const digest = request === null ? hash("sha256", work.raw, "hex") : intent;
  const causes = work.observations.flatMap((one) => one.causes);
  return {
    work,
    policy,
    sessionKey,
    parentKey:
      parentId === undefined || parentId === call.sessionId
        ? null
        : toSessionKey(tenantId, runtime.kind, parentId),
    callKey: sessionKey === null ? null : toCallKey(sessionKey, call, digest),
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

/** Whether its caller still waits. One whose time is up is told so: its timer may be late, or wait for a commit. */
export function isStillOpen(call: QueuedCall, nowMs: number): boolean {
  if (!call.isSettled && call.deadlineMs <= nowMs) call.answer({ kind: "failed", code: "GATE_TIMEOUT" });
  return !call.isSettled;
}
