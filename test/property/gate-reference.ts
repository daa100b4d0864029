import { createHash } from "node:crypto";
import type { Json, JsonObject } from "../../schemas/gate.ts";

// The gate's rules once more, as plainly as the design says them. It imports nothing of the gate, so that it cannot
// share its mistakes; speed and form are of no concern here.

/** When a rule holds; a part that is not given holds always. A broken one throws for the tools it is for. */
export interface Condition {
  readonly tools?: readonly string[];
  readonly effects?: readonly string[];
  readonly runtimes?: readonly string[];
  readonly environments?: readonly string[];
  readonly any?: readonly string[];
  readonly all?: readonly string[];
  readonly none?: readonly string[];
  readonly labelsAny?: readonly string[];
  readonly labelsNone?: readonly string[];
  readonly risk?: number;
  readonly broken?: true;
}
export interface View {
  readonly tool: string;
  readonly effect: string;
  readonly runtime: string;
  readonly environment: string;
  readonly signals: readonly string[];
  readonly labels: readonly string[];
  readonly risk: number;
}
interface Named {
  readonly id: string;
  readonly when: Condition;
}
interface Speaking extends Named {
  readonly priority: number;
  readonly message: string;
}
export interface Limits {
  readonly network?: "none" | "listed" | "any";
  readonly max_runtime_seconds?: number;
  readonly paths?: readonly string[];
  readonly max_calls?: number;
}
export interface CountRule extends Speaking {
  readonly scope: "tenant" | "session" | "agent" | "user" | "tool";
  readonly windowMs: number | null;
  readonly limit: number;
  readonly cost: number;
}
export interface ToolSpec {
  readonly tool: string;
  readonly effect: string;
  readonly action: string;
  readonly kind: "command" | "path";
  /** The field that names what is acted on. */
  readonly field: string;
  readonly volatile: readonly string[];
  readonly limits: Limits;
  /** A field that the tool's schema does not know. */
  readonly refuses: string;
}
export interface RuleSet {
  readonly staticDeny: readonly Speaking[];
  readonly forbid: readonly Speaking[];
  readonly permit: readonly Speaking[];
  readonly risk: readonly (Named & { readonly points: number })[];
  readonly approvals: readonly (Speaking & { readonly ttlMs: number; readonly by: "approver" | "user" })[];
  readonly facts: readonly (Speaking & {
    readonly fact: string;
    readonly maxAgeMs: number;
    readonly deadlineMs: number;
    readonly denyWhen: readonly (string | number | boolean)[];
    readonly warnWhen: readonly (string | number | boolean)[];
    readonly by: null;
  })[];
  readonly limits: readonly (Named & { readonly limits: Limits })[];
  readonly labels: readonly (Named & { readonly labels: readonly string[] })[];
  readonly rewrites: readonly (Speaking & { readonly set: JsonObject; readonly remove: readonly string[] })[];
  readonly rates: readonly CountRule[];
  readonly budgets: readonly CountRule[];
}
/** A policy, a request and what is known, in the reference's own words. */
export interface Scenario {
  readonly tools: readonly ToolSpec[];
  readonly rules: RuleSet;
  readonly levels: { readonly medium: number; readonly high: number; readonly critical: number };
  readonly isCedarDown: boolean;
  readonly tool: string;
  readonly input: JsonObject;
  readonly isDialog: boolean;
  /** The runtime asks its own user where a rule leaves it to that one. */
  readonly hasDialog: boolean;
  readonly runtime: string;
  readonly folder: string | null;
  readonly nowMs: number;
  readonly environment: string;
  readonly isFrozen: boolean;
  readonly isRevoked: boolean;
  readonly sessionLabels: readonly string[];
  readonly openApprovals: number;
  readonly deferredSinceMs: number | null;
  readonly approval: {
    readonly id: string;
    readonly state: "pending" | "approved" | "refused" | "expired" | "consumed" | "voided";
    readonly isOfThisPlan: boolean;
    /** What the person was shown as the reasons. */
    readonly shownRules: readonly string[];
    readonly expiresAtMs: number;
  } | null;
  /** By the rule's id, in the window that is now. */
  readonly spent: Readonly<Record<string, number>>;
  readonly dated: Readonly<Record<string, { readonly value: Json; readonly atMs: number }>>;
  readonly contents: readonly { readonly path: string; readonly digest: string | null }[];
}

