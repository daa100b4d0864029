import { mkdir, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import type { Row } from "./figure.ts";
import { isMet } from "./figure.ts";

/** `12345.6` → `12,346`; small numbers keep two figures behind the point. */
function toText(value: number): string {
  if (!Number.isFinite(value)) return "-";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

function verdictOf(row: Row): string {
  const met = isMet(row);
  if (row.target === undefined || met === null) return "";
  const sign = row.target.better === "higher" ? "≥" : "≤";
  return `target ${sign} ${String(row.target.ratio)}×: ${met ? "met" : "missed"}`;
}

function rangeOf(row: Row): string {
  if (row.ratioRange === undefined) return "";
  const [low, high] = row.ratioRange;
  return low === high ? "" : `${low.toFixed(2)}-${high.toFixed(2)}`;
}

/** One aligned table for people, notes below it. */
export function renderTable(rows: readonly Row[]): string {
  const header = ["figure", "ours", "unit", "beside", "theirs", "ratio", "range", "verdict"];
  const cells = rows.map((row) => [
    row.name,
    toText(row.ours),
    row.unit,
    `${row.other} (${row.against})`,
    toText(row.theirs),
    `${row.ratio.toFixed(2)}×`,
    rangeOf(row),
    verdictOf(row),
  ]);
  const widths = header.map((title, at) =>
    Math.max(title.length, ...cells.map((line) => line[at]?.length ?? 0)),
  );
  const isNumber = (at: number): boolean => at === 1 || at === 4 || at === 5;
  const render = (line: readonly string[]): string =>
    line
      .map((cell, at) => (isNumber(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join("  ")
      .trimEnd();
  const rule = widths.map((width) => "-".repeat(width)).join("  ");
  const notes = [...new Map(rows.map((row) => [row.note, row.name]))]
    .filter(([note]) => note !== "")
    .map(([note, name]) => `  ${name}: ${note}`);
  return [
    render(header),
    rule,
    ...cells.map(render),
    ...(notes.length > 0 ? ["", "notes", ...notes] : []),
  ].join("\n");
}

/** Writes `.fabric/reports/bench-<name>.json` and returns its path. */
export async function saveReport(projectDir: string, name: string, rows: readonly Row[]): Promise<string> {
  const folder = join(projectDir, ".fabric", "reports");
  await mkdir(folder, { recursive: true });
  const path = join(folder, `bench-${name}.json`);
  const report = {
    bench: name,
    finished_at: new Date().toISOString(),
    machine: {
      cpus: cpus().length,
      model: cpus()[0]?.model ?? "unknown",
      load_average_1m: loadavg()[0] ?? 0,
      node: process.version,
    },
    rows: rows.map((row) => ({ ...row, met: isMet(row) })),
  };
  await writeFile(path, `${JSON.stringify(report, null, 2)}\n`);
  return path;
}
