import type { RE2JS } from "re2js";
import type { Constraints, DecisionName, JsonObject, ReasonCode } from "../../../schemas/gate.ts";
import type { DataClass, EffectClass } from "../../../schemas/generated/types.ts";
import type { DeclaredPrograms } from "../shell/declared-programs.ts";

/** What an input field that names a resource holds. */
export type ResourceKind = "command" | "path" | "patch" | "url" | "sql" | "text";

/** One tool of the catalogue; what is not listed is unknown, and unknown is denied. */
export interface ToolEntry {
  /** A tool's name, or the beginning of names with `*` at its end. */
  readonly tool: string;
  readonly effect: EffectClass;
  readonly dataClass: DataClass;
  /** The Cedar action: `Action::"run"`. */
  readonly action: string;
  readonly resource: {
    readonly kind: ResourceKind;
    /** Input fields that name it; runtimes differ. Each one that is there counts. */
    readonly fields: readonly string[];
    readonly required: boolean;
  };
  /** Input fields that change nothing in what is done, such as a description: they are no part of the plan. */
  readonly volatile: readonly string[];
  readonly constraints: Constraints;
  /** Problems of an input with the tool's own JSON Schema, in words; empty when it validates or there is no schema. */
  readonly inputProblems: (input: JsonObject) => readonly string[];
  /** Fields that the schema names, `list[].field` for those of a list's objects. Absent: no schema, or it names none. */
  readonly knownFields?: ReadonlySet<string>;
}

/** A test on the texts, paths and addresses of a request; see `signals.yaml`. */
export type SignalTest =
  | { readonly kind: "field"; readonly fields: readonly string[]; readonly pattern: RE2JS }
  | { readonly kind: "field_present"; readonly fields: readonly string[] }
  | { readonly kind: "any_text"; readonly pattern: RE2JS }
  | { readonly kind: "url_host"; readonly pattern: RE2JS }
  | { readonly kind: "url_scheme_other_than"; readonly schemes: readonly string[] }
  /** Resolved files that a tool or a command reads or writes; `any` is both. */
  | { readonly kind: "path"; readonly mode: "read" | "write" | "any"; readonly pattern: RE2JS }
  | { readonly kind: "outside_workspace"; readonly mode: "read" | "write" | "any" }
  /** Words of a simple command, the resolved program first: `["git", "push"]`. Options between them are skipped. */
  | { readonly kind: "command"; readonly any: readonly (readonly string[])[]; readonly option: RE2JS | null };

/** A named fact about one request: what rules speak of. */
export interface SignalRule {
  readonly id: string;
  readonly tools: readonly string[];
  readonly test: SignalTest;
}

/** When a YAML rule holds: all parts that are given do. Empty lists are parts that are not given. */
export interface When {
  readonly tools: readonly string[];
  readonly effects: readonly EffectClass[];
  readonly runtimes: readonly string[];
  readonly environments: readonly string[];
  readonly signalsAny: readonly string[];
  readonly signalsAll: readonly string[];
  readonly signalsNone: readonly string[];
  readonly labelsAny: readonly string[];
  readonly labelsNone: readonly string[];
  /** Score from which it holds, 0-100; null: not asked. */
  readonly riskAtLeast: number | null;
}

interface Rule {
  readonly id: string;
  readonly when: When;
  readonly message: string;
  /** -1000 to 1000; chooses among equal verdicts which reason leads. */
  readonly priority: number;
}

