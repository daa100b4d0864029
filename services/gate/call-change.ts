import type { Constraints, GateAnswer, JsonObject } from "../../schemas/gate.ts";
import { maskJson } from "../platform/mask.ts";
import type { TenantKey } from "../platform/vault-seal.ts";
import { sealInline } from "../platform/vault-seal.ts";
import type { KnownCall } from "./call-facts.ts";
import type { GroupFacts, StoredAnswer } from "./facts.ts";
import type { LedgerEntry } from "./group-ledger.ts";
import type { QueuedCall } from "./queued-call.ts";
import type { Ruling, Spend } from "./ruling.ts";

/** A plan of one agent of one session, as rows name it. */
export interface PlanName {
  readonly sessionKey: string;
  readonly agentId: string;
  readonly intentDigest: string;
}

/** A new approval's row. */
export interface ApprovalRequest extends PlanName {
  readonly approvalId: string;
  readonly tenantId: string;
  readonly planDigest: string;
  readonly decisionId: string;
  readonly correlationId: string;
  readonly runtime: string;
  readonly tool: string;
  readonly effectClass: string;
  readonly riskScore: number;
  readonly risk: string;
  readonly requester: string;
  /** Secrets masked. */
  readonly plan: unknown;
  /** The exact plan; see `planPlace`. */
  readonly planSealed: Buffer;
  readonly constraints: Constraints;
  readonly matchedRules: readonly string[];
  readonly message: string;
  readonly policyRevision: string;
  /** ISO 8601. */
  readonly expiresAt: string;
}

/** A right whose decision another one takes the place of. */
export interface EndedRight {
  readonly capabilityId: string;
  readonly planDigest: string | null;
  readonly maxCalls: number;
}

/** What a decision changes beside its own row; committed with it. */
export interface CallChange {
  readonly sessionKey: string;
  readonly rootKey: string;
  readonly isLinking: boolean;
  /** Whose child it becomes: the root is walked to from there. */
  readonly parentKey: string;
  readonly automationDepth: number;
  readonly isDeeper: boolean;
  /** New to the root. */
  readonly labels: readonly string[];
  readonly spends: readonly Spend[];
  /** Counters that the decision read, whether or not it spends from them. */
  readonly counterKeys: readonly string[];
  readonly requested: ApprovalRequest | null;
  readonly consumed: { readonly approvalId: string; readonly planDigest: string } | null;
  /** `decisionId`: the decision that had asked for it. */
  readonly voided: { readonly approvalId: string; readonly decisionId: string } | null;
  /** An open approval that the answer names. */
  readonly awaited: string | null;
  /** A plan that is put off, and until when (UTC milliseconds). */
  readonly deferred: (PlanName & { readonly untilMs: number }) | null;
  /** A plan that is not put off any more, and since when it was (UTC milliseconds). */
  readonly resumed: (PlanName & { readonly sinceMs: number }) | null;
  /** The decision on the same call that this one takes the place of. */
  readonly supersedes: string | null;
  /** The right of that decision, when it is in force and unused: it ends here, so that one call has one right. */
  readonly endedRight: EndedRight | null;
  /** The exact rewritten input, when the answer's row shows it masked. */
  readonly sealedInput: Buffer | null;
}

export interface ChangeSource {
  readonly queued: QueuedCall;
  readonly sessionKey: string;
  readonly known: KnownCall;
  readonly ruling: Ruling;
  readonly answer: GateAnswer;
  readonly correlationId: string;
  readonly key: TenantKey;
  readonly facts: GroupFacts;
}

/** What follows from a ruling. */
export function toCallChange(source: ChangeSource): CallChange {
  const { queued, sessionKey, known, ruling, answer, key, facts } = source;
  const { approval } = known.facts;
  const name =
    ruling.intentDigest === null
      ? null
      : { sessionKey, agentId: queued.work.call.agentId ?? "", intentDigest: ruling.intentDigest };
  const step = ruling.approval;
  const before = queued.callKey === null ? undefined : facts.answers.get(queued.callKey);
  return {
    sessionKey,
    rootKey: known.place.rootKey,
    isLinking: known.isLinking,
    parentKey: known.parentKey,
    automationDepth: known.automationDepth,
    isDeeper: known.isDeeper,
    labels: toAddedLabels(known, ruling.labels),
    spends: ruling.spends,
    counterKeys: known.counterKeys,
    requested: toRequest(source, name),
    consumed:
      step.kind === "consume" && approval?.state === "approved" && ruling.planDigest !== null
        ? { approvalId: step.approvalId, planDigest: ruling.planDigest }
        : null,
    voided:
      ruling.voidsApproval === null || approval === null
        ? null
        : { approvalId: ruling.voidsApproval, decisionId: approval.decisionId },
    awaited: step.kind === "await" ? step.approvalId : null,
    deferred:
      ruling.waitsFor === null || name === null || known.facts.session.deferredSinceMs !== null
        ? null
        : { ...name, untilMs: ruling.waitsFor.untilMs },
    resumed:
      name === null ||
      known.facts.session.deferredSinceMs === null ||
      ruling.decision === "defer" ||
      // Waited in vain: it stays so until the fact is there.
      ruling.reason === "DEFER_EXPIRED"
        ? null
        : { ...name, sinceMs: known.facts.session.deferredSinceMs },
    supersedes: before?.decisionId ?? null,
    endedRight: toEndedRight(before),
    sealedInput: toSealedInput(answer, key),
  };
}

