import type { Verdict } from "../policy/policy.ts";
import { stageNames } from "../policy/policy.ts";
import type { RuleNote } from "../ruling.ts";
import { compareText } from "./merge.ts";

const stageOrder = new Map(stageNames.map((name, index) => [name, index]));

/**
 * What rules said, by stage and rule, each once: both forms of an input are often told the same. The order does not
 * depend on the order of the policy's rules.
 */
export function toRecord<T extends Verdict | RuleNote>(all: readonly T[]): T[] {
  const sorted = [...all].sort(compare);
  return sorted.filter((one, at) => at === 0 || compare(sorted[at - 1] as T, one) !== 0);
}

function compare(left: Verdict | RuleNote, right: Verdict | RuleNote): number {
  const byStage = (stageOrder.get(left.stage) ?? 0) - (stageOrder.get(right.stage) ?? 0);
  const byRule = byStage || compareText(left.rule, right.rule);
  // Only now, since it costs more than the rest.
  return byRule || compareText(JSON.stringify(left), JSON.stringify(right));
}
