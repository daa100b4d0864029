import { describe, expect, it } from "vitest";
import { previousRevision } from "./previous-revision.ts";

const history = (...steps: string[]) =>
  steps
    .map((step) => ({
      kind: step.startsWith("<") ? ("rollback" as const) : ("activate" as const),
      revision: step.replace("<", ""),
    }))
    .reverse();

describe("a rollback", () => {
  it("goes to the revision before", () => {
    expect(previousRevision(history("a", "b"))).toBe("a");
  });
  it("goes on to the one before that when it is repeated, and not back to what was rolled back", () => {
    expect(previousRevision(history("a", "b", "c", "<b"))).toBe("a");
  });
  it("takes back what was activated after a rollback", () => {
    expect(previousRevision(history("a", "b", "<a", "c"))).toBe("a");
  });
  it("has nowhere to go from the first revision", () => {
    expect([
      previousRevision([]),
      previousRevision(history("a")),
      previousRevision(history("a", "b", "<a")),
    ]).toEqual([null, null, null]);
  });
});
