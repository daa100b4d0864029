import type { PolicyProblem } from "./problem.ts";

/** Ids of all rules of a bundle: each stands for one rule, whatever file it is in. */
export interface RuleIds {
  /** False, with a problem, when another rule has the id already. */
  claim(id: string, file: string, line: number, problems: PolicyProblem[]): boolean;
}

export function createRuleIds(reserved: readonly string[]): RuleIds {
  const places = new Map(reserved.map((id) => [id, "the gate's own names"]));
  return {
    claim(id, file, line, problems) {
      const other = places.get(id);
      if (other === undefined) {
        places.set(id, `${file}:${String(line)}`);
        return true;
      }
      problems.push({ file, line, text: `the id \`${id}\` is taken: ${other}` });
      return false;
    },
  };
}
