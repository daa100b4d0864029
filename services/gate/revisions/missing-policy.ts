import type { Policy, ToolEntry } from "../policy/policy.ts";

/** Knows every tool, so that the policy is asked and not the catalogue: what is missing is the policy. */
const anyTool: ToolEntry = {
  tool: "*",
  effect: "unknown",
  dataClass: "unknown",
  action: "any",
  resource: { kind: "text", fields: [], required: false },
  volatile: [],
  constraints: {},
  inputProblems: () => [],
};

const nothing = { rules: [], levels: { medium: 30, high: 60, critical: 85 } };

/** What the gate decides by while it has no policy: everything is denied, and the records say why. */
export const missingPolicy: Policy = {
  name: "none",
  revision: "policy@none",
  digest: "0".repeat(64),
  tools: [anyTool],
  signals: [],
  cedar: {
    ask: () => ({
      denied: [
        {
          id: "policy.missing",
          reason: "POLICY_MISSING",
          message: "the gate has no policy; activate one with `fabric policy activate DIR`",
          // Before every other deny: without a policy nothing else that is said means much.
          priority: 9_500,
        },
      ],
      forbidden: [],
      permitted: [],
    }),
  },
  risk: nothing,
  approvals: [],
  facts: [],
  constraints: [],
  labels: [],
  rewrites: [],
  rates: [],
  budgets: [],
  localTools: [],
};
