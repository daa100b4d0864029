import type { Clock } from "../../platform/clock.ts";
import type { Policy } from "../policy/policy.ts";
import type { JudgeRecord } from "../simulate.ts";
import type { RecordedSource } from "../simulate-source.ts";
import { loadRecordedDecision } from "../simulate-source.ts";
import type { PolicyOfNow } from "./capability-deps.ts";

export interface PolicyOfNowOptions extends RecordedSource {
  readonly clock: Clock;
  /** The policy in force. */
  readonly current: () => Policy;
  /** Decides as the gate does. */
  readonly judge: JudgeRecord;
}

/** Answers that are kept: the same decision and revision always give the same one. */
const keptMax = 1_000;

/**
 * Asks the policy in force about a decision of an earlier one, on the facts that it was made on. Allowed is the same plan
 * to the letter: other limits are another plan. What cannot be judged again is not allowed.
 */
export function createPolicyOfNow(options: PolicyOfNowOptions): PolicyOfNow {
  const { clock, current, judge } = options;
  const kept = new Map<string, boolean>();

  async function judgeAgain(decisionId: string, policy: Policy): Promise<boolean> {
    const line = await loadRecordedDecision(options, decisionId, clock.nowMs());
    if (line === null || line.kind === "unreadable" || line.record.isPartial) return false;
    const { record } = line;
    const ruling = judge(record, policy);
    const isAllowed = ruling.decision === "allow" || ruling.decision === "modify";
    return isAllowed && ruling.planDigest !== null && ruling.planDigest === record.answer?.plan_digest;
  }

  return {
    revision: () => current().revision,
    async isStillAllowed({ decisionId }) {
      const policy = current();
      const key = `${policy.revision} ${decisionId}`;
      const known = kept.get(key);
      if (known !== undefined) return known;
      const isAllowed = await judgeAgain(decisionId, policy);
      if (kept.size >= keptMax) kept.clear();
      kept.set(key, isAllowed);
      return isAllowed;
    },
  };
}
