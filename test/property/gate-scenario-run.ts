import type { GateRequest, JsonObject } from "../../schemas/gate.ts";
import type { EffectClass } from "../../schemas/generated/types.ts";
import type { Classified, Finding } from "../../services/gate/classified.ts";
import { toCounterKey, wantedCounters } from "../../services/gate/counters.ts";
import type { Facts } from "../../services/gate/facts-of-call.ts";
import type {
  CedarMatch,
  CedarQuestion,
  Policy,
  ToolEntry,
  When,
} from "../../services/gate/policy/policy.ts";
import type { Ruling } from "../../services/gate/ruling.ts";
import type { Decide } from "../../services/gate/stages/decide.ts";
import { wantedFacts } from "../../services/gate/stages/facts-needed.ts";
import type { Condition, CountRule, Limits, Outcome, Scenario, View } from "./gate-reference.ts";
import { holds, readInput } from "./gate-reference.ts";

const tenantId = "acme";
const session = "s 1";

/** A scenario in the gate's own words. `planDigest` is that of the plan that a person is said to have agreed to. */
export function runScenario(scenario: Scenario, decide: Decide, planDigest: string): Ruling {
  return decide(toRequest(scenario), toFacts(scenario, planDigest), toPolicy(scenario), {
    classify: (asked, policy) => classify(scenario, asked.input, policy),
    operands: scenario.contents,
  });
}

function toRequest(scenario: Scenario): GateRequest {
  return {
    runtime: scenario.runtime,
    session_id: session,
    phase: scenario.isDialog ? "permission" : "before_tool",
    tool: scenario.tool,
    input: scenario.input,
    ...(scenario.hasDialog ? { user_dialog: true } : {}),
    ...(scenario.folder === null ? {} : { working_directory: scenario.folder }),
  };
}

/** Names of what has to be known before a scenario is decided. */
export function wantedOf(scenario: Scenario): { readonly counters: string[]; readonly facts: string[] } {
  const policy = toPolicy(scenario);
  return {
    counters: wantedCounters(toRequest(scenario), tenantId, policy, scenario.nowMs),
    facts: wantedFacts(policy, toRequest(scenario)),
  };
}

function toFacts(scenario: Scenario, planDigest: string): Facts {
  const { approval } = scenario;
  return {
    nowMs: scenario.nowMs,
    environment: scenario.environment,
    tenant: { id: tenantId, state: scenario.isFrozen ? "frozen" : "active", version: 1 },
    session: {
      version: 1,
      labels: scenario.sessionLabels,
      openApprovals: scenario.openApprovals,
      deferredSinceMs: scenario.deferredSinceMs,
    },
    approval:
      approval === null
        ? null
        : {
            approvalId: approval.id,
            state: approval.state,
            planDigest: approval.isOfThisPlan ? planDigest : "sha256:other",
            rules: approval.shownRules,
            expiresAtMs: approval.expiresAtMs,
          },
    isRevoked: scenario.isRevoked,
    counters: Object.fromEntries([
      ...scenario.rules.rates.flatMap((rule) => toCounted(scenario, "rate", rule)),
      ...scenario.rules.budgets.flatMap((rule) => toCounted(scenario, "budget", rule)),
    ]),
    dated: scenario.dated,
  };
}

/** What was spent, under the key of the window that is now; and a spent window before it, which counts for nothing. */
function toCounted(scenario: Scenario, kind: "rate" | "budget", rule: CountRule): [string, number][] {
  const spent = scenario.spent[rule.id];
  if (spent === undefined) return [];
  const scopeId = {
    tenant: tenantId,
    session: JSON.stringify([tenantId, scenario.runtime, session]),
    agent: JSON.stringify([tenantId, scenario.runtime, session, ""]),
    user: `${tenantId}/`,
    tool: `${tenantId}/${scenario.tool}`,
  }[rule.scope];
  const start = rule.windowMs === null ? null : scenario.nowMs - (scenario.nowMs % rule.windowMs);
  return [
    [toCounterKey(kind, rule.id, rule.scope, scopeId, start), spent],
    [toCounterKey(kind, rule.id, rule.scope, scopeId, (start ?? 0) - 1), 1_000],
  ];
}

function classify(scenario: Scenario, input: JsonObject, policy: Policy): Classified {
  const spec = scenario.tools.find((one) => one.tool === scenario.tool);
  const read = readInput(spec, input);
  const findings: Finding[] = [];
  if (spec === undefined) {
    findings.push({ rule: "classify.tool-unknown", reason: "TOOL_UNKNOWN", message: "unknown" });
  }
  if (read.isUnreadable) {
    findings.push({ rule: "classify.input-unreadable", reason: "INPUT_UNREADABLE", message: "unreadable" });
  }
  return {
    entry: policy.tools.find((one) => one.tool === scenario.tool) ?? null,
    effect: (spec?.effect ?? "unknown") as EffectClass,
    dataClass: "internal",
    action: spec?.action ?? "unknown",
    resource: read.resource,
    findings,
    touched: [],
    command: null,
    operandPaths: read.scripts,
    signals: read.signals,
  };
}

