import type { Step } from "./step.ts";

/** What the rule looks at. */
export type Attempt = Pick<Step, "tool" | "resource" | "decision" | "outcome" | "refused">;

/** A call of the same tool that is further away than this many calls is no other way to the same end. */
export const recoveryWindow = 10;

/** Whether a call was denied, refused or failed. One that a person still has to agree to has not stumbled. */
export function hasStumbled(step: Attempt): boolean {
  return (
    step.outcome !== "succeeded" && (step.decision === "deny" || step.refused || step.outcome === "failed")
  );
}

/**
 * Per call, the number (from 1) of the call that made up for it, or null. A stumble is made up for by the first later
 * call that succeeded and was of the same tool on the same resource, or of the same tool, allowed, within the next ten
 * calls: another plan for the same end.
 */
export function toRecoveries(steps: readonly Attempt[]): readonly (number | null)[] {
  return steps.map((step, index) => {
    if (!hasStumbled(step) || step.tool === null) return null;
    const found = steps.findIndex(
      (later, at) =>
        at > index &&
        later.tool === step.tool &&
        later.outcome === "succeeded" &&
        ((step.resource !== null && later.resource === step.resource) ||
          ((later.decision === "allow" || later.decision === "modify") && at <= index + recoveryWindow)),
    );
    return found < 0 ? null : found + 1;
  });
}
