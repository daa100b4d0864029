import type { Constraints, DecisionName, ReasonCode } from "../../schemas/gate.ts";

/** What one rule says. */
export interface Verdict {
  /** Unique name of the rule. */
  readonly rule: string;
  readonly decision: Exclude<DecisionName, "modify">;
  readonly reason: ReasonCode;
  readonly message: string;
  /** Chooses among equal verdicts which reason leads; higher first. */
  readonly priority: number;
  /** Static deny, revocation, freeze and a resource's own deny: they lead over every other deny. */
  readonly isAbsolute?: boolean;
}

export interface Merged {
  readonly decision: Exclude<DecisionName, "modify">;
  readonly reason: ReasonCode;
  readonly message: string;
  /** Every rule that spoke, also those that lost; sorted. */
  readonly matchedRules: readonly string[];
}

/** Strictest first. */
const order = ["deny", "defer", "require_approval", "allow"] as const;

/**
 * One decision out of all verdicts: deny > defer > require_approval > allow; nobody speaks: deny.
 * INVARIANT: the order of verdicts does not matter and no added verdict overturns a deny
 * (test/property/gate-merge.test.ts).
 */
export function mergeVerdicts(verdicts: readonly Verdict[]): Merged {
  const matchedRules = [...new Set(verdicts.map((one) => one.rule))].sort();
  const decision = order.find((name) => verdicts.some((one) => one.decision === name));
  const lead = verdicts.filter((one) => one.decision === decision).reduce<Verdict | null>(firstOf, null);
  if (decision === undefined || lead === null) {
    return { decision: "deny", reason: "NO_RULE_SPOKE", message: "no rule allows this", matchedRules };
  }
  return { decision, reason: lead.reason, message: lead.message, matchedRules };
}

function firstOf(best: Verdict | null, one: Verdict): Verdict {
  if (best === null) return one;
  return leadKey(one) < leadKey(best) ? one : best;
}

/** Sorts as: absolute, higher priority, rule id, then the rest, so that equal keys are equal verdicts. */
function leadKey(one: Verdict): string {
  const rank = one.isAbsolute === true ? "0" : "1";
  // Priorities lie between -1000 and 1000; the offset makes them sort as text, highest first.
  const priority = String(100_000 - one.priority).padStart(7, "0");
  return [rank, priority, one.rule, one.reason, one.message].join("\n");
}

const networkOrder = ["none", "listed", "any"] as const;

/** The most restrictive of each limit. Paths: only what every list that names some allows. */
export function mergeConstraints(all: readonly Constraints[]): Constraints {
  const network = networkOrder.find((name) => all.some((one) => one.network === name));
  const seconds = least(all.map((one) => one.max_runtime_seconds));
  const calls = least(all.map((one) => one.max_calls));
  const lists = all.flatMap((one) => (one.paths === undefined ? [] : [one.paths]));
  const first = lists[0];
  const paths = first?.filter((path) => lists.every((list) => list.includes(path))).sort();
  return {
    ...(network === undefined ? {} : { network }),
    ...(seconds === undefined ? {} : { max_runtime_seconds: seconds }),
    ...(paths === undefined ? {} : { paths }),
    ...(calls === undefined ? {} : { max_calls: calls }),
  };
}

function least(values: readonly (number | undefined)[]): number | undefined {
  const given = values.filter((one) => one !== undefined);
  return given.length === 0 ? undefined : Math.min(...given);
}