/** A policy is made once for all requests that are put to it, as in the gate. */
const madePolicies = new WeakMap<Scenario["rules"], Policy>();
function toPolicy(scenario: Scenario): Policy {
  let policy = madePolicies.get(scenario.rules);
  if (policy === undefined) madePolicies.set(scenario.rules, (policy = makePolicy(scenario)));
  return policy;
}

function makePolicy({ tools, rules, levels, isCedarDown }: Scenario): Policy {
  const inCedar = (
    all: readonly CedarRule[],
    question: CedarQuestion,
    reason: CedarMatch["reason"],
  ): CedarMatch[] =>
    all.flatMap(({ id, when, message, priority }) => {
      if (when.broken === true) return [{ id, message, priority, reason: "RULE_FAILED" }];
      return holds(when, toView(question)) ? [{ id, message, priority, reason }] : [];
    });
  const spoken = <R extends { readonly when: Condition }>(all: readonly R[]) =>
    all.map((rule) => ({ ...rule, when: toWhen(rule.when) }));
  return {
    name: "random",
    revision: "policy@1970-01-01.1+000000000000",
    digest: "",
    tools: tools.map((one): ToolEntry => ({
      tool: one.tool,
      effect: one.effect as EffectClass,
      dataClass: "internal",
      action: one.action,
      resource: { kind: one.kind, fields: [one.field], required: false },
      volatile: one.volatile,
      constraints: toConstraints(one.limits),
      inputProblems: (input) => (one.refuses in input ? ["unknown field"] : []),
    })),
    signals: [],
    cedar: {
      ask(question) {
        if (isCedarDown) throw new Error("down");
        return {
          denied: inCedar(rules.staticDeny, question, "STATIC_DENY"),
          forbidden: inCedar(rules.forbid, question, "NOT_AUTHORIZED"),
          permitted: inCedar(rules.permit, question, "ALLOWED"),
        };
      },
    },
    risk: { rules: spoken(rules.risk), levels },
    approvals: spoken(rules.approvals),
    facts: spoken(rules.facts),
    constraints: spoken(rules.limits).map(({ id, when, limits }) => ({
      id,
      when,
      constraints: toConstraints(limits),
    })),
    labels: spoken(rules.labels),
    rewrites: spoken(rules.rewrites),
    rates: spoken(rules.rates).map((rule) => ({ ...rule, windowMs: rule.windowMs ?? 0 })),
    budgets: spoken(rules.budgets),
    localTools: [],
  };
}
type CedarRule = Scenario["rules"]["permit"][number];

function toConstraints({ paths, ...rest }: Scenario["tools"][number]["limits"]): ToolEntry["constraints"] {
  return { ...rest, ...(paths === undefined ? {} : { paths: [...paths] }) };
}

function toView({ tool, effect, runtime, environment, signals, labels }: CedarQuestion): View {
  return { tool, effect, runtime, environment, signals, labels, risk: 0 };
}

function toWhen(condition: Condition): When {
  return {
    tools: condition.tools ?? [],
    effects: (condition.effects ?? []) as EffectClass[],
    runtimes: condition.runtimes ?? [],
    environments: condition.environments ?? [],
    signalsAny: condition.any ?? [],
    get signalsAll() {
      if (condition.broken === true) throw new Error("broken");
      return condition.all ?? [];
    },
    signalsNone: condition.none ?? [],
    labelsAny: condition.labelsAny ?? [],
    labelsNone: condition.labelsNone ?? [],
    riskAtLeast: condition.risk ?? null,
  };
}

/** A ruling in the reference's words. */
export function toOutcome(ruling: Ruling): Outcome {
  const { approval, waitsFor } = ruling;
  return {
    decision: ruling.decision,
    reason: ruling.reason,
    message: ruling.message,
    lead: ruling.leadRule,
    said: [...new Set(ruling.verdicts.map((one) => `${one.rule} ${one.decision} ${one.reason}`))].sort(),
    matched: ruling.matchedRules,
    limits: ruling.constraints as Limits,
    labels: ruling.labels,
    score: ruling.riskScore,
    level: ruling.risk,
    intentDigest: ruling.intentDigest ?? "",
    planDigest: ruling.planDigest ?? "",
    modifiedInput: ruling.modifiedInput,
    confirm: ruling.confirm,
    needsCapability: ruling.needsCapability,
    approval:
      approval.kind === "none"
        ? "none"
        : approval.kind === "request"
          ? `request ${String(approval.ttlMs)}`
          : `${approval.kind} ${approval.approvalId}`,
    voids: ruling.voidsApproval,
    waits: waitsFor,
    spends: ruling.spends
      .map((one) => `${one.key.split("|")[1] ?? ""} ${String(one.amount)} ${String(one.limit)}`)
      .sort(),
  };
}
