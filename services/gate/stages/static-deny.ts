import type { HoldFact } from "../facts-of-call.ts";
import type { Verdict } from "../policy/policy.ts";
import type { Stage } from "./stage.ts";
import { toFailure, toResult } from "./stage.ts";

/** What is told while a tenant is frozen. */
export const frozenMessage = "the tenant is frozen; an incident has to be lifted by a person first";

/** Before every rule of a policy, whose priorities end at 1000: what a person did is what has to be known. */
const frozenPriority = 10_000;
const revokedPriority = 9_000;

/**
 * Most agents that may have started each other where a bundle does not say: an agent, its helper, the helper's helper and one
 * more. A chain that goes on is a loop, and each link of it costs money.
 */
const defaultAutomationDepthMax = 4;
/** Behind what a person did, before every rule of a policy. */
const depthPriority = 8_000;

/** Effect classes that go on while a scope is read-only. */
const reading: ReadonlySet<string> = new Set(["none", "read"]);

/** What a hold says of a call; null: it lets it pass. */
function judgeHold(hold: HoldFact, effect: string): Pick<Verdict, "rule" | "reason" | "message"> | null {
  const what = hold.scope === "all" ? "everything" : `${hold.scope} \`${hold.scopeId}\``;
  if (hold.mode === "frozen") {
    return {
      rule: "incident.frozen",
      reason: hold.scope === "tenant" ? "TENANT_FROZEN" : "INCIDENT_FROZEN",
      message: `an incident froze ${what}: ${hold.reason}; a person has to lift it first`,
    };
  }
  if (reading.has(effect)) return null;
  return {
    rule: "breaker.read-only",
    reason: "READ_ONLY_BREAKER",
    message: `${what} is read-only: ${hold.reason}; reading goes on, and a person has to reset it first`,
  };
}

/** Stage 2: forbids of `static-deny.cedar`, a frozen tenant, what the breaker or an incident holds, a revoked plan. */
export const staticDenyStage: Stage = {
  name: "static-deny",
  judge({ classified, facts, policy, cedar }) {
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
    for (const hold of facts.holds ?? []) {
      const said = judgeHold(hold, classified.effect);
      if (said !== null) verdicts.push({ ...deny, ...said, priority: frozenPriority });
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
    const depth = facts.session.automationDepth ?? 0;
    const deepest = policy.automationDepthMax ?? defaultAutomationDepthMax;
    // Written so that a number which is none denies.
    if (!(depth <= deepest)) {
      verdicts.push({
        ...deny,
        rule: "automation.depth",
        reason: "AUTOMATION_TOO_DEEP",
        message: `${String(depth)} agents have started each other, and ${String(deepest)} may; report back to the one that started this one`,
        priority: depthPriority,
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
