/** One thing that is wrong with a bundle. */
export interface PolicyProblem {
  /** Path inside the bundle, with `/`. */
  readonly file: string;
  /** From 1; 0 when the file as a whole is meant. */
  readonly line: number;
  readonly text: string;
  /** The bundle's folder itself is meant: nothing more can be said of its files. */
  readonly isFolder?: true;
}

/** Problems in the order of their files and lines, each once. */
export function toSortedProblems(problems: readonly PolicyProblem[]): PolicyProblem[] {
  const byText = new Map(problems.map((one) => [`${one.file}\n${String(one.line)}\n${one.text}`, one]));
  return [...byText.values()].sort(
    (a, b) => compareTexts(a.file, b.file) || a.line - b.line || compareTexts(a.text, b.text),
  );
}

/** Order by code unit, the same on every machine. */
export function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `file:line: text`, one a line. */
export function toProblemLines(problems: readonly PolicyProblem[]): string {
  return problems
    .map(({ file, line, text }) => `${file}${line === 0 ? "" : `:${String(line)}`}: ${text}`)
    .join("\n");
}

/** The form for programs: without a line where the file as a whole is meant. */
export function toProblemJson<T extends { readonly line: number }>(problem: T): object {
  const { line, ...rest } = problem;
  return line === 0 ? rest : problem;
}
