import type { ActivationRow } from "./revision-rows.ts";

/**
 * The revision that a rollback brings back; null: there is none before. Two rollbacks in a row go back two steps: what was
 * rolled back is no step any more.
 */
export function previousRevision(
  newestFirst: readonly Pick<ActivationRow, "revision" | "kind">[],
): string | null {
  const stack: string[] = [];
  for (const { revision, kind } of [...newestFirst].reverse()) {
    if (kind === "rollback") stack.pop();
    if (stack.at(-1) !== revision) stack.push(revision);
  }
  return stack.at(-2) ?? null;
}
