import type { GateRequest } from "../../../schemas/gate.ts";
import type { Classified } from "../classified.ts";
import type { Facts } from "../facts-of-call.ts";
import type { CedarAnswer, Policy, StageName, Verdict } from "../policy/policy.ts";
import type { RuleNote, Spend } from "../ruling.ts";

/** What the stages 1 to 4 see of one form of the input. */
export interface StageInput {
  readonly request: GateRequest;
  /** With the signals that the operands add. */
  readonly classified: Classified;
  readonly facts: Facts;
  readonly policy: Policy;
  /** What Cedar says; asked once. Throws when Cedar does. */
  readonly cedar: () => CedarAnswer;
}

/** A fact that a deferred call waits for. */
export interface Wait {
  readonly fact: string;
  readonly untilMs: number;
}

/** What a stage says. */
export interface StageResult {
  readonly verdicts: readonly Verdict[];
  readonly notes: readonly RuleNote[];
  readonly spends: readonly Spend[];
  readonly waits: readonly Wait[];
  /** 0-100; null: the stage judges no risk. */
  readonly riskScore: number | null;
}

/** A pure judgement. Stages run in the order of their list, each whatever the others said. */
export interface Stage {
  readonly name: StageName;
  judge(input: StageInput): StageResult;
}

/** A stage's result, from the parts that it has. */
export function toResult(parts: Partial<StageResult>): StageResult {
  return { verdicts: [], notes: [], spends: [], waits: [], riskScore: null, ...parts };
}

/** Stages whose denies are absolute: where one of them fails, it could have been such a deny. */
const absoluteStages: ReadonlySet<StageName> = new Set(["static-deny", "authorize"]);

/** The deny of a rule or stage that could not judge. */
export function toFailure(stage: StageName, rule: string, error: unknown): Verdict {
  const why = error instanceof Error ? error.message : "it failed";
  return {
    rule,
    stage,
    decision: "deny",
    reason: "RULE_FAILED",
    message: `\`${rule}\` could not judge: ${why}`,
    priority: 0,
    ...(absoluteStages.has(stage) ? { isAbsolute: true } : {}),
  };
}

/** Runs a stage; what it throws is a deny that names it. */
export function judgeSafely(stage: Stage, input: StageInput): StageResult {
  try {
    return stage.judge(input);
  } catch (error) {
    return toResult({ verdicts: [toFailure(stage.name, `stage.${stage.name}`, error)] });
  }
}
