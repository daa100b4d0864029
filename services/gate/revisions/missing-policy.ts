import type { Policy } from "../policy/policy.ts";

const nothing = { rules: [], levels: { medium: 30, high: 60, critical: 85 } };

/** What the gate decides by while it has no policy: everything is denied, and the records say why. */
export const missingPolicy: Policy = {
  name: "none",
  revision: "policy@none",
  digest: "0".repeat(64),
  tools: [],
  signals: [],
  cedar: {
    ask: () => ({
      denied: [
        {
          id: "policy.missing",
          reason: "POLICY_MISSING",
          message: "the gate has no policy; activate one with `fabric policy activate DIR`",
          // Before every other deny: without a policy nothing else that is said means much.
          priority: 9_000,
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
