import type { Json } from "../../schemas/gate.ts";
import { canonicalDigest } from "../platform/canonical-json.ts";
import { maskJson } from "../platform/mask.ts";
import type { Policy } from "./policy/policy.ts";
import type { Ruling } from "./ruling.ts";
import type { RecordedAnswer, RecordedDecision, RecordedLine } from "./simulate-record.ts";

/** Decides as the gate does. */
export type JudgeRecord = (record: RecordedDecision, policy: Policy) => Ruling;

export interface SimulationOptions {
  /** The bundle that is tried. */
  readonly policy: Policy;
  readonly judge: JudgeRecord;
  /** The policy that a decision was made by, when it is known; else the check of reproduction leaves it out. */
  readonly policyOf: (revision: string) => Promise<Policy | null>;
  /** Changed decisions that are listed one by one; the counts are of all. */
  readonly detailsMax: number;
}

/** One side of a changed decision. */
export interface Side {
  readonly decision: string;
  readonly reason_code: string;
}
/** A decision that the other bundle makes differently. */
export interface ChangedDecision {
  readonly decision_id: string | null;
  readonly tool: string;
  readonly tool_call_id: string | null;
  readonly before: Side;
  readonly after: Side & { readonly message: string };
  /** Rules that match with the other bundle and did not before. */
  readonly appeared: readonly string[];
  readonly disappeared: readonly string[];
}
/** What one rule does in all judged decisions. */
export interface RuleTotal {
  readonly rule: string;
  readonly before: number;
  readonly after: number;
  /** Of the changed decisions, those in which it appeared or disappeared. */
  readonly in_changed: number;
}
export interface SimulationReport {
  readonly policy_revision: string;
  readonly judged: number;
  /** Judged on facts that an earlier version stored in part. */
  readonly partial: number;
  /** Not judged: what keeps each from it, and how many. */
  readonly left_out: Readonly<Record<string, number>>;
  readonly moves: readonly { readonly before: string; readonly after: string; readonly count: number }[];
  readonly changed: number;
  readonly changes: readonly ChangedDecision[];
  readonly rules: readonly RuleTotal[];
  /** Whether the policy that made a decision makes the same one again. */
  readonly reproduced: {
    readonly same: number;
    readonly different: number;
    /** Its revision is not stored, or its facts are not whole. */
    readonly unknown: number;
    readonly examples: readonly {
      readonly decision_id: string | null;
      readonly differs: readonly string[];
    }[];
  };
}

/** Decisions of the gate's own, which no policy makes: simulating them would compare a crowd with a rule. */
const outsidePolicy: ReadonlySet<string> = new Set([
  "gate.conflict",
  "gate.too-slow",
  "gate.event-too-large",
  "gate.policy-unavailable",
]);
const examplesMax = 20;

