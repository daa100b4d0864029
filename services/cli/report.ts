/** Exit codes of DESIGN 18: done, failed or found something, usage, unreachable, refused. */
export type ExitCode = 0 | 1 | 2 | 3 | 4;

/** What a command leaves: one JSON document for `--json` (none for a stream), text for people. */
export interface Report {
  readonly json?: unknown;
  readonly text: string;
  readonly exit?: ExitCode;
}

/** Longest rule under the last column, whose cells may run on. */
const lastRuleMaxChars = 40;

/** Rows as aligned columns; the header is the keys' order given. */
export function toTable(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headers.map((header, column) =>
    Math.max(header.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  const rules = widths.map((width, column) =>
    "─".repeat(column === widths.length - 1 ? Math.min(width, lastRuleMaxChars) : width),
  );
  return [line(headers), line(rules), ...rows.map(line)].join("\n");
}
