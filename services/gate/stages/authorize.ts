import type { GateRequest } from "../../../schemas/gate.ts";
import type { Classified } from "../classified.ts";
import type { Facts } from "../facts-of-call.ts";
import type { CedarMatch, CedarQuestion, Verdict } from "../policy/policy.ts";
import type { Stage } from "./stage.ts";
import { toResult } from "./stage.ts";

/** The agent of a session that names none: the one that a person talks to. */
const mainAgent = "main";

/** Stage 3: forbids and permits of `authorization.cedar`. A permit that failed is no permit but a deny. */
export const authorizeStage: Stage = {
  name: "authorize",
  judge({ cedar }) {
    const { forbidden, permitted } = cedar();
    return toResult({
      verdicts: [
        ...forbidden.map(toDeny),
        ...permitted.map((one) => (one.reason === "RULE_FAILED" ? toDeny(one) : toAllow(one))),
      ],
    });
  },
};

function toDeny({ id, reason, message, priority }: CedarMatch): Verdict {
  return { rule: id, stage: "authorize", decision: "deny", reason, message, priority, isAbsolute: true };
}

function toAllow({ id, reason, message, priority }: CedarMatch): Verdict {
  return { rule: id, stage: "authorize", decision: "allow", reason, message, priority };
}

/** Cedar's question about one form of a request. */
export function toCedarQuestion(request: GateRequest, classified: Classified, facts: Facts): CedarQuestion {
  return {
    tenant: facts.tenant.id,
    user: request.user_id ?? "",
    agent: request.agent_id ?? mainAgent,
    runtime: request.runtime,
    tool: request.tool,
    action: classified.action,
    effect: classified.effect,
    dataClass: classified.dataClass,
    environment: facts.environment,
    signals: classified.signals,
    labels: [...new Set(facts.session.labels)].sort(),
  };
}
