import type { Constraints, DecisionName, JsonObject, ReasonCode } from "../../schemas/gate.ts";
import type { Risk } from "../../schemas/generated/types.ts";
import type { Classified } from "./classified.ts";
import type { Plan } from "./plan.ts";
import type { StageName, Verdict } from "./policy/policy.ts";

/** What a ruling takes from a counter; written in the decision's own commit, or the call is decided again. */
export interface Spend {
  /** See `toCounterKey`. */
  readonly key: string;
  readonly amount: number;
  readonly limit: number;
  /** When the counter can be forgotten, UTC milliseconds; null: never. */
  readonly expiresAtMs: number | null;
}

/** What becomes of approvals with a ruling. */
export type ApprovalStep =
  | { readonly kind: "none" }
  /** A new one is asked for. */
  | { readonly kind: "request"; readonly ttlMs: number }
  /** One is open already. */
  | { readonly kind: "await"; readonly approvalId: string; readonly expiresAtMs: number }
  /** The call passes by using it up. */
  | { readonly kind: "consume"; readonly approvalId: string };

/** What a matching rule did beside saying yes or no. */
export type RuleNote = { readonly rule: string; readonly stage: StageName } & (
  | { readonly kind: "risk"; readonly points: number }
  | { readonly kind: "approval"; readonly ttlMs: number }
  /** The user at the runtime has to agree, in its own dialog. */
  | { readonly kind: "confirm"; readonly message: string }
  /** `warning`: what the rule says although it does not stand against the call. */
  | { readonly kind: "fact"; readonly fact: string; readonly warning?: string }
  /** `used` is what was spent before this call. */
  | { readonly kind: "limit"; readonly used: number; readonly amount: number; readonly limit: number }
  | { readonly kind: "constraints"; readonly constraints: Constraints }
  | { readonly kind: "labels"; readonly labels: readonly string[] }
  /** Fields of the input that the rule set or took away; empty: others were before it, or the call was denied as it was. */
  | { readonly kind: "rewrite"; readonly fields: readonly string[] }
);

/** The outcome, before it has ids and a time. */
export interface Ruling {
  readonly decision: DecisionName;
  readonly reason: ReasonCode;
  readonly message: string;
  /** The rule whose reason leads; null: nobody spoke. */
  readonly leadRule: string | null;
  /** Everything that every rule of every stage said, also those that lost; in a fixed order. */
  readonly verdicts: readonly Verdict[];
  /** What rules added beside their verdicts, in a fixed order. */
  readonly notes: readonly RuleNote[];
  /** Ids of all rules that matched, also those that only add risk, limits or labels; sorted, each once. */
  readonly matchedRules: readonly string[];
  readonly constraints: Constraints;
  /** Labels that the session carries from here on; empty unless allowed. */
  readonly labels: readonly string[];
  /** 0-100. */
  readonly riskScore: number;
  readonly risk: Risk;
  readonly classified: Classified;
  readonly plan: Plan;
  /** Digest of the plan as proposed, without operands and limits: what approvals and revocations are found by. */
  readonly intentDigest: string | null;
  /** Digest of the frozen plan; null when the input has no canonical form. */
  readonly planDigest: string | null;
  /** The input that runs in place of the one asked for; null: the one asked for. */
  readonly modifiedInput: JsonObject | null;
  /** Allowed only if the user agrees in the runtime's own dialog: what it has to say. Null: no such condition. */
  readonly confirm: string | null;
  /** Whether the plan has effects and is allowed: such a plan gets a capability. */
  readonly needsCapability: boolean;
  readonly approval: ApprovalStep;
  /** An approved approval that does not fit the plan any more. */
  readonly voidsApproval: string | null;
  /** Facts that a deferred call waits for, and until when (UTC milliseconds); null: not deferred. */
  readonly waitsFor: { readonly facts: readonly string[]; readonly untilMs: number } | null;
  readonly spends: readonly Spend[];
}