/** What one rule says: rank 0 is an absolute deny, 1 deny, 2 defer, 3 require_approval, 4 allow. */
interface Say {
  readonly rule: string;
  readonly rank: number;
  readonly reason: string;
  readonly message: string;
  readonly priority: number;
}
const rankNames = ["deny", "deny", "defer", "require_approval", "allow"];

export interface Outcome {
  readonly decision: string;
  readonly reason: string;
  readonly message: string;
  readonly lead: string | null;
  /** `rule decision reason` of every rule that spoke, sorted, each once. */
  readonly said: readonly string[];
  readonly matched: readonly string[];
  readonly limits: Limits;
  readonly labels: readonly string[];
  readonly score: number;
  readonly level: string;
  readonly intentDigest: string;
  readonly planDigest: string;
  readonly modifiedInput: JsonObject | null;
  readonly confirm: string | null;
  readonly needsCapability: boolean;
  readonly approval: string;
  readonly voids: string | null;
  readonly waits: { readonly facts: readonly string[]; readonly untilMs: number } | null;
  /** `rule amount limit`. */
  readonly spends: readonly string[];
}

/** Whether a condition holds. */
export function holds(condition: Condition, view: View): boolean {
  if (condition.tools !== undefined && !condition.tools.includes(view.tool)) return false;
  if (condition.broken === true) throw new Error("broken");
  if (condition.effects !== undefined && !condition.effects.includes(view.effect)) return false;
  if (condition.runtimes !== undefined && !condition.runtimes.includes(view.runtime)) return false;
  if (condition.environments !== undefined && !condition.environments.includes(view.environment))
    return false;
  if (condition.any !== undefined && !condition.any.some((one) => view.signals.includes(one))) return false;
  if (condition.all !== undefined && !condition.all.every((one) => view.signals.includes(one))) return false;
  if (condition.none !== undefined && condition.none.some((one) => view.signals.includes(one))) return false;
  if (condition.labelsAny !== undefined && !condition.labelsAny.some((one) => view.labels.includes(one))) {
    return false;
  }
  if (condition.labelsNone !== undefined && condition.labelsNone.some((one) => view.labels.includes(one))) {
    return false;
  }
  return condition.risk === undefined || view.risk >= condition.risk;
}

/** What is known of an input: a text with `!word` carries the signal `word`; `script` names a file that would run. */
export function readInput(
  spec: ToolSpec | undefined,
  input: JsonObject,
): {
  readonly signals: readonly string[];
  readonly resource: string | null;
  readonly scripts: readonly string[];
  readonly isUnreadable: boolean;
} {
  const texts = Object.values(input).filter((one) => typeof one === "string");
  const signals = new Set(
    texts.flatMap((text) => [...text.matchAll(/!([a-z]+)/g)].map(([, word]) => word ?? "")),
  );
  const named = spec === undefined ? undefined : input[spec.field];
  return {
    signals: [...signals].sort(),
    resource: typeof named === "string" ? named : null,
    scripts: typeof input.script === "string" ? [input.script] : [],
    isUnreadable: input.garbage === true,
  };
}

