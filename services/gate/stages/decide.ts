import type { GateRequest } from "../../../schemas/gate.ts";
import type { Classify, Operand } from "../classified.ts";
import type { Facts } from "../facts-of-call.ts";
import type { Plan } from "../plan.ts";
import { intentDigest, planDigest, toPlan } from "../plan.ts";
import type { Policy, Verdict } from "../policy/policy.ts";
import type { ApprovalStep, RuleNote, Ruling, Spend } from "../ruling.ts";
import { judgeApproval } from "./approval-step.ts";
import { authorizeStage } from "./authorize.ts";
import { classifyStage } from "./classify-stage.ts";
import type { Form } from "./judged-form.ts";
import { judgeForm } from "./judged-form.ts";
import type { Merged } from "./merge.ts";
import { compareText, mergeConstraints, mergeVerdicts } from "./merge.ts";
import { normalize } from "./normalize.ts";
import { toRecord } from "./record-order.ts";
import { findRewriteFault, rewriteInput } from "./rewrite.ts";
import { riskStage, toRisk } from "./risk.ts";
import type { Stage, Wait } from "./stage.ts";
import { toFailure } from "./stage.ts";
import { staticDenyStage } from "./static-deny.ts";

/** What a decision is made with. */
export interface DecideWith {
  readonly classify: Classify;
  /** Content of the files that the call would run, at the time of asking. */
  readonly operands: readonly Operand[];
  /** What the host itself says, such as that the facts keep changing. */
  readonly added?: readonly Verdict[];
}

/** The steps of a decision. */
export interface DecideSteps {
  /** Stages 1 to 4, in their fixed order. */
  readonly stages: readonly Stage[];
  readonly mergeVerdicts: typeof mergeVerdicts;
  readonly mergeConstraints: typeof mergeConstraints;
  readonly rewriteInput: typeof rewriteInput;
  readonly findRewriteFault: typeof findRewriteFault;
  readonly judgeApproval: typeof judgeApproval;
}

/** The gate's own steps. */
export const gateSteps: DecideSteps = {
  stages: [classifyStage, staticDenyStage, authorizeStage, riskStage],
  mergeVerdicts,
  mergeConstraints,
  rewriteInput,
  findRewriteFault,
  judgeApproval,
};

/** Decides. */
export type Decide = (request: GateRequest, facts: Facts, policy: Policy, decideWith: DecideWith) => Ruling;

/**
 * Decides. Deterministic: the same request, facts and policy give the same ruling, whatever the order of rules and
 * facts. A rewritten input passes stages 1 to 4 once more and is not rewritten again; what was said of both forms counts.
 * INVARIANT: agrees with a plain reading of the design (test/property/gate-decide.test.ts).
 */
export const decide: Decide = createDecide(gateSteps);

/** A decision made of given steps; the gate's own are `gateSteps`. */
export function createDecide(steps: DecideSteps): Decide {
  return (request, facts, policy, { classify, operands, added = [] }) => {
    const judgeWith = { classify, operands, stages: steps.stages };
    const asked = judgeForm(request, facts, policy, judgeWith);
    const { environment } = facts;
    const intent = intentDigest(
      toPlan(request, asked.classified, { environment, operands: [], constraints: {} }),
    );
    const verdicts = [...added, ...asked.verdicts, ...(intent === null ? [noCanonicalForm] : [])];
    const normalized = normalize(steps, asked, verdicts, (input) =>
      judgeForm({ ...request, input }, facts, policy, judgeWith),
    );
    const form = normalized.form ?? asked;
    const notes = [...asked.notes, ...normalized.notes, ...(normalized.form?.notes ?? [])];
    verdicts.push(...normalized.verdicts, ...(normalized.form?.verdicts ?? []));

    const constraints = steps.mergeConstraints([
      ...(form.classified.entry === null ? [] : [form.classified.entry.constraints]),
      ...notes.flatMap((one) => (one.kind === "constraints" ? [one.constraints] : [])),
    ]);
    const frozen = freeze(form, { environment, operands: form.operands, constraints });
    verdicts.push(...frozen.verdicts);

    const approved = approve(steps, facts, verdicts, notes, frozen.digest);
    const { merged } = approved;
    const isAllowed = merged.decision === "allow";
    const rewrite = isAllowed ? normalized.lead : null;
    const risen = Math.max(asked.riskScore, form.riskScore);
    const { effect, entry } = form.classified;
    const isDeferred = merged.decision === "defer";
    const spoken = toRecord([...verdicts, ...approved.verdicts]);
    const noted = toRecord(notes);
    const ruled = rewrite === null ? merged : { ...merged, ...toModify(merged, rewrite) };
    return {
      verdicts: spoken,
      notes: noted,
      matchedRules: [...new Set([...spoken, ...noted].map((one) => one.rule))].sort(),
      constraints,
      labels: isAllowed ? toLabels(noted) : [],
      riskScore: risen,
      risk: entry === null ? "unknown" : toRisk(risen, policy.risk.levels),
      classified: form.classified,
      plan: frozen.plan,
      intentDigest: intent,
      planDigest: frozen.digest,
      modifiedInput: rewrite === null ? null : form.request.input,
      confirm: isAllowed ? toConfirm(noted) : null,
      needsCapability: isAllowed && !withoutEffect.has(effect),
      approval: approved.step,
      voidsApproval: approved.voids,
      waitsFor: isDeferred ? toWaitsFor([...asked.waits, ...(normalized.form?.waits ?? [])]) : null,
      spends: isAllowed ? toSpends([...asked.spends, ...(normalized.form?.spends ?? [])]) : [],
      ...(isAllowed ? withWarnings(ruled, noted) : ruled),
    };
  };
}

