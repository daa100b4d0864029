import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { style } from "../cli/screen.ts";
import type { BundleDifference } from "../gate/revisions/diff-bundles.ts";
import type { SimulationReport } from "../gate/simulate.ts";

const colours = {
  deny: "red",
  require_approval: "yellow",
  defer: "yellow",
  allow: "green",
  modify: "cyan",
} as const;

/** Colours the decisions of a finished table: colour has no width. */
export function paintDecisions(screen: Screen, text: string): string {
  return text.replace(/(?<![\w.-])(deny|require_approval|defer|allow|modify)(?![\w.-])/g, (word) =>
    style(screen, colours[word as keyof typeof colours], word),
  );
}

/** Rules that are listed when most of them changed nothing. */
const rulesMax = 40;

/** What a simulation found, for a terminal. */
export function renderSimulation(screen: Screen, report: SimulationReport): string {
  const parts = [
    `${String(report.judged)} recorded decisions judged by ${report.policy_revision}: ${String(report.changed)} would change`,
  ];
  if (report.moves.length > 0) {
    parts.push(
      toTable(
        ["BEFORE", "AFTER", "COUNT", ""],
        report.moves.map(({ before, after, count }) => [
          before,
          after,
          String(count),
          before === after ? "" : "changed",
        ]),
        screen.columns,
      ),
    );
  }
  if (report.changes.length > 0) {
    const left = report.changed - report.changes.length;
    parts.push(
      toTable(
        ["DECISION", "TOOL", "BEFORE", "AFTER", "RULES"],
        report.changes.map((one) => [
          one.decision_id ?? "",
          one.tool,
          `${one.before.decision} ${one.before.reason_code}`,
          `${one.after.decision} ${one.after.reason_code}`,
          [...one.appeared.map((rule) => `+${rule}`), ...one.disappeared.map((rule) => `-${rule}`)].join(" "),
        ]),
        screen.columns,
      ) + (left > 0 ? `\n${String(left)} more; list them with --details ${String(report.changed)}` : ""),
    );
  }
  const moved = report.rules.filter((rule) => rule.before !== rule.after || rule.in_changed > 0);
  if (moved.length > 0) {
    parts.push(
      toTable(
        ["RULE", "MATCHED BEFORE", "AFTER", "IN CHANGED DECISIONS"],
        moved
          .slice(0, rulesMax)
          .map((rule) => [rule.rule, String(rule.before), String(rule.after), String(rule.in_changed)]),
        screen.columns,
      ) + (moved.length > rulesMax ? `\n${String(moved.length - rulesMax)} more with --json` : ""),
    );
  }
  parts.push(renderReproduction(report));
  return paintDecisions(screen, parts.join("\n\n"));
}

function renderReproduction({ reproduced, partial, left_out: leftOut }: SimulationReport): string {
  const { same, different, unknown, examples } = reproduced;
  const lines = [
    `made again by the policy that made them: ${String(same)} the same, ${String(different)} not reproduced, ${String(unknown)} without their policy or whole facts`,
    ...examples.map(
      ({ decision_id: id, differs }) => `  not reproduced: ${id ?? "?"} differs in ${differs.join(", ")}`,
    ),
  ];
  if (partial > 0)
    lines.push(`${String(partial)} were judged on facts that an earlier version stored in part`);
  for (const [why, count] of Object.entries(leftOut)) lines.push(`${String(count)} left out: ${why}`);
  return lines.join("\n");
}

/** Longest value that a difference shows of a rule. */
const valueMaxChars = 60;

/** Two bundles' differences, for a terminal. */
export function renderDifferences(screen: Screen, differences: readonly BundleDifference[]): string {
  return toTable(
    ["", "WHERE", "WHAT", "CHANGE"],
    differences.map(({ change, where, what, parts }) => [
      { added: "+", removed: "-", changed: "~" }[change],
      where,
      what,
      change === "changed" ? parts.map(toPart).join("; ") : change,
    ]),
    screen.columns,
  );
}

function toPart({ part, before, after }: BundleDifference["parts"][number]): string {
  const [old, now] = [before ?? "none", after ?? "none"];
  if (old.length > valueMaxChars || now.length > valueMaxChars) return part;
  return `${part} ${old} → ${now}`;
}
