import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { style } from "../cli/screen.ts";
import type { ShadowDifference } from "../replay/compare-shadow.ts";
import type { RowSample, TableDifference } from "../replay/compare-tables.ts";
import type { Shadow } from "../replay/shadow.ts";
import { spanOf } from "../replay/shadow.ts";
import type { ShadowLine } from "./replay-list.ts";

const words = { only_live: "only there", only_shadow: "only in the shadow", changed: "changed" } as const;
/** Letters that a report names one by one. */
const lettersShown = 5;

export function renderShadows(screen: Screen, lines: readonly ShadowLine[]): string {
  return toTable(
    ["SHADOW", "PROCESSOR", "VERSION", "AGAINST", "STATE", "READ", "DIFFERS", "ACCEPTED BY", "STARTED", "BY"],
    lines.map((one) => [
      one.name,
      one.processor,
      one.file === null ? `${one.version} (ships)` : one.version,
      one.against,
      one.state,
      `${one.done.toLocaleString("en-US")} of ${one.all.toLocaleString("en-US")}`,
      one.differences === null ? "not compared" : String(one.differences),
      one.acceptedBy ?? "",
      one.startedAt.toISOString().slice(0, 16).replace("T", " "),
      one.startedBy,
    ]),
    screen.columns,
  );
}

/** Counts per table, then the rows of the samples with the columns that differ. */
export function renderDifference(screen: Screen, shadow: Shadow, difference: ShadowDifference): string {
  const other = difference.comparedWith === "live" ? "the live projection" : "the version that ships";
  const over = `${spanOf(difference.ranges).toLocaleString("en-US")} records of ${shadow.processor}`;
  const head = difference.isEmpty
    ? `${style(screen, "green", "equal")}: ${shadow.name} and ${other}, over ${over}`
    : `${style(screen, "yellow", "different")}: ${shadow.name} and ${other}, over ${over}`;
  const counts = toTable(
    ["TABLE", "CHANGED", "ONLY THERE", "ONLY IN THE SHADOW"],
    difference.tables.map((one) => [
      one.table,
      String(one.changed),
      String(one.onlyLive),
      String(one.onlyShadow),
    ]),
    screen.columns,
  );
  const parts = [
    head,
    counts,
    ...difference.tables.flatMap((one) => [
      ...columnLines(one),
      ...one.samples.map((row) => sampleText(one.table, row)),
    ]),
    ...letterLines("set aside in the shadow alone", difference.newLetters),
    ...letterLines("set aside there alone", difference.goneLetters),
  ];
  return parts.join("\n\n");
}

function columnLines({ table, columnsOnlyLive, columnsOnlyShadow }: TableDifference): readonly string[] {
  return [
    ...(columnsOnlyLive.length === 0 ? [] : [`${table}: columns only there: ${columnsOnlyLive.join(", ")}`]),
    ...(columnsOnlyShadow.length === 0
      ? []
      : [`${table}: columns only in the shadow: ${columnsOnlyShadow.join(", ")}`]),
  ];
}

function sampleText(table: string, row: RowSample): string {
  const key = Object.entries(row.key)
    .map(([name, value]) => `${name}=${value ?? "null"}`)
    .join(" ");
  const head = `${table} ${words[row.kind]}: ${key}`;
  if (row.kind !== "changed") return head;
  return [
    head,
    ...Object.entries(row.columns).map(
      ([name, [live, shadow]]) => `    ${name}: ${live ?? "null"} → ${shadow ?? "null"}`,
    ),
  ].join("\n");
}

function letterLines(what: string, places: readonly string[]): readonly string[] {
  if (places.length === 0) return [];
  const shown = places.slice(0, lettersShown).join(", ");
  return [`${String(places.length)} records ${what}: ${shown}${places.length > lettersShown ? ", …" : ""}`];
}