/** Decides. */
export function referTo(scenario: Scenario): Outcome {
  const spec = scenario.tools.find((one) => one.tool === scenario.tool);
  const first = speak(scenario, scenario.input);

  // The rewrites that hold for the input as it was asked.
  const says = [...first.says];
  const matched = [...first.matched];
  const rewrites = scenario.rules.rewrites.filter((rule) =>
    tryRule(says, rule.id, 1, () => holds(rule.when, first.view)),
  );
  matched.push(...rewrites.map((rule) => rule.id));
  const beforeRewrite = leadOf(says);
  let last = first;
  let rewriteLead: (typeof rewrites)[number] | null = null;
  let input = scenario.input;
  if (beforeRewrite !== null && beforeRewrite.rank >= 2) {
    const ranked = [...rewrites].sort((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1));
    const fields = new Set(ranked.flatMap((rule) => [...Object.keys(rule.set), ...rule.remove]));
    const changers = new Set<string>();
    const changed: Record<string, Json> = { ...input };
    for (const field of fields) {
      const owner = ranked.find((rule) => field in rule.set || rule.remove.includes(field));
      if (owner === undefined) continue;
      const had = JSON.stringify(input[field]);
      if (field in owner.set) changed[field] = owner.set[field] ?? null;
      else delete changed[field];
      if (JSON.stringify(changed[field]) !== had) changers.add(owner.id);
    }
    rewriteLead = ranked.find((rule) => changers.has(rule.id)) ?? null;
    if (rewriteLead !== null) {
      input = changed;
      last = speak(scenario, input);
      says.push(...last.says);
      matched.push(...last.matched);
      const before = readInput(spec, scenario.input);
      const after = readInput(spec, input);
      const isOtherResource = before.resource !== after.resource;
      const doesMore = last.view.signals.some((one) => !first.view.signals.includes(one));
      const isRefused = spec !== undefined && spec.refuses in input;
      const isFault = (spec?.kind === "command" ? doesMore : isOtherResource) || isRefused;
      if (isFault) {
        for (const rule of ranked.filter((one) => changers.has(one.id))) {
          says.push({ rule: rule.id, rank: 1, reason: "RULE_FAILED", message: "", priority: rule.priority });
        }
      }
    }
  }

  const limits = strictest([...(spec === undefined ? [] : [spec.limits]), ...first.limits, ...last.limits]);
  const operands = contentsOf(scenario, input);
  const arguments_ = Object.fromEntries(
    Object.entries(input).filter(([field]) => spec?.volatile.includes(field) !== true),
  );
  const action = spec?.action ?? "unknown";
  const base = {
    tool: scenario.tool,
    action,
    working_directory: scenario.folder,
    environment: scenario.environment,
  };
  const planDigest = digest({
    ...base,
    arguments: arguments_,
    resource: readInput(spec, input).resource,
    operands,
    constraints: limits as Json,
  });
  const intentDigest = digest({
    ...base,
    arguments: Object.fromEntries(
      Object.entries(scenario.input).filter(([field]) => spec?.volatile.includes(field) !== true),
    ),
    resource: readInput(spec, scenario.input).resource,
  });

  // A person's word.
  let approval = "none";
  let voids: string | null = null;
  let lead = leadOf(says);
  const needsPerson = says.some((one) => one.rank === 3);
  let isSettled = false;
  if (needsPerson && (lead?.rank === 2 || lead?.rank === 3)) {
    const isWaiting = lead.rank === 2;
    const known = scenario.approval;
    const isLive = known !== null && scenario.nowMs < known.expiresAtMs;
    const isAgreedTo =
      known?.isOfThisPlan === true &&
      says.every((one) => one.rank !== 3 || known.shownRules.includes(one.rule));
    if (isLive && known.state === "refused") {
      says.push(say(`approval.${known.id}`, 1, "APPROVAL_REFUSED", 10_000));
    } else if (isLive && known.state === "pending" && isAgreedTo) {
      if (!isWaiting) approval = `await ${known.id}`;
    } else if (isLive && known.state === "approved" && isAgreedTo) {
      if (!isWaiting) {
        approval = `consume ${known.id}`;
        isSettled = true;
        says.push(say(`approval.${known.id}`, 4, "APPROVED", 10_000));
      }
    } else {
      const isDrift = isLive && (known.state === "approved" || known.state === "pending");
      if (scenario.openApprovals >= 10) {
        says.push(say("approval.too-many-open", 1, "TOO_MANY_APPROVALS", 0));
        if (isDrift) voids = known.id;
      } else if (!isWaiting) {
        approval = `request ${String(Math.min(...first.ttls, ...last.ttls))}`;
        if (isDrift) voids = known.id;
      }
    }
    lead = leadOf(isSettled ? says.filter((one) => one.rank !== 3) : says);
  }

  const plain = lead === null ? "deny" : (rankNames[lead.rank] ?? "deny");
  const isAllowed = plain === "allow";
  const isModified = isAllowed && rewriteLead !== null;
  const isTold = isModified && lead?.reason !== "APPROVED";
  const score = Math.max(first.score, last.score);
  const waits = [...first.waits, ...last.waits];
  const spends = new Set([...first.spends, ...last.spends]);
  const byRule = [...first.warnings, ...last.warnings].sort(([a], [b]) => (a < b ? -1 : 1));
  const confirming = [...first.confirms, ...last.confirms].sort(([a], [b]) => (a < b ? -1 : 1));
  const asked = [...new Set(confirming.map(([, message]) => message))];
  const warned = [...new Set(byRule.map(([, message]) => message))];
  return {
    decision: isModified ? "modify" : plain,
    reason: isTold ? "REWRITTEN" : (lead?.reason ?? "NO_RULE_SPOKE"),
    message: [
      isTold ? (rewriteLead?.message ?? "") : (lead?.message ?? "no rule allows this"),
      ...(isAllowed ? warned : []),
    ].join("; "),
    lead: isTold ? (rewriteLead?.id ?? null) : (lead?.rule ?? null),
    said: sorted(says.map((one) => `${one.rule} ${String(rankNames[one.rank])} ${one.reason}`)),
    matched: sorted([...matched, ...says.map((one) => one.rule)]),
    limits,
    labels: isAllowed ? sorted([...first.labels, ...last.labels]) : [],
    score,
    level: spec === undefined ? "unknown" : levelOf(scenario, score),
    intentDigest,
    planDigest,
    modifiedInput: isModified ? input : null,
    confirm: isAllowed && asked.length > 0 ? asked.join("; ") : null,
    needsCapability: isAllowed && !["none", "read"].includes(spec?.effect ?? "unknown"),
    approval,
    voids,
    waits:
      plain === "defer"
        ? {
            facts: sorted(waits.map((one) => one.fact)),
            untilMs: Math.min(...waits.map((one) => one.untilMs)),
          }
        : null,
    spends: isAllowed ? [...spends].sort() : [],
  };
}

