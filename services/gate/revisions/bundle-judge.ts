import type { Policy } from "../policy/policy.ts";

/** A bundle's files by path, and its name. */
export interface BundleFiles {
  readonly name: string;
  readonly files: ReadonlyMap<string, string>;
}

/** A bundle's own cases, run. */
export interface CheckedBundle {
  readonly policy: Policy;
  readonly cases: number;
  /** Cases that expect a deny and get it. */
  readonly denies: number;
}

/** What makes a policy of files; pure but for the time it takes. */
export interface BundleJudge {
  /** Throws POLICY_REFUSED with every problem, each with file and line. */
  load(bundle: BundleFiles): Policy;
  /** The same, and runs the bundle's own cases; refused are failures, and a bundle that can deny nothing. */
  check(bundle: BundleFiles): Promise<CheckedBundle>;
}
