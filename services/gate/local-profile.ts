import type { LocalProfile } from "../../schemas/local-profile.ts";
import { localProfileLabel } from "../../schemas/local-profile.ts";
import { reasonCodes } from "../../schemas/gate.ts";
import type { Policy, SignalRule, ToolEntry, When } from "./policy/policy.ts";
import { findTool, toolFits } from "./policy/tool-pattern.ts";
import type { Ruling } from "./ruling.ts";
import { toToolRules } from "./stages/policy-index.ts";

/** How long a plugin answers by a profile before it asks for a new one. */
export const localProfileTtlMs = 60_000;

/** What plugins may answer by themselves under a policy, until when. */
export function toLocalProfile(policy: Policy, who: LocalCaller, nowMs: number): LocalProfile {
  return {
    policy_revision: policy.revision,
    digest: policy.digest,
    tools: [...toLocalTools(policy, who)],
    expires_at: new Date(nowMs + localProfileTtlMs).toISOString(),
  };
}

/** Who would answer by itself, and where. */
export interface LocalCaller {
  readonly tenant: string;
  readonly user: string;
  readonly environment: string;
}

/**
 * The local tools of a policy that have no effect, that are permitted whatever the session carries, and that no rule for
 * labels, persons, facts or limits can reach.
 */
export function toLocalTools(policy: Policy, who: LocalCaller): readonly string[] {
  return policy.localTools.filter((tool) => {
    const entry = findTool(policy.tools, tool);
    if (entry === null || entry.tool.endsWith("*") || entry.effect !== "none") return false;
    if (!isPermitted(tool, entry, policy, who)) return false;
    const rules = toToolRules(policy, tool);
    const mostRisk = rules.risk
      .filter(({ when }) => canHold(when, tool, entry, policy, 100))
      .reduce((sum, { points }) => sum + points, 0);
    const gated = [...rules.labels, ...rules.approvals, ...rules.facts, ...rules.rates, ...rules.budgets];
    return ![...gated, ...rules.rewrites].some(({ when }) => canHold(when, tool, entry, policy, mostRisk));
  });
}

function isPermitted(tool: string, entry: ToolEntry, policy: Policy, who: LocalCaller): boolean {
  const known = [...new Set(policy.labels.flatMap((rule) => rule.labels))].sort();
  return [[], known].every((labels) => {
    const { tenant, user, environment } = who;
    const { action, effect, dataClass } = entry;
    const of = { tenant, user, environment, agent: "", runtime: "" };
    const answer = policy.cedar.ask({ tool, action, effect, dataClass, signals: [], labels, ...of });
    return answer.denied.length === 0 && answer.forbidden.length === 0 && answer.permitted.length > 0;
  });
}

/** Whether a rule for this tool can hold for some input of it. In doubt it can. */
function canHold(when: When, tool: string, entry: ToolEntry, policy: Policy, mostRisk: number): boolean {
  if (when.riskAtLeast !== null && when.riskAtLeast > mostRisk) return false;
  if (when.effects.length > 0 && !when.effects.includes(entry.effect)) return false;
  const possible = (id: string): boolean => canArise(id, tool, entry, policy.signals);
  if (when.signalsAny.length > 0 && !when.signalsAny.some(possible)) return false;
  return when.signalsAll.every(possible);
}

function canArise(id: string, tool: string, entry: ToolEntry, signals: readonly SignalRule[]): boolean {
  const rules = signals.filter((one) => one.id === id);
  // Those that are built in speak of commands, paths and addresses: of what a tool names as its resource.
  if (rules.length === 0) return entry.resource.kind !== "text";
  return rules.some(({ tools, test }) => {
    if (tools.length > 0 && !tools.some((pattern) => toolFits(pattern, tool))) return false;
    switch (test.kind) {
      case "path":
      case "outside_workspace":
      case "command":
        return entry.resource.kind !== "text";
      case "field":
      case "field_present":
      case "any_text":
      case "url_host":
      case "url_scheme_other_than":
        return true;
    }
  });
}

/** The ruling that a runtime gave itself, with what the rules for labels say all the same. */
export function toLocalRuling(ruling: Ruling): Ruling {
  const noted = ruling.notes.flatMap((note) => (note.kind === "labels" ? note.labels : []));
  return Object.assign({}, ruling, {
    decision: "allow",
    reason: "LOCAL_PROFILE",
    message: reasonCodes.LOCAL_PROFILE,
    labels: [...new Set([localProfileLabel, ...noted])].sort(),
    modifiedInput: null,
    confirm: null,
    needsCapability: false,
    approval: { kind: "none" },
    voidsApproval: null,
    waitsFor: null,
    spends: [],
  } as const);
}