/** Stages 1 to 4. */
function speak(scenario: Scenario, input: JsonObject) {
  const { rules } = scenario;
  const spec = scenario.tools.find((one) => one.tool === scenario.tool);
  const read = readInput(spec, input);
  const unread = contentsOf(scenario, input).some((one) => one.digest === null);
  const signals = sorted([...read.signals, ...(unread ? ["operand.unreadable"] : [])]);
  const says: Say[] = [];
  const matched: string[] = [];
  const unscored: View = {
    tool: scenario.tool,
    effect: spec?.effect ?? "unknown",
    runtime: scenario.runtime,
    environment: scenario.environment,
    signals,
    labels: scenario.sessionLabels,
    risk: 0,
  };
  const matching = <R extends Named>(all: readonly R[], view: View, failRank = 1): R[] =>
    all.filter((rule) => tryRule(says, rule.id, failRank, () => holds(rule.when, view)));

  // 1
  if (spec === undefined) says.push(say("classify.tool-unknown", 1, "TOOL_UNKNOWN", 0));
  if (read.isUnreadable) says.push(say("classify.input-unreadable", 1, "INPUT_UNREADABLE", 0));
  // 2 and 3
  if (scenario.isFrozen) says.push(say("incident.tenant-frozen", 0, "TENANT_FROZEN", 10_000));
  if (scenario.isRevoked) says.push(say("incident.plan-revoked", 0, "PLAN_REVOKED", 9_000));
  if (spec !== undefined && scenario.isCedarDown) {
    says.push(say("stage.static-deny", 0, "RULE_FAILED", 0), say("stage.authorize", 0, "RULE_FAILED", 0));
  } else if (spec !== undefined) {
    const cedar = (all: readonly Speaking[], rank: number, reason: string): void => {
      for (const rule of all) {
        if (rule.when.broken === true) says.push({ ...say(rule.id, 0, "RULE_FAILED", rule.priority) });
        else if (holds(rule.when, unscored)) {
          says.push({ rule: rule.id, rank, reason, message: rule.message, priority: rule.priority });
        }
      }
    };
    cedar(rules.staticDeny, 0, "STATIC_DENY");
    cedar(rules.forbid, 0, "NOT_AUTHORIZED");
    cedar(rules.permit, 4, "ALLOWED");
  }
  // 4
  const risky = matching(rules.risk, unscored);
  const score = Math.min(
    100,
    risky.reduce((sum, rule) => sum + rule.points, 0),
  );
  const view = { ...unscored, risk: score };
  const spoken = matching(rules.approvals, view);
  // Of those that the runtime's own dialog asks about, nobody else is asked; alone they allow nothing. A no stays one.
  const wasRefused = scenario.approval?.state === "refused" && scenario.nowMs < scenario.approval.expiresAtMs;
  const isOwnQuestion = (rule: (typeof spoken)[number]): boolean =>
    rule.by === "user" && scenario.hasDialog && !wasRefused;
  const approvals = spoken.filter((rule) => !isOwnQuestion(rule));
  const confirms = spoken.filter(isOwnQuestion);
  for (const rule of approvals) {
    says.push({ ...rule, rule: rule.id, rank: 3, reason: "APPROVAL_REQUIRED" });
  }
  const facts = matching(rules.facts, view);
  const waits: { fact: string; untilMs: number }[] = [];
  const warnings: [string, string][] = [];
  for (const rule of facts) {
    const known = scenario.dated[rule.fact];
    if (known !== undefined && Math.abs(scenario.nowMs - known.atMs) <= rule.maxAgeMs) {
      if (rule.warnWhen.some((one) => one === known.value)) warnings.push([rule.id, rule.message]);
      if (rule.denyWhen.some((one) => one === known.value)) {
        says.push({ ...rule, rule: rule.id, rank: 1, reason: "FACT_DENIES" });
      }
    } else if (
      scenario.deferredSinceMs !== null &&
      scenario.nowMs >= scenario.deferredSinceMs + rule.deadlineMs
    ) {
      says.push({
        ...rule,
        rule: rule.id,
        rank: 1,
        reason: "DEFER_EXPIRED",
        message: `the fact \`${rule.fact}\` did not come in time: ${rule.message}`,
      });
    } else {
      says.push({ ...rule, rule: rule.id, rank: 2, reason: "FACT_MISSING" });
      waits.push({
        fact: rule.fact,
        untilMs: (scenario.deferredSinceMs ?? scenario.nowMs) + rule.deadlineMs,
      });
    }
  }
  const spends: string[] = [];
  const count = (all: readonly CountRule[], reason: string): string[] =>
    matching(all, view).map((rule) => {
      const amount = scenario.isDialog ? 0 : rule.cost;
      if ((scenario.spent[rule.id] ?? 0) + amount > rule.limit) {
        says.push({ ...rule, rule: rule.id, rank: 1, reason });
      } else if (amount > 0) spends.push(`${rule.id} ${String(amount)} ${String(rule.limit)}`);
      return rule.id;
    });
  const counted = [...count(rules.rates, "RATE_LIMITED"), ...count(rules.budgets, "BUDGET_SPENT")];
  const limiting = matching(rules.limits, view);
  const labelling = matching(rules.labels, view);
  matched.push(
    ...[...risky, ...spoken, ...facts, ...limiting, ...labelling].map((rule) => rule.id),
    ...counted,
  );
  return {
    says,
    matched,
    view,
    score,
    waits,
    warnings,
    spends,
    ttls: approvals.map((rule) => rule.ttlMs),
    confirms: confirms.map((rule): [string, string] => [rule.id, rule.message]),
    limits: limiting.map((rule) => rule.limits),
    labels: labelling.flatMap((rule) => rule.labels),
  };
}

