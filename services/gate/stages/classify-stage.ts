import type { GateRequest } from "../../../schemas/gate.ts";
import type { Classified, Classify, Operand } from "../classified.ts";
import type { Policy } from "../policy/policy.ts";
import type { Stage } from "./stage.ts";
import { toResult } from "./stage.ts";

/** Stage 1: what could not be understood denies. */
export const classifyStage: Stage = {
  name: "classify",
  judge: ({ classified }) =>
    toResult({
      verdicts: classified.findings.map((one) => ({
        rule: one.rule,
        stage: "classify",
        decision: "deny",
        reason: one.reason,
        message: one.message,
        priority: 0,
      })),
    }),
};

/** Classifies; a classifier that throws has understood nothing, and that is a finding. */
export function classifySafely(classify: Classify, request: GateRequest, policy: Policy): Classified {
  try {
    return classify(request, policy);
  } catch (error) {
    const why = error instanceof Error ? error.message : "it failed";
    return {
      entry: null,
      effect: "unknown",
      dataClass: "unknown",
      action: "unknown",
      resource: null,
      findings: [
        {
          rule: "stage.classify",
          reason: "RULE_FAILED",
          message: `\`stage.classify\` could not judge: ${why}`,
        },
      ],
      touched: [],
      command: null,
      operandPaths: [],
      signals: [],
    };
  }
}

/** The files that the call would run, each once and by path, with the digest of what is in them. */
export function toBoundOperands(paths: readonly string[], known: readonly Operand[]): Operand[] {
  return [...new Set(paths)].sort().map((path) => {
    const digests = new Set(known.flatMap((one) => (one.path === path ? [one.digest] : [])));
    const [digest = null] = digests;
    // Two contents of one file: nobody knows which one would run.
    return { path, digest: digests.size === 1 ? digest : null };
  });
}

/** The same with sorted signals, and with the one that says that code which would run could not be read. */
export function withOperandSignal(classified: Classified, operands: readonly Operand[]): Classified {
  const signals = new Set(classified.signals);
  const known = new Set(operands.flatMap(({ path, digest }) => (digest === null ? [] : [path])));
  const starts = (classified.command?.opaque ?? []).flatMap(({ candidates }) => candidates ?? []);
  if (operands.some(({ path }) => !known.has(path) && !isElsewhere(path, starts, known)))
    signals.add("operand.unreadable");
  return Object.assign({}, classified, { signals: [...signals].sort() });
}

/**
 * An installed program lies in one of the folders around: that it is not in each of them says nothing. Only what the same
 * start would take instead counts, not a program of that name somewhere else.
 */
function isElsewhere(
  path: string,
  starts: readonly (readonly string[])[],
  known: ReadonlySet<string>,
): boolean {
  const own = starts.filter((files) => files.includes(path));
  return own.length > 0 && own.every((files) => files.some((file) => known.has(file)));
}
