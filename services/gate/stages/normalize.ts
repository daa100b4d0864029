import type { JsonObject } from "../../../schemas/gate.ts";
import type { Verdict } from "../policy/policy.ts";
import type { RuleNote } from "../ruling.ts";
import type { Form } from "./judged-form.ts";
import type { Merged } from "./merge.ts";
import { toToolRules } from "./policy-index.ts";
import type { findRewriteFault, rewriteInput, Rewritten } from "./rewrite.ts";
import { toRewriteFailures } from "./rewrite.ts";
import { rulesThatHold, toWhenView } from "./rule-view.ts";
import { toFailure } from "./stage.ts";

/** What stage 5 made of an input. */
export interface Normalized {
  /** The rewritten form as it was judged; null: the input stays. */
  readonly form: Form | null;
  /** The rewrite that is told to the caller. */
  readonly lead: { readonly id: string; readonly message: string } | null;
  readonly verdicts: readonly Verdict[];
  readonly notes: readonly RuleNote[];
}

/** What a normalization is made of. */
export interface NormalizeSteps {
  readonly mergeVerdicts: (verdicts: readonly Verdict[]) => Merged;
  readonly rewriteInput: typeof rewriteInput;
  readonly findRewriteFault: typeof findRewriteFault;
}

/**
 * Stage 5. What is denied as it is gets no rewrite; what waits for facts does, so that a rewrite's deny is not put off.
 * The rules that match are told always.
 * `judge` passes the new input through stages 1 to 4.
 */
export function normalize(
  steps: NormalizeSteps,
  asked: Form,
  said: readonly Verdict[],
  judge: (input: JsonObject) => Form,
): Normalized {
  const failures: Verdict[] = [];
  const notes: RuleNote[] = [];
  const { request, policy } = asked.input;
  try {
    const { rewrites } = toToolRules(policy, request.tool);
    if (rewrites.length === 0) return { form: null, lead: null, verdicts: failures, notes };
    const view = toWhenView(asked.input, asked.riskScore);
    const rules = rulesThatHold(rewrites, view, "normalize", failures);
    const { decision } = steps.mergeVerdicts([...said, ...failures]);
    const isRewritten = rules.length > 0 && decision !== "deny";
    const rewritten = isRewritten ? steps.rewriteInput(rules, request.input) : unchanged;
    for (const rule of rules) {
      const fields = rewritten.applied.find((one) => one.rule === rule)?.fields ?? [];
      notes.push({ kind: "rewrite", rule: rule.id, stage: "normalize", fields });
    }
    const [first] = rewritten.applied;
    if (first === undefined) return { form: null, lead: null, verdicts: failures, notes };
    const form = judge(rewritten.input);
    const fault = steps.findRewriteFault(asked, form);
    if (fault !== null) failures.push(...toRewriteFailures(rewritten.applied, fault));
    return { form, lead: first.rule, verdicts: failures, notes };
  } catch (error) {
    failures.push(toFailure("normalize", "stage.normalize", error));
    return { form: null, lead: null, verdicts: failures, notes };
  }
}

const unchanged: Rewritten = { input: {}, applied: [] };
