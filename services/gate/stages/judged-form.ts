import type { GateRequest } from "../../../schemas/gate.ts";
import type { Classified, Classify, Operand } from "../classified.ts";
import type { Facts } from "../facts-of-call.ts";
import type { CedarAnswer, Policy, Verdict } from "../policy/policy.ts";
import type { RuleNote, Spend } from "../ruling.ts";
import { toCedarQuestion } from "./authorize.ts";
import { classifySafely, toBoundOperands, withOperandSignal } from "./classify-stage.ts";
import type { Stage, StageInput, Wait } from "./stage.ts";
import { judgeSafely } from "./stage.ts";

/** What stages 1 to 4 say of one form of the input. */
export interface Form {
  readonly request: GateRequest;
  readonly classified: Classified;
  readonly operands: readonly Operand[];
  readonly verdicts: readonly Verdict[];
  readonly notes: readonly RuleNote[];
  readonly spends: readonly Spend[];
  readonly waits: readonly Wait[];
  readonly riskScore: number;
  /** What the stages saw. */
  readonly input: StageInput;
}

/** What a form is judged with. */
export interface JudgeWith {
  readonly classify: Classify;
  /** Content of the files that the call would run, as far as it is known. */
  readonly operands: readonly Operand[];
  readonly stages: readonly Stage[];
}

/** Stages 1 to 4 on one form of the input. */
export function judgeForm(request: GateRequest, facts: Facts, policy: Policy, judgeWith: JudgeWith): Form {
  const understood = classifySafely(judgeWith.classify, request, policy);
  const operands = toBoundOperands(understood.operandPaths, judgeWith.operands);
  const classified = withOperandSignal(understood, operands);
  const input: StageInput = { request, classified, facts, policy, cedar: askOnce };
  let answer: CedarAnswer | null = null;
  function askOnce(): CedarAnswer {
    // Cedar knows actions of the catalogue only; an unknown tool is denied by its finding.
    answer ??=
      classified.entry === null ? silence : policy.cedar.ask(toCedarQuestion(request, classified, facts));
    return answer;
  }
  const results = judgeWith.stages.map((stage) => judgeSafely(stage, input));
  return {
    request,
    classified,
    operands,
    verdicts: results.flatMap((one) => one.verdicts),
    notes: results.flatMap((one) => one.notes),
    spends: results.flatMap((one) => one.spends),
    waits: results.flatMap((one) => one.waits),
    riskScore: results.reduce((highest, one) => Math.max(highest, one.riskScore ?? 0), 0),
    input,
  };
}

const silence: CedarAnswer = { denied: [], forbidden: [], permitted: [] };
