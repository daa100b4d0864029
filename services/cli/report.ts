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
/** Narrowest column of prose that is cut, and that is wrapped. */
const cutMinChars = 20;
const wrapMinChars = 14;
const gap = "  ";

type Rows = readonly (readonly string[])[];

/**
 * Rows as aligned columns. On a terminal that is too narrow for them (`columns`, see `Screen`), prose is wrapped in the last
 * column and cut in others; where that is not enough, each row becomes a block of lines. Ids, numbers and addresses are
 * never cut: they are what the next command is given.
 */
export function toTable(headers: readonly string[], rows: Rows, columns?: number): string {
  const widths = headers.map((header, column) =>
    Math.max(header.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const over = widthOf(widths) - (columns ?? Infinity);
  if (over <= 0) return toLines(headers, rows, widths);
  const fitting = toFitting(headers, rows, widths, over);
  return fitting === null ? toBlocks(headers, rows, columns ?? 0) : toLines(headers, rows, fitting);
}

/** A text as lines of at most `columns`; lines after the first are indented. Words longer than that stay whole. */
export function wrapText(text: string, columns: number | undefined, indent = ""): string {
  if (columns === undefined || text.length <= columns) return text;
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line === "") line = word;
    else if (line.length + 1 + word.length <= columns) line = `${line} ${word}`;
    else {
      lines.push(line);
      line = `${indent}${word}`;
    }
  }
  return [...lines, line].join("\n");
}

function widthOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + gap.length * (widths.length - 1);
}

/** Widths that fit; null: prose alone cannot give that much. */
function toFitting(
  headers: readonly string[],
  rows: Rows,
  widths: readonly number[],
  over: number,
): readonly number[] | null {
  const last = headers.length - 1;
  const isProse = (column: number): boolean => rows.some((row) => /\S \S+ \S/.test(row[column] ?? ""));
  const fitting = [...widths];
  let left = over;
  const prose = [...headers.keys()].slice(1).filter(isProse);
  // The last column loses nothing by it; then the widest, so that each keeps as much as the others.
  prose.sort((a, b) => Number(b === last) - Number(a === last) || (widths[b] ?? 0) - (widths[a] ?? 0));
  for (const column of prose) {
    const width = fitting[column] ?? 0;
    const least = Math.max(column === last ? wrapMinChars : cutMinChars, headers[column]?.length ?? 0);
    const given = Math.max(0, Math.min(left, width - least));
    fitting[column] = width - given;
    left -= given;
  }
  return left > 0 ? null : fitting;
}

function toLines(headers: readonly string[], rows: Rows, widths: readonly number[]): string {
  const last = widths.length - 1;
  const line = (cells: readonly string[]): string => {
    const before = cells
      .slice(0, last)
      .map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0) + gap)
      .join("");
    const [first = "", ...more] = wrapText(cells[last] ?? "", widths[last]).split("\n");
    return [`${before}${first}`, ...more.map((one) => " ".repeat(before.length) + one)]
      .map((one) => one.trimEnd())
      .join("\n");
  };
  const rules = widths.map((width, column) =>
    "─".repeat(column === last ? Math.min(width, lastRuleMaxChars) : width),
  );
  return [line(headers), line(rules), ...rows.map(line)].join("\n");
}

function toBlocks(headers: readonly string[], rows: Rows, columns: number): string {
  const width = Math.max(...headers.map((header) => header.length)) + gap.length;
  const block = (row: readonly string[]): string =>
    headers
      .flatMap((header, column) => {
        const cell = row[column] ?? "";
        if (cell === "") return [];
        const wrapped = wrapText(cell, Math.max(columns - width, wrapMinChars));
        return [`${header.padEnd(width)}${wrapped.replaceAll("\n", `\n${" ".repeat(width)}`)}`];
      })
      .join("\n");
  return rows.map(block).join("\n\n");
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}