const noCanonicalForm: Verdict = {
  rule: "classify.input-unreadable",
  stage: "plan",
  decision: "deny",
  reason: "INPUT_UNREADABLE",
  message: "the input has no canonical form",
  priority: 0,
};

/** Stage 6: the frozen plan. One without a digest cannot be bound to anything. */
function freeze(
  { request, classified }: Form,
  parts: Parameters<typeof toPlan>[2],
): { readonly plan: Plan; readonly digest: string | null; readonly verdicts: readonly Verdict[] } {
  const plan = toPlan(request, classified, parts);
  try {
    const digest = planDigest(plan);
    return { plan, digest, verdicts: digest === null ? [noCanonicalForm] : [] };
  } catch (error) {
    return { plan, digest: null, verdicts: [toFailure("plan", "stage.plan", error)] };
  }
}

/** How long an approval stays open that the host asks for and no rule. */
const unruledTtlMs = 900_000;

interface Approved {
  readonly merged: Merged;
  readonly step: ApprovalStep;
  readonly voids: string | null;
  readonly verdicts: readonly Verdict[];
}

/**
 * What is left to be said when the plan is known: whether a person agreed to it. A call that waits for facts asks no
 * person yet, but one that was refused stays refused, whatever else it waits for.
 */
function approve(
  steps: DecideSteps,
  facts: Facts,
  verdicts: readonly Verdict[],
  notes: readonly RuleNote[],
  digest: string | null,
): Approved {
  const merged = steps.mergeVerdicts(verdicts);
  const nothing: Approved = { merged, step: { kind: "none" }, voids: null, verdicts: [] };
  if (digest === null || !verdicts.some(asksPerson)) return nothing;
  const isDeferred = merged.decision === "defer";
  if (!isDeferred && merged.decision !== "require_approval") return nothing;
  const ttls = notes.flatMap((one) => (one.kind === "approval" ? [one.ttlMs] : []));
  const ttlMs = ttls.length === 0 ? unruledTtlMs : Math.min(...ttls);
  const { step, verdict, voids } = steps.judgeApproval(facts, {
    digest,
    askingRules: verdicts.filter(asksPerson).map(({ rule }) => rule),
    ttlMs,
  });
  if (isDeferred && verdict?.decision !== "deny") return nothing;
  if (verdict === null) return { merged, step, voids, verdicts: [] };
  const open = step.kind === "consume" ? verdicts.filter((one) => !asksPerson(one)) : verdicts;
  return { merged: steps.mergeVerdicts([...open, verdict]), step, voids, verdicts: [verdict] };
}

function asksPerson(one: Verdict): boolean {
  return one.decision === "require_approval";
}

/** An allowed rewrite. That a person approved it is what has to be known before that it is one. */
function toModify(
  merged: Merged,
  { id, message }: { readonly id: string; readonly message: string },
): Pick<Ruling, "decision" | "reason" | "message" | "leadRule"> {
  return merged.reason === "APPROVED"
    ? { ...merged, decision: "modify" }
    : { decision: "modify", reason: "REWRITTEN", message, leadRule: id };
}

/** What is allowed and has something against it that is no reason to deny, such as a limit that comes near. */
function withWarnings<T extends { readonly message: string }>(ruled: T, notes: readonly RuleNote[]): T {
  const warnings = new Set(
    notes.flatMap((one) => (one.kind === "fact" && one.warning !== undefined ? [one.warning] : [])),
  );
  return warnings.size === 0 ? ruled : { ...ruled, message: [ruled.message, ...warnings].join("; ") };
}

/** What the runtime's own dialog has to ask; a rule that speaks of both forms of an input asks once. */
function toConfirm(notes: readonly RuleNote[]): string | null {
  const messages = new Set(notes.flatMap((one) => (one.kind === "confirm" ? [one.message] : [])));
  return messages.size === 0 ? null : [...messages].join("; ");
}

/** Effect classes whose plans need no capability. */
const withoutEffect: ReadonlySet<string> = new Set(["none", "read"]);

function toLabels(notes: readonly RuleNote[]): string[] {
  return [...new Set(notes.flatMap((one) => (one.kind === "labels" ? one.labels : [])))].sort();
}

/** The first deadline ends the waiting: past it the call is denied. */
function toWaitsFor(waits: readonly Wait[]): Ruling["waitsFor"] {
  return {
    facts: [...new Set(waits.map((one) => one.fact))].sort(),
    untilMs: Math.min(...waits.map((one) => one.untilMs)),
  };
}

/** Both forms of an input are one call: it is counted once. */
function toSpends(spends: readonly Spend[]): Spend[] {
  const byKey = new Map(spends.map((one) => [one.key, one]));
  return [...byKey.values()].sort((left, right) => compareText(left.key, right.key));
}