const messages: Readonly<Record<string, string>> = {
  TENANT_FROZEN: "the tenant is frozen; an incident has to be lifted by a person first",
  PLAN_REVOKED: "this plan was revoked by a person; propose another one",
  APPROVED: "a person approved exactly this plan",
  APPROVAL_REFUSED: "a person refused this plan; propose another one",
  TOO_MANY_APPROVALS: "the session has 10 open approvals; have some of them decided first",
  TOOL_UNKNOWN: "unknown",
  INPUT_UNREADABLE: "unreadable",
};
function say(rule: string, rank: number, reason: string, priority: number): Say {
  return { rule, rank, reason, message: messages[reason] ?? "", priority };
}

/** A rule that throws denies. */
function tryRule(says: Say[], rule: string, rank: number, judge: () => boolean): boolean {
  try {
    return judge();
  } catch {
    says.push({ rule, rank, reason: "RULE_FAILED", message: "", priority: 0 });
    return false;
  }
}

/** Static deny, revocation, freeze and a resource's deny; then deny > defer > require_approval > allow. */
function leadOf(says: readonly Say[]): Say | null {
  const ordered = [...says].sort(
    (a, b) =>
      a.rank - b.rank ||
      b.priority - a.priority ||
      (a.rule < b.rule ? -1 : a.rule > b.rule ? 1 : a.reason < b.reason ? -1 : a.reason > b.reason ? 1 : 0),
  );
  return ordered[0] ?? null;
}

