import { Fault } from "../../../schemas/faults.ts";
import type { GateRequest } from "../../../schemas/gate.ts";
import type { Classify, Operand } from "../classified.ts";
import type { Facts } from "../facts-of-call.ts";
import { checkFiles } from "../policy/load-policy.ts";
import { parsePolicy } from "../policy/parse-policy.ts";
import type { Policy } from "../policy/policy.ts";
import { toProblemLines } from "../policy/problem.ts";
import type { CaseFailure, Judge } from "../policy/run-cases.ts";
import { decide } from "../stages/decide.ts";
import type { BundleJudge } from "./bundle-judge.ts";

/** Stands for a script that can be read: a bundle's cases speak of files that are nowhere. */
const someDigest = `sha256:${"0".repeat(64)}`;

/** Operands of a request whose files do not exist, as if they could be read. */
export function assumedOperands(
  classify: Classify,
  request: GateRequest,
  policy: Policy,
): readonly Operand[] {
  return classify(request, policy).operandPaths.map((path) => ({ path, digest: someDigest }));
}

/** The gate's own decision, for a bundle's cases. */
export function createCaseJudge(classify: Classify): Judge {
  return (request: GateRequest, facts: Facts, policy: Policy) =>
    decide(request, facts, policy, { classify, operands: assumedOperands(classify, request, policy) });
}

/** Judges bundles by the gate's own parser, validator and decision. */
export function createBundleJudge(classify: Classify): BundleJudge {
  const judge = createCaseJudge(classify);
  return {
    load({ files, name }) {
      const parsed = parsePolicy(files, name);
      if (parsed.ok) return parsed.policy;
      throw new Fault("POLICY_REFUSED", `\n${toProblemLines(parsed.problems)}`);
    },
    check({ files, name }) {
      const { policy, problems, failures, cases, denies } = checkFiles(files, name, judge);
      if (policy === null || failures.length > 0) {
        const lines = [toProblemLines(problems), ...failures.map(toFailureLine)].filter(
          (line) => line !== "",
        );
        return Promise.reject(new Fault("POLICY_REFUSED", `\n${lines.join("\n")}`));
      }
      return Promise.resolve({ policy, cases, denies });
    },
  };
}

/** `file:line: name: expected …, found …`. */
export function toFailureLine({ file, line, name, expected, found }: CaseFailure): string {
  const place = line === 0 ? file : `${file}:${String(line)}`;
  return `${place}: ${name === null ? "" : `${name}: `}expected ${expected}, found ${found}`;
}
