import type { ApprovalFact, Facts } from "../facts-of-call.ts";
import type { Verdict } from "../policy/policy.ts";
import type { ApprovalStep } from "../ruling.ts";

/** Open approvals of one session: what a person can look through, and a loop cannot flood. */
export const openApprovalsMax = 10;

/** Before every permit of a policy: that a person agreed is what has to be known. */
const approvalPriority = 10_000;

/** What becomes of a call that needs an approval. */
export interface ApprovalJudgement {
  readonly step: ApprovalStep;
  /** What the approval itself says; null: nothing yet. */
  readonly verdict: Verdict | null;
  readonly voids: string | null;
}

/** The plan that a person is asked about. */
export interface AskedPlan {
  readonly digest: string;
  /** Rules that want a person now. */
  readonly askingRules: readonly string[];
  /** How long a new approval stays open. */
  readonly ttlMs: number;
}

/**
 * An approval is for one plan, for the reasons that the person was shown, and for one use: an approved one of this digest
 * is used up; one of another digest, or one that does not know of a rule that asks now, is void; a refusal counts until it
 * expires.
 */
export function judgeApproval(facts: Facts, { digest, askingRules, ttlMs }: AskedPlan): ApprovalJudgement {
  const { approval } = facts;
  if (approval === null || !(facts.nowMs < approval.expiresAtMs)) return askAnew(facts, ttlMs, null);
  const isSamePlan =
    approval.planDigest === digest && askingRules.every((rule) => approval.rules.includes(rule));
  switch (approval.state) {
    case "approved":
      if (!isSamePlan) return askAnew(facts, ttlMs, approval.approvalId);
      return {
        step: { kind: "consume", approvalId: approval.approvalId },
        verdict: say(approval, "allow", "APPROVED", "a person approved exactly this plan"),
        voids: null,
      };
    case "pending":
      // What would be agreed to is not what would run any more.
      if (!isSamePlan) return askAnew(facts, ttlMs, approval.approvalId);
      return {
        step: { kind: "await", approvalId: approval.approvalId, expiresAtMs: approval.expiresAtMs },
        verdict: null,
        voids: null,
      };
    case "refused":
      return {
        step: { kind: "none" },
        verdict: say(approval, "deny", "APPROVAL_REFUSED", "a person refused this plan; propose another one"),
        voids: null,
      };
    case "expired":
    case "consumed":
    case "voided":
      return askAnew(facts, ttlMs, null);
  }
}

function askAnew({ session }: Facts, ttlMs: number, voids: string | null): ApprovalJudgement {
  if (session.openApprovals < openApprovalsMax) {
    return { step: { kind: "request", ttlMs }, verdict: null, voids };
  }
  return {
    step: { kind: "none" },
    verdict: {
      rule: "approval.too-many-open",
      stage: "plan",
      decision: "deny",
      reason: "TOO_MANY_APPROVALS",
      message: `the session has ${String(openApprovalsMax)} open approvals; have some of them decided first`,
      priority: 0,
    },
    voids,
  };
}

function say(
  approval: ApprovalFact,
  decision: "allow" | "deny",
  reason: "APPROVED" | "APPROVAL_REFUSED",
  message: string,
): Verdict {
  return {
    rule: `approval.${approval.approvalId}`,
    stage: "plan",
    decision,
    reason,
    message,
    priority: approvalPriority,
  };
}