/** Judges recorded decisions against another bundle, one after the other, in memory of a fixed size. */
export async function simulate(
  lines: AsyncIterable<RecordedLine>,
  { policy, judge, policyOf, detailsMax }: SimulationOptions,
): Promise<SimulationReport> {
  const moves = new Map<string, number>();
  const leftOut = new Map<string, number>();
  const rules = new Map<string, { before: number; after: number; inChanged: number }>();
  const changes: ChangedDecision[] = [];
  const examples: { decision_id: string | null; differs: readonly string[] }[] = [];
  const reproduced = { same: 0, different: 0, unknown: 0 };
  let judged = 0;
  let partial = 0;
  let changed = 0;
  const totalOf = (rule: string) => {
    const known = rules.get(rule) ?? { before: 0, after: 0, inChanged: 0 };
    rules.set(rule, known);
    return known;
  };
  for await (const line of lines) {
    if (line.kind === "unreadable") {
      count(leftOut, line.why);
      continue;
    }
    const { record } = line;
    if (record.answer?.matched_rules?.some((rule) => outsidePolicy.has(rule)) === true) {
      count(leftOut, "decided by the gate's own limits, not by a policy");
      continue;
    }
    judged += 1;
    if (record.isPartial) partial += 1;
    const ruling = judge(record, policy);
    const before = record.answer?.matched_rules ?? [];
    for (const rule of before) totalOf(rule).before += 1;
    for (const rule of ruling.matchedRules) totalOf(rule).after += 1;
    count(moves, JSON.stringify([record.answer?.decision ?? "none", ruling.decision]));
    if (record.answer !== null && record.answer.decision !== ruling.decision) {
      changed += 1;
      const appeared = ruling.matchedRules.filter((rule) => !before.includes(rule));
      const disappeared = before.filter((rule) => !ruling.matchedRules.includes(rule));
      for (const rule of [...appeared, ...disappeared]) totalOf(rule).inChanged += 1;
      if (changes.length < detailsMax)
        changes.push(toChange(record, record.answer, ruling, appeared, disappeared));
    }
    if (record.answer === null) continue;
    const own = record.isPartial ? null : await policyOf(record.answer.policy_revision ?? "");
    if (own === null) {
      reproduced.unknown += 1;
      continue;
    }
    const differs = toDifferences(record.answer, judge(record, own));
    reproduced[differs.length === 0 ? "same" : "different"] += 1;
    if (differs.length > 0 && examples.length < examplesMax) {
      examples.push({ decision_id: record.decisionId, differs });
    }
  }
  return {
    policy_revision: policy.revision,
    judged,
    partial,
    left_out: Object.fromEntries([...leftOut].sort(([left], [right]) => compare(left, right))),
    moves: [...moves]
      .map(([pair, times]) => {
        const [from = "", to = ""] = JSON.parse(pair) as string[];
        return { before: from, after: to, count: times };
      })
      .sort(
        (left, right) =>
          right.count - left.count || compare(left.before + left.after, right.before + right.after),
      ),
    changed,
    changes,
    rules: [...rules]
      .map(([rule, total]) => ({
        rule,
        before: total.before,
        after: total.after,
        in_changed: total.inChanged,
      }))
      .sort((left, right) => right.in_changed - left.in_changed || compare(left.rule, right.rule)),
    reproduced: { ...reproduced, examples },
  };
}

/** The parts of a stored answer in which a ruling differs from it. */
export function toDifferences(answer: RecordedAnswer, ruling: Ruling): string[] {
  const pairs: [string, unknown, unknown][] = [
    ["decision", answer.decision, ruling.decision],
    ["reason_code", answer.reason_code, ruling.reason],
    ["matched_rules", answer.matched_rules && [...answer.matched_rules].sort(), [...ruling.matchedRules]],
    ["plan_digest", answer.plan_digest, ruling.planDigest],
    ["constraints", answer.constraints, ruling.constraints],
    ["labels", answer.labels && [...answer.labels].sort(), [...ruling.labels].sort()],
    ["modified_input", answer["modified_input"] ?? null, ruling.modifiedInput],
  ];
  return pairs
    .filter(([, stored, now]) => stored !== undefined && !isEqual(stored, now))
    .map(([name]) => name);
}

/** Stored answers are masked; what was masked of them is the same. */
function isEqual(stored: unknown, now: unknown): boolean {
  if (stored === now) return true;
  const digest = canonicalDigest(stored as Json);
  return digest === canonicalDigest(now as Json) || digest === canonicalDigest(maskJson(now) as Json);
}

function toChange(
  { decisionId, request }: RecordedDecision,
  answer: RecordedAnswer,
  ruling: Ruling,
  appeared: readonly string[],
  disappeared: readonly string[],
): ChangedDecision {
  return {
    decision_id: decisionId,
    tool: request.tool,
    tool_call_id: request.tool_call_id ?? null,
    before: { decision: answer.decision, reason_code: answer.reason_code ?? "" },
    after: { decision: ruling.decision, reason_code: ruling.reason, message: ruling.message },
    appeared,
    disappeared,
  };
}

function count(totals: Map<string, number>, name: string): void {
  totals.set(name, (totals.get(name) ?? 0) + 1);
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
