/** Lines around a change that are shown with it. */
const contextLines = 2;
/** Above this many pairs of lines a text is shown as taken out and put in. */
const comparedMaxPairs = 4_000_000;

type Step = readonly [" " | "-" | "+", string];

/** What changes between two texts, line by line, with a little around it; empty when nothing does. */
export function toLineDiff(before: string, after: string): readonly string[] {
  const steps = toSteps(before === "" ? [] : before.split("\n"), after === "" ? [] : after.split("\n"));
  const shown = new Set<number>();
  steps.forEach(([sign], at) => {
    if (sign === " ") return;
    for (let near = at - contextLines; near <= at + contextLines; near += 1) shown.add(near);
  });
  let last = -1;
  return steps.flatMap(([sign, line], at) => {
    if (!shown.has(at)) return [];
    const gap = at > last + 1 ? ["  …"] : [];
    last = at;
    return [...gap, `${sign} ${line}`];
  });
}

function toSteps(before: readonly string[], after: readonly string[]): readonly Step[] {
  if (before.length * after.length > comparedMaxPairs) {
    return [...before.map((line): Step => ["-", line]), ...after.map((line): Step => ["+", line])];
  }
  // Longest common subsequence of what follows each pair.
  const width = after.length + 1;
  const longest = new Uint32Array((before.length + 1) * width);
  const at = (row: number, column: number): number => longest[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      longest[row * width + column] =
        before[row] === after[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const steps: Step[] = [];
  let row = 0;
  let column = 0;
  while (row < before.length || column < after.length) {
    const [old, young] = [before[row], after[column]];
    if (old !== undefined && old === young) {
      steps.push([" ", old]);
      row += 1;
      column += 1;
    } else if (old !== undefined && (young === undefined || at(row + 1, column) >= at(row, column + 1))) {
      steps.push(["-", old]);
      row += 1;
    } else {
      steps.push(["+", young ?? ""]);
      column += 1;
    }
  }
  return steps;
}
