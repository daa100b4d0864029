import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { style } from "../cli/screen.ts";
import type { Classified } from "../gate/classified.ts";
import type { Policy } from "../gate/policy/policy.ts";
import type { Ruling } from "../gate/ruling.ts";
import type { RecordedDecision } from "../gate/simulate-record.ts";
import type { ExplainedStage } from "../gate/stages/explain.ts";
import { explainRuling } from "../gate/stages/explain.ts";
import { maskText } from "../platform/mask.ts";
import { paintDecisions } from "./simulate-text.ts";

/** Why one request is answered as it is. */
export interface Explanation {
  readonly decision_id: string | null;
  readonly policy_revision: string;
  readonly tool: string;
  readonly tool_call_id: string | null;
  readonly decision: string;
  readonly reason_code: string;
  readonly message: string;
  readonly lead_rule: string | null;
  readonly risk: string;
  readonly risk_score: number;
  readonly resource: string | null;
  readonly signals: readonly string[];
  /** Programs of a command, each once, with who knows them. */
  readonly programs: readonly KnownProgram[];
  readonly labels_of_session: readonly string[];
  readonly stages: readonly ExplainedStage[];
  /** What was answered then; null: nothing was. */
  readonly stored: { readonly decision: string; readonly reason_code: string | null } | null;
  /** Parts of the stored answer that come out otherwise now. */
  readonly differs: readonly string[];
  /** Explained by another policy than the one that decided. */
  readonly by_other_policy: boolean;
  readonly facts_partial: boolean;
}

/** A program of a command, as it was judged. */
export interface KnownProgram {
  readonly program: string;
  readonly kind: string;
  /** `the gate`, `nobody`, or a line of the bundle's file. */
  readonly known_by: string;
}

function toPrograms({ command }: Classified): readonly KnownProgram[] {
  const found = (command?.commands ?? []).map(({ program, risk, declared }): KnownProgram => {
    const why = declared?.trusted == null ? "" : `, trusted: ${declared.trusted}`;
    return {
      program,
      kind: risk.replace("_", "-"),
      known_by:
        declared !== undefined
          ? `programs.yaml:${String(declared.line)}${why}`
          : risk === "unknown"
            ? "nobody"
            : "the gate",
    };
  });
  return [...new Map(found.map((one) => [JSON.stringify(one), one])).values()];
}

const resourceMaxChars = 200;

/** Secrets are masked: an explanation ends in tickets. */
export function toExplanation(
  record: RecordedDecision,
  policy: Policy,
  ruling: Ruling,
  { differs, isOther }: { readonly differs: readonly string[]; readonly isOther: boolean },
): Explanation {
  const { classified } = ruling;
  return {
    decision_id: record.decisionId,
    policy_revision: policy.revision,
    tool: record.request.tool,
    tool_call_id: record.request.tool_call_id ?? null,
    decision: ruling.decision,
    reason_code: ruling.reason,
    message: ruling.message,
    lead_rule: ruling.leadRule,
    risk: ruling.risk,
    risk_score: ruling.riskScore,
    resource: classified.resource === null ? null : maskText(classified.resource),
    signals: classified.signals,
    programs: toPrograms(classified),
    labels_of_session: record.facts.session.labels,
    stages: explainRuling(ruling),
    stored:
      record.answer === null
        ? null
        : { decision: record.answer.decision, reason_code: record.answer.reason_code ?? null },
    differs,
    by_other_policy: isOther,
    facts_partial: record.isPartial,
  };
}

/** An explanation for a terminal: the answer, what was seen, then stage by stage who spoke. */
export function renderExplanation(screen: Screen, one: Explanation): string {
  const head = `${one.decision} ${one.reason_code}`;
  const resource = one.resource === null ? "" : ` on ${cut(one.resource.replaceAll("\n", "⏎"))}`;
  const lines = [
    style(screen, "bold", paintDecisions(screen, head)),
    one.message,
    "",
    `${one.tool}${resource}`,
    `policy ${one.policy_revision} · risk ${one.risk} (${String(one.risk_score)})${one.decision_id === null ? "" : ` · ${one.decision_id}`}`,
    ...(one.signals.length === 0 ? [] : [`signals: ${one.signals.join(", ")}`]),
    ...(one.programs.length === 0
      ? []
      : [
          `programs: ${one.programs.map(({ program, kind, known_by: by }) => `${program} (${kind}, ${by})`).join(", ")}`,
        ]),
    ...(one.labels_of_session.length === 0
      ? []
      : [`the session carries: ${one.labels_of_session.join(", ")}`]),
    "",
  ];
  const rows = one.stages.flatMap(({ stage, rules }) =>
    rules.map((rule, index) => [
      index === 0 ? stage : "",
      rule.won === null ? "" : "►",
      rule.rule,
      rule.decision ?? "",
      rule.reason ?? "",
      rule.message,
    ]),
  );
  lines.push(
    rows.length === 0
      ? "no rule of any stage spoke: what nobody allows is denied"
      : paintDecisions(
          screen,
          toTable(["STAGE", "", "RULE", "SAYS", "REASON", "MESSAGE"], rows, screen.columns),
        ),
  );
  const won = one.stages.flatMap(({ rules }) => rules.filter((rule) => rule.won !== null));
  for (const rule of won) lines.push("", `► ${rule.rule} decides: ${rule.won ?? ""}`);
  lines.push(...renderStored(screen, one));
  return lines.join("\n");
}

function renderStored(screen: Screen, one: Explanation): string[] {
  const lines: string[] = [];
  if (one.facts_partial && one.stored !== null) {
    lines.push("", "the stored facts are not whole; what an earlier version did not store counts as neutral");
  }
  if (one.stored === null || one.differs.length === 0) return lines;
  const answered = `${one.stored.decision} ${one.stored.reason_code ?? ""}`.trim();
  const why = one.by_other_policy
    ? `it was answered ${answered} by another policy; this one differs in ${one.differs.join(", ")}`
    : `the stored answer was ${answered}, and made again it differs in ${one.differs.join(", ")}: the gate's code has changed since, or a file that the call ran`;
  return [...lines, "", style(screen, "yellow", why)];
}

function cut(text: string): string {
  return text.length > resourceMaxChars ? `${text.slice(0, resourceMaxChars)}…` : text;
}
