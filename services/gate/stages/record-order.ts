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
  if (all.length < 2) return [...all];
  const keyed = all.map((one) => ({
    one,
    key: `${String(stageOrder.get(one.stage) ?? stageNames.length)}\n${one.rule}\n${JSON.stringify(one)}`,
  }));
  keyed.sort((left, right) => compareText(left.key, right.key));
  return keyed.filter(({ key }, at) => at === 0 || keyed[at - 1]?.key !== key).map(({ one }) => one);
}