/** What follows from a result: labels, and perhaps the link to a parent. Null: nothing new. */
export function toResultChange(
  sessionKey: string,
  known: KnownCall,
  labels: readonly string[],
): CallChange | null {
  const added = toAddedLabels(known, labels);
  if (added.length === 0 && !known.isLinking) return null;
  return {
    sessionKey,
    rootKey: known.place.rootKey,
    isLinking: known.isLinking,
    parentKey: known.parentKey,
    automationDepth: known.automationDepth,
    isDeeper: known.isDeeper,
    labels: added,
    spends: [],
    counterKeys: [],
    requested: null,
    consumed: null,
    voided: null,
    awaited: null,
    deferred: null,
    resumed: null,
    supersedes: null,
    endedRight: null,
    sealedInput: null,
  };
}

/** Not the ones that are there already: a session that changes has to be held alone. */
function toAddedLabels(known: KnownCall, labels: readonly string[]): string[] {
  const carried = [...labels, ...(known.isLinking ? known.ownLabels : [])];
  return [...new Set(carried)].filter(
    (label) => !known.committedLabels.has(label) || (known.isLinking && known.ownLabels.includes(label)),
  );
}

function toEndedRight(before: StoredAnswer | undefined): EndedRight | null {
  const capability = before?.answer.capability;
  if (before === undefined || capability === undefined || !before.isInForce || before.isUsed) return null;
  return {
    capabilityId: capability.id,
    planDigest: before.answer.plan_digest,
    maxCalls: before.answer.constraints.max_calls ?? 1,
  };
}

function toRequest(
  { queued, ruling, answer, correlationId, key }: ChangeSource,
  name: PlanName | null,
): ApprovalRequest | null {
  if (ruling.approval.kind !== "request" || answer.approval === undefined) return null;
  if (name === null || ruling.planDigest === null) return null;
  const { work } = queued;
  const exact = JSON.stringify(ruling.plan);
  return {
    ...name,
    approvalId: answer.approval.id,
    tenantId: work.tenantId,
    planDigest: ruling.planDigest,
    decisionId: answer.decision_id,
    correlationId,
    runtime: work.runtime.kind,
    tool: ruling.plan.tool,
    effectClass: ruling.classified.effect,
    riskScore: ruling.riskScore,
    risk: ruling.risk,
    requester: work.subject,
    plan: maskJson(ruling.plan),
    planSealed: sealInline(key, planPlace(answer.approval.id), Buffer.from(exact, "utf8")),
    constraints: ruling.constraints,
    matchedRules: ruling.matchedRules,
    message: ruling.message,
    policyRevision: answer.policy_revision,
    expiresAt: answer.approval.expires_at,
  };
}

function toSealedInput({ modified_input, decision_id }: GateAnswer, key: TenantKey): Buffer | null {
  if (modified_input === undefined || maskJson(modified_input) === modified_input) return null;
  return sealInline(key, inputPlace(decision_id), Buffer.from(JSON.stringify(modified_input), "utf8"));
}

/** The rewritten input of a sealed answer. */
export function toExactInput(bytes: Buffer): JsonObject {
  return JSON.parse(bytes.toString("utf8")) as JsonObject;
}

/** The place that an approval's sealed plan is bound to. */
export function planPlace(approvalId: string): string {
  return `gate.approvals/plan_sealed/${approvalId}`;
}

/** The place that an answer's sealed input is bound to. */
export function inputPlace(decisionId: string): string {
  return `gate.sealed_answers/sealed/${decisionId}`;
}

/** What later calls of the same group have to know of it; null: nothing. */
export function toLedgerEntry(change: CallChange, known: KnownCall, nowMs: number): LedgerEntry | null {
  const { requested, consumed, voided, deferred, resumed } = change;
  const { approval } = known.facts;
  const isNothing =
    change.labels.length === 0 &&
    !change.isLinking &&
    !change.isDeeper &&
    change.spends.length === 0 &&
    requested === null &&
    consumed === null &&
    voided === null &&
    deferred === null &&
    resumed === null;
  if (isNothing) return null;
  return {
    labels: change.labels,
    isLinked: change.isLinking,
    automationDepth: change.automationDepth,
    spends: change.spends,
    isApprovalRequested: requested !== null,
    approval:
      requested !== null
        ? {
            approvalId: requested.approvalId,
            decisionId: requested.decisionId,
            state: "pending",
            planDigest: requested.planDigest,
            rules: requested.matchedRules,
            expiresAtMs: Date.parse(requested.expiresAt),
            consumedAtMs: null,
          }
        : approval === null
          ? null
          : consumed !== null
            ? { ...approval, state: "consumed", consumedAtMs: nowMs }
            : voided !== null
              ? { ...approval, state: "voided" }
              : null,
    ...(deferred === null ? (resumed === null ? {} : { deferredSinceMs: null }) : { deferredSinceMs: nowMs }),
  };
}