/** Adds to a request's risk; the sum is cut at 100. */
export interface RiskRule extends Omit<Rule, "message" | "priority"> {
  readonly points: number;
}
/** Scores from which a plan is medium, high, critical. */
export interface RiskLevels {
  readonly medium: number;
  readonly high: number;
  readonly critical: number;
}
/** A person has to agree. */
export interface ApprovalRule extends Rule {
  readonly ttlMs: number;
  /** `user`: whoever sits at the runtime may agree, in its own dialog; without such a dialog an approver has to. */
  readonly by: "approver" | "user";
}
/** A dated fact that has to be there and fresh; else the call is deferred, and past `deadlineMs` denied. */
export interface FactRule extends Rule {
  /** Name of the fact, such as `deploy.freeze`. */
  readonly fact: string;
  readonly maxAgeMs: number;
  readonly deadlineMs: number;
  /** Denies when the fresh fact's value is one of these. */
  readonly denyWhen: readonly (string | number | boolean)[];
  /** Allows, and says the message, when it is one of these. */
  readonly warnWhen: readonly (string | number | boolean)[];
  /** Whose value counts, of a fact that is told by user, agent or tool; null: the fact has one value. */
  readonly by: FactScope | null;
}
/** What a fact may be told by. */
export const factScopes = ["user", "agent", "tool"] as const;
export type FactScope = (typeof factScopes)[number];
/** Limits that ride along with a right. */
export interface ConstraintRule extends Omit<Rule, "message" | "priority"> {
  readonly constraints: Constraints;
}
/** Labels that the session carries from the intent, or from the reported result, on. */
export interface LabelRule extends Omit<Rule, "message" | "priority"> {
  readonly labels: readonly string[];
}
/** What the input becomes before it runs. */
export interface RewriteRule extends Rule {
  readonly set: JsonObject;
  /** Fields taken away. */
  readonly remove: readonly string[];
}
/** Whose calls are counted together. */
export type CountScope = "tenant" | "session" | "agent" | "user" | "tool";
/** At most `limit` calls of a scope in a window of the wall clock. */
export interface RateRule extends Rule {
  readonly scope: CountScope;
  readonly windowMs: number;
  readonly limit: number;
}
/** At most `limit` spent by a scope; a call costs `cost`. `windowMs` null: for ever. */
export interface BudgetRule extends Rule {
  readonly scope: CountScope;
  readonly windowMs: number | null;
  readonly limit: number;
  readonly cost: number;
}

/** One Cedar policy that spoke. */
export interface CedarMatch {
  readonly id: string;
  readonly reason: ReasonCode;
  readonly message: string;
  readonly priority: number;
}
/** What the two Cedar files say of one request. An error in evaluation is a match of the set that it came from. */
export interface CedarAnswer {
  /** Forbids of `static-deny.cedar`. */
  readonly denied: readonly CedarMatch[];
  /** Forbids of `authorization.cedar`. */
  readonly forbidden: readonly CedarMatch[];
  /** Permits of `authorization.cedar`. */
  readonly permitted: readonly CedarMatch[];
}
/** Cedar's question, in plain values. Sets are sorted and without doubles. */
export interface CedarQuestion {
  readonly tenant: string;
  readonly user: string;
  readonly agent: string;
  readonly runtime: string;
  readonly tool: string;
  readonly action: string;
  readonly effect: EffectClass;
  readonly dataClass: DataClass;
  readonly environment: string;
  readonly signals: readonly string[];
  readonly labels: readonly string[];
}
/** Pre-parsed policies. Deterministic; never throws: a failure is a match with reason RULE_FAILED. */
export interface CedarPolicies {
  ask(question: CedarQuestion): CedarAnswer;
}

/** A policy bundle: immutable once loaded. */
export interface Policy {
  /** Its folder's name. */
  readonly name: string;
  /** `policy@<date>.<n>+<first 12 of the digest>`. */
  readonly revision: string;
  /** SHA-256 over all files of the bundle, hex. */
  readonly digest: string;
  readonly tools: readonly ToolEntry[];
  readonly signals: readonly SignalRule[];
  /** What it says of programs of its own; absent: nothing. */
  readonly programs?: DeclaredPrograms;
  readonly cedar: CedarPolicies;
  readonly risk: { readonly rules: readonly RiskRule[]; readonly levels: RiskLevels };
  readonly approvals: readonly ApprovalRule[];
  readonly facts: readonly FactRule[];
  readonly constraints: readonly ConstraintRule[];
  readonly labels: readonly LabelRule[];
  readonly rewrites: readonly RewriteRule[];
  readonly rates: readonly RateRule[];
  readonly budgets: readonly BudgetRule[];
  /** Most agents that may have started each other, one the next, below what began it; absent: `defaultAutomationDepthMax`. */
  readonly automationDepthMax?: number;
  /** Tools that a plugin may answer by itself: they have no effect and set no label. */
  readonly localTools: readonly string[];
}

/** What one rule says. */
export interface Verdict {
  /** Unique name of the rule. */
  readonly rule: string;
  /** Stage that it spoke in. */
  readonly stage: StageName;
  readonly decision: Exclude<DecisionName, "modify">;
  readonly reason: ReasonCode;
  readonly message: string;
  readonly priority: number;
  /** Static deny, revocation, freeze and a resource's own deny: they lead over every other deny. */
  readonly isAbsolute?: boolean;
}

/** The stages in their fixed order. */
export const stageNames = [
  "classify",
  "static-deny",
  "authorize",
  "risk",
  "normalize",
  "plan",
  "capability",
] as const;
export type StageName = (typeof stageNames)[number];
