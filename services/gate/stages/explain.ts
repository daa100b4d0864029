import type { Constraints, DecisionName, ReasonCode } from "../../../schemas/gate.ts";
import type { StageName, Verdict } from "../policy/policy.ts";
import { stageNames } from "../policy/policy.ts";
import type { RuleNote, Ruling } from "../ruling.ts";
import { decisionOrder } from "./merge.ts";

/** What one rule did in one stage. */
export interface ExplainedRule {
  readonly rule: string;
  /** What it voted for; null: it only added something, or rewrote. */
  readonly decision: DecisionName | null;
  readonly reason: ReasonCode | null;
  /** What it says, or what it added, in words. */
  readonly message: string;
  /** Why it leads; null: it does not. */
  readonly won: string | null;
}

/** A stage in which at least one rule spoke. */
export interface ExplainedStage {
  readonly stage: StageName;
  readonly rules: readonly ExplainedRule[];
}

/** Which rules of which stage spoke, in the order of the stages, and why the winner won. */
export function explainRuling(ruling: Ruling): ExplainedStage[] {
  return stageNames.flatMap((stage) => {
    const rules = [
      ...ruling.verdicts.filter((one) => one.stage === stage).map((one) => explainVerdict(one, ruling)),
      ...ruling.notes.filter((one) => one.stage === stage).map((one) => explainNote(one, ruling)),
    ];
    return rules.length === 0 ? [] : [{ stage, rules }];
  });
}

function explainVerdict(one: Verdict, ruling: Ruling): ExplainedRule {
  const { rule, decision, reason, message } = one;
  const isLead = rule === ruling.leadRule && reason === ruling.reason && message === ruling.message;
  return { rule, decision, reason, message, won: isLead ? toWhy(one, ruling) : null };
}

/** Why a verdict leads over all others. */
function toWhy(lead: Verdict, ruling: Ruling): string {
  const others = ruling.verdicts.filter((one) => one !== lead);
  const settled = ruling.approval.kind === "consume" ? ["the approval settles what had to be approved"] : [];
  const losers = ruling.approval.kind === "consume" ? others.filter(isNoQuestion) : others;
  const equals = losers.filter((one) => one.decision === lead.decision);
  const weaker = losers.filter((one) => one.decision !== lead.decision);
  const ranks = decisionOrder.filter((name) => weaker.some((one) => one.decision === name));
  const parts = [
    ...settled,
    ...(lead.isAbsolute === true
      ? [`absolute deny of ${lead.stage} leads over ${countOf(losers.length)}`]
      : weaker.length > 0
        ? [`${lead.decision} before ${ranks.join(" and ")}`]
        : []),
    ...toWhyAmongEquals(lead, equals),
  ];
  return parts.length === 0 ? "nobody else spoke" : parts.join("; ");
}

function isNoQuestion(one: Verdict): boolean {
  return one.decision !== "require_approval";
}

function countOf(others: number): string {
  return others === 1 ? "1 other" : `${String(others)} others`;
}

/** What chose it among those that say the same: the nearest one tells. */
function toWhyAmongEquals(lead: Verdict, equals: readonly Verdict[]): string[] {
  const peers = equals.filter((one) => (one.isAbsolute === true) === (lead.isAbsolute === true));
  if (peers.length === 0) return [];
  const highest = Math.max(...peers.map((one) => one.priority));
  if (highest < lead.priority) return [`priority ${String(lead.priority)} before ${String(highest)}`];
  return [`among ${countOf(peers.length)} of its priority its id comes first`];
}

function explainNote(note: RuleNote, ruling: Ruling): ExplainedRule {
  const isLead = note.kind === "rewrite" && note.rule === ruling.leadRule && ruling.reason === "REWRITTEN";
  return {
    rule: note.rule,
    decision: isLead ? "modify" : null,
    reason: isLead ? ruling.reason : null,
    message: isLead ? `${ruling.message} (${toAddition(note)})` : toAddition(note),
    won: isLead ? "everything else allows it, and the rewrite that leads tells what was changed" : null,
  };
}

/** What a rule added, in words. */
function toAddition(note: RuleNote): string {
  switch (note.kind) {
    case "risk":
      return `adds ${String(note.points)} risk points`;
    case "approval":
      return `an approval of it lasts ${String(note.ttlMs / 1000)} s`;
    case "confirm":
      return `the user has to agree in the runtime's own dialog: ${note.message}`;
    case "fact":
      return `needs the fact \`${note.fact}\`${note.warning === undefined ? "" : ", which warns"}`;
    case "limit":
      return `${String(note.used)} of ${String(note.limit)} spent before, this call costs ${String(note.amount)}`;
    case "constraints":
      return `limits it: ${toLimits(note.constraints)}`;
    case "labels":
      return `labels the session once it is let through: ${note.labels.join(", ")}`;
    case "rewrite":
      return note.fields.length === 0
        ? "rewrites nothing here"
        : `rewrites the input: ${note.fields.join(", ")}`;
  }
}

function toLimits({ network, max_runtime_seconds: seconds, max_calls: calls, paths }: Constraints): string {
  const parts = [
    ...(network === undefined ? [] : [`network ${network}`]),
    ...(seconds === undefined ? [] : [`at most ${String(seconds)} s`]),
    ...(calls === undefined ? [] : [`at most ${String(calls)} calls`]),
    ...(paths === undefined ? [] : [`paths ${paths.length === 0 ? "none" : paths.join(", ")}`]),
  ];
  return parts.join(", ");
}
