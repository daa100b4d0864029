import { setImmediate } from "node:timers/promises";
import { Fault } from "../../../schemas/faults.ts";
import type { GateRequest } from "../../../schemas/gate.ts";
import { isCommonlyThere } from "../classify-code.ts";
import type { Classify, Operand } from "../classified.ts";
import type { Facts } from "../facts-of-call.ts";
import { parsePolicy, toBundleDigest } from "../policy/parse-policy.ts";
import type { Policy } from "../policy/policy.ts";
import { toProblemLines } from "../policy/problem.ts";
import type { CaseFailure, Judge } from "../policy/run-cases.ts";
import { runCases } from "../policy/run-cases.ts";
import { decide } from "../stages/decide.ts";
import type { BundleJudge } from "./bundle-judge.ts";
import { toStated } from "./revision-rows.ts";

/** Stands for a script that can be read: a bundle's cases speak of files that are nowhere. */
const someDigest = `sha256:${"0".repeat(64)}`;

/** Operands of a request whose files do not exist, as if they could be read. */
export function assumedOperands(
  classify: Classify,
  request: GateRequest,
  policy: Policy,
): readonly Operand[] {
  return classify(request, policy).operandPaths.map((path) => ({
    path,
    digest: isCommonlyThere(path) ? someDigest : null,
  }));
}

/** The gate's own decision, for a bundle's cases. */
export function createCaseJudge(classify: Classify): Judge {
  return (request: GateRequest, facts: Facts, policy: Policy) =>
    decide(request, facts, policy, { classify, operands: assumedOperands(classify, request, policy) });
}

/** Policies that are kept as they were made: the one that a gate checked is the one that it loads next. */
const keptMax = 4;

/**
 * Judges bundles by the gate's own parser, validator and decision. A gate does this while calls wait: it lets them pass
 * between two cases.
 */
export function createBundleJudge(classify: Classify): BundleJudge {
  const judge = createCaseJudge(classify);
  const kept = new Map<string, Policy>();
  function keep(policy: Policy): Policy {
    for (const [oldest] of kept) if (kept.size >= keptMax) kept.delete(oldest);
    kept.set(`${policy.name}/${policy.digest}`, policy);
    return policy;
  }
  return {
    load({ files, name }) {
      const digest = toBundleDigest(files);
      const known = kept.get(`${name}/${digest}`);
      if (known !== undefined) return known;
      // Cases are what a bundle is checked by, and no part of what decides.
      const parsed = parsePolicy(new Map([...files].filter(([file]) => !file.startsWith("cases/"))), name);
      if (!parsed.ok) throw refusal(toProblemLines(parsed.problems).split("\n"));
      const { policy } = parsed;
      return keep({ ...policy, digest, revision: `${toStated(policy.revision)}+${digest.slice(0, 12)}` });
    },
    async check({ files, name }) {
      const parsed = parsePolicy(files, name);
      if (!parsed.ok) throw refusal(toProblemLines(parsed.problems).split("\n"));
      const { policy, cases } = parsed;
      const failures: CaseFailure[] = [];
      let denies = 0;
      let hasProof = false;
      for (const one of cases) {
        await setImmediate();
        const said = runCases(policy, [one], judge);
        const failed = said.filter((failure) => failure.name !== null);
        failures.push(...failed);
        if (failed.length === 0 && one.expect.decision === "deny") denies += 1;
        // Nothing to say of a bundle of this one case: it proves that the bundle denies.
        hasProof ||= said.length === 0;
      }
      // Without any case that is left: says that nothing is denied.
      if (!hasProof) failures.push(...runCases(policy, [], judge));
      if (failures.length > 0) throw refusal(failures.map(toFailureLine));
      return { policy: keep(policy), cases: cases.length, denies };
    },
  };
}

function refusal(lines: readonly string[]): Fault {
  return new Fault("POLICY_REFUSED", `\n${lines.join("\n")}`);
}

/** `file:line: name: expected …, found …`. */
export function toFailureLine({ file, line, name, expected, found }: CaseFailure): string {
  const place = line === 0 ? file : `${file}:${String(line)}`;
  return `${place}: ${name === null ? "" : `${name}: `}expected ${expected}, found ${found}`;
}