/** The most restrictive of each. A path is allowed when every list that there is allows it. */
function strictest(all: readonly Limits[]): Limits {
  const networks = all.map((one) => one.network);
  const network = networks.includes("none")
    ? "none"
    : networks.includes("listed")
      ? "listed"
      : networks.includes("any")
        ? "any"
        : undefined;
  const seconds = all.flatMap((one) =>
    one.max_runtime_seconds === undefined ? [] : [one.max_runtime_seconds],
  );
  const calls = all.flatMap((one) => (one.max_calls === undefined ? [] : [one.max_calls]));
  const lists = all.flatMap((one) => (one.paths === undefined ? [] : [one.paths]));
  const isIn = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);
  const allowed = sorted(lists.flat()).filter((path) =>
    lists.every((list) => list.some((folder) => isIn(path, folder))),
  );
  const roots = allowed.filter((path) => !allowed.some((other) => other !== path && isIn(path, other)));
  return {
    ...(network === undefined ? {} : { network }),
    ...(seconds.length === 0 ? {} : { max_runtime_seconds: Math.min(...seconds) }),
    ...(lists.length === 0 ? {} : { paths: roots }),
    ...(calls.length === 0 ? {} : { max_calls: Math.min(...calls) }),
  };
}

function contentsOf(scenario: Scenario, input: JsonObject): { path: string; digest: string | null }[] {
  const spec = scenario.tools.find((one) => one.tool === scenario.tool);
  return readInput(spec, input).scripts.map((path) => ({
    path,
    digest: scenario.contents.find((one) => one.path === path)?.digest ?? null,
  }));
}

function levelOf({ levels }: Scenario, score: number): string {
  if (score >= levels.critical) return "critical";
  if (score >= levels.high) return "high";
  return score >= levels.medium ? "medium" : "low";
}

function sorted(all: readonly string[]): string[] {
  return [...new Set(all)].sort();
}

/** RFC 8785 for what the scenarios hold: plain texts, whole numbers, lists and objects. */
function digest(value: Json): string {
  const write = (one: Json): string => {
    if (typeof one !== "object" || one === null) return JSON.stringify(one);
    if (Array.isArray(one)) return `[${one.map((each) => write(each as Json)).join(",")}]`;
    const object = one as JsonObject;
    const names = Object.keys(object).sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${write(object[name] ?? null)}`).join(",")}}`;
  };
  return `sha256:${createHash("sha256").update(write(value)).digest("hex")}`;
}
