import type { Verdict } from "../policy/policy.ts";
import type { Stage } from "./stage.ts";
import { toFailure, toResult } from "./stage.ts";

/** What is told while a tenant is frozen. */
export const frozenMessage = "the tenant is frozen; an incident has to be lifted by a person first";

/** Before every rule of a policy, whose priorities end at 1000: what a person did is what has to be known. */
const frozenPriority = 10_000;
const revokedPriority = 9_000;

/** Stage 2: forbids of `static-deny.cedar`, a frozen tenant, a revoked plan. */
export const staticDenyStage: Stage = {
  name: "static-deny",
  judge({ facts, cedar }) {
    const verdicts: Verdict[] = [];
    const deny = { stage: "static-deny", decision: "deny", isAbsolute: true } as const;
    if (facts.tenant.state !== "active") {
      verdicts.push({
        ...deny,
        rule: "incident.tenant-frozen",
        reason: "TENANT_FROZEN",
        message: frozenMessage,
        priority: frozenPriority,
      });
    }
    if (facts.isRevoked) {
      verdicts.push({
        ...deny,
        rule: "incident.plan-revoked",
        reason: "PLAN_REVOKED",
        message: "this plan was revoked by a person; propose another one",
        priority: revokedPriority,
      });
    }
    try {
      for (const { id, reason, message, priority } of cedar().denied) {
        verdicts.push({ ...deny, rule: id, reason, message, priority });
      }
    } catch (error) {
      // Here and not around the stage: a freeze has to be told also when Cedar fails.
      verdicts.push(toFailure("static-deny", "stage.static-deny", error));
    }
    return toResult({ verdicts });
  },
};
