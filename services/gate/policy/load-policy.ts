import { basename, resolve } from "node:path";
import { Fault } from "../../../schemas/faults.ts";
import { parsePolicy } from "./parse-policy.ts";
import type { Policy } from "./policy.ts";
import type { PolicyProblem } from "./problem.ts";
import { toProblemLines, toSortedProblems } from "./problem.ts";
import { readBundleFolder } from "./read-bundle-files.ts";
import type { CaseFailure, Judge } from "./run-cases.ts";
import { runCases } from "./run-cases.ts";

/** Reads a bundle's folder; throws CONFIG_INVALID with every problem, each with file and line. Its cases are not run. */
export async function loadPolicy(dir: string): Promise<Policy> {
  const { files, problems } = await readBundleFolder(dir);
  const parsed = parsePolicy(files, basename(resolve(dir)));
  const all = [...problems, ...(parsed.ok ? [] : parsed.problems)];
  if (parsed.ok && all.length === 0) return parsed.policy;
  const lines = toProblemLines(toSortedProblems(withoutFollowUps(all, problems)));
  throw new Fault("CONFIG_INVALID", `the policy bundle ${dir} is refused\n${lines}`);
}

/** Everything that is wrong with a bundle: what it says, and how it answers its own cases. */
export interface BundleCheck {
  /** Null: it cannot be loaded. */
  readonly policy: Policy | null;
  readonly problems: readonly PolicyProblem[];
  readonly failures: readonly CaseFailure[];
  /** Cases that the bundle has, and those of them that expect deny and get it. */
  readonly cases: number;
  readonly denies: number;
}

/** Loads a bundle and runs its cases. A bundle with a problem or a failure is never activated. */
export async function checkBundle(dir: string, judge: Judge): Promise<BundleCheck> {
  const { files, problems } = await readBundleFolder(dir);
  return checkFiles(files, basename(resolve(dir)), judge, problems);
}

/** The same for files that are at hand, such as those of a stored revision. */
export function checkFiles(
  files: ReadonlyMap<string, string>,
  name: string,
  judge: Judge,
  unreadable: readonly PolicyProblem[] = [],
): BundleCheck {
  const parsed = parsePolicy(files, name);
  const problems = [...unreadable, ...(parsed.ok ? [] : parsed.problems)];
  if (!parsed.ok || problems.length > 0) {
    const all = toSortedProblems(withoutFollowUps(problems, unreadable));
    return { policy: null, problems: all, failures: [], cases: 0, denies: 0 };
  }
  const { policy, cases } = parsed;
  const failures = runCases(policy, cases, judge);
  const failed = new Set(failures.map((one) => one.name));
  const denies = cases.filter((one) => one.expect.decision === "deny" && !failed.has(one.name)).length;
  return { policy, problems: [], failures, cases: cases.length, denies };
}

/** A file that could not be read is not missing as well; nor is every file of a folder that could not. */
function withoutFollowUps(
  problems: readonly PolicyProblem[],
  unreadable: readonly PolicyProblem[],
): readonly PolicyProblem[] {
  if (unreadable.some((one) => one.isFolder === true)) return unreadable;
  const files = new Set(unreadable.map(({ file }) => file));
  return problems.filter((one) => unreadable.includes(one) || !files.has(one.file));
}
