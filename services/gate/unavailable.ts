import type { GateRequest } from "../../schemas/gate.ts";
import type { Classify, Operand } from "./classified.ts";
import type { Facts } from "./facts-of-call.ts";
import type { Policy } from "./policy/policy.ts";
import type { Ruling } from "./ruling.ts";
import type { Decide } from "./stages/decide.ts";

/** The label of a call that passed while nothing could be recorded, and of its session from then on. */
export const unavailableLabel = "policy_unavailable";

/** What is told of it. */
const unavailableMessage =
  "the gate could not record a decision in time; reading goes on with narrow limits, and is recorded later";

/** Effect classes that change nothing. */
const harmless: ReadonlySet<string> = new Set(["none", "read"]);
/** Signals that say a secret is touched, whatever a bundle makes of them. */
const secretSignal = /^(?:secret|credential)\./;

/** A call that could not be recorded in its time. */
export interface UnrecordedCall {
  readonly request: GateRequest;
  readonly tenantId: string;
  readonly environment: string;
  readonly nowMs: number;
  readonly policy: Policy;
  readonly classify: Classify;
  readonly operands: readonly Operand[];
  readonly decide: Decide;
}

/**
 * Whether a call may pass all the same: it reads or does nothing, touches no secret, sets no label, and is allowed without
 * a condition whatever the session carries already, which nobody can tell now.
 */
export function mayPassUnrecorded(call: UnrecordedCall): boolean {
  const { request, policy, classify, operands, decide } = call;
  const { effect, entry, signals } = classify(request, policy);
  if (entry === null || !harmless.has(effect) || signals.some((one) => secretSignal.test(one))) return false;
  const known = [...new Set(policy.labels.flatMap((rule) => rule.labels))].sort();
  return [[], known].every((labels) => {
    const ruling = decide(request, emptyFacts(call, labels), policy, { classify, operands });
    return ruling.decision === "allow" && ruling.labels.length === 0 && ruling.spends.length === 0;
  });
}

/** Facts of a moment at which nothing was known. */
export function emptyFacts(
  { tenantId, environment, nowMs }: Pick<UnrecordedCall, "tenantId" | "environment" | "nowMs">,
  labels: readonly string[] = [],
): Facts {
  return {
    nowMs,
    environment,
    tenant: { id: tenantId, state: "active", version: 0 },
    session: { version: 0, labels, openApprovals: 0, deferredSinceMs: null },
    approval: null,
    isRevoked: false,
    counters: {},
    dated: {},
  };
}

/** The ruling that such a call was told. */
export function toUnrecordedRuling(ruling: Ruling): Ruling {
  return {
    ...ruling,
    decision: "allow",
    reason: "POLICY_UNAVAILABLE",
    message: unavailableMessage,
    constraints: { ...ruling.constraints, network: "none" },
    labels: [unavailableLabel],
    modifiedInput: null,
    needsCapability: false,
    approval: { kind: "none" },
    voidsApproval: null,
    waitsFor: null,
    spends: [],
  };
}
