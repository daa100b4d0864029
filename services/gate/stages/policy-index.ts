import type { Policy, When } from "../policy/policy.ts";
import { toolFits } from "../policy/tool-pattern.ts";

/** The YAML rules of a policy that can hold for one tool. */
export type ToolRules = Pick<
  Policy,
  "approvals" | "facts" | "constraints" | "labels" | "rewrites" | "rates" | "budgets"
> & { readonly risk: Policy["risk"]["rules"] };

/** Tool names come from callers: a policy remembers only so many. */
const rememberedToolsMax = 512;

const remembered = new WeakMap<Policy, Map<string, ToolRules>>();

/** The rules that can hold for a tool; remembered, since a policy does not change. */
export function toToolRules(policy: Policy, tool: string): ToolRules {
  let byTool = remembered.get(policy);
  if (byTool === undefined) remembered.set(policy, (byTool = new Map<string, ToolRules>()));
  let rules = byTool.get(tool);
  if (rules === undefined) {
    rules = sliceRules(policy, tool);
    if (byTool.size < rememberedToolsMax) byTool.set(tool, rules);
  }
  return rules;
}

function sliceRules(policy: Policy, tool: string): ToolRules {
  const canHold = ({ when: { tools } }: { readonly when: When }): boolean =>
    tools.length === 0 || tools.some((pattern) => toolFits(pattern, tool));
  return {
    risk: policy.risk.rules.filter(canHold),
    approvals: policy.approvals.filter(canHold),
    facts: policy.facts.filter(canHold),
    constraints: policy.constraints.filter(canHold),
    labels: policy.labels.filter(canHold),
    rewrites: policy.rewrites.filter(canHold),
    rates: policy.rates.filter(canHold),
    budgets: policy.budgets.filter(canHold),
  };
}
