import { describe, expect, it } from "vitest";
import { givenBundle } from "./given-bundle.ts";
import { checkFiles } from "./load-policy.ts";
import { parsePolicy } from "./parse-policy.ts";
import type { PolicyCase } from "./parse-cases.ts";
import type { Judge } from "./run-cases.ts";
import { runCases } from "./run-cases.ts";

/** Answers as the small bundle's cases expect. */
const right: Judge = (request) =>
  request.input["command"] === "ls"
    ? { decision: "allow", reason: "ALLOWED", matchedRules: ["allow.run"] }
    : { decision: "deny", reason: "STATIC_DENY", matchedRules: ["allow.run", "deny.force-push"] };

function readCases(text?: string): {
  run: (judge: Judge) => ReturnType<typeof runCases>;
  cases: readonly PolicyCase[];
} {
  const parsed = parsePolicy(givenBundle(text === undefined ? {} : { "cases/all.yaml": text }), "small");
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return { run: (judge) => runCases(parsed.policy, parsed.cases, judge), cases: parsed.cases };
}

describe("a bundle's own cases", () => {
  it("are whole requests with what is known at that moment", () => {
    const { cases } = readCases();
    expect(cases.map(({ name, file, line }) => [name, file, line])).toEqual([
      ["a push by force is denied", "cases/all.yaml", 2],
      ["a listing is allowed", "cases/all.yaml", 5],
    ]);
    expect(cases[1]).toMatchObject({
      request: { runtime: "claude-code", phase: "before_tool", tool: "shell.run", input: { command: "ls" } },
      facts: { environment: "development", isRevoked: false, session: { labels: ["secret_read"] } },
      expect: { decision: "allow", reason: null, rules: [] },
    });
    const { nowMs, dated } = cases[1]?.facts ?? { nowMs: 0, dated: {} };
    expect(dated).toEqual({ "deploy.freeze": { value: false, atMs: nowMs - 120_000 } });
  });

  it("pass when decision, reason and rules are as expected", () => {
    expect(readCases().run(right)).toEqual([]);
  });

  it("fail with file, line, what was expected and what was found", () => {
    const wrong: Judge = (request, facts, policy) => ({
      ...right(request, facts, policy),
      matchedRules: ["other"],
    });
    expect(readCases().run(wrong)[0]).toEqual({
      file: "cases/all.yaml",
      line: 2,
      name: "a push by force is denied",
      expected: "deny STATIC_DENY by deny.force-push",
      found: "deny STATIC_DENY by other",
    });
  });

  it("fail, and do not end, when a judge throws", () => {
    const throwing: Judge = () => {
      throw new Error("broken");
    };
    expect(
      readCases()
        .run(throwing)
        .map(({ found }) => found),
    ).toEqual([
      "no decision: broken",
      "no decision: broken",
      "none: a bundle that can deny nothing is refused",
    ]);
  });

  it("have to prove that the bundle can deny", () => {
    const text =
      "cases:\n  - { name: one, request: { tool: shell.run, input: { command: ls } }, expect: { decision: allow } }\n";
    expect(readCases(text).run(right)).toMatchObject([{ name: null, file: "cases" }]);
    const allowing: Judge = () => ({ decision: "allow", reason: "ALLOWED", matchedRules: [] });
    expect(
      readCases()
        .run(allowing)
        .map(({ name }) => name),
    ).toEqual(["a push by force is denied", null]);
  });

  it.each([
    "TOOL_UNKNOWN",
    "INPUT_UNREADABLE",
    "SCHEMA_MISMATCH",
    "TENANT_FROZEN",
    "PLAN_REVOKED",
    "RULE_FAILED",
  ] as const)("prove nothing by a deny that every bundle gives: %s", (reason) => {
    const text =
      "cases:\n  - { name: one, request: { tool: shell.run, input: { command: ls } }, expect: { decision: deny } }\n";
    const denying =
      (why: typeof reason | "NO_RULE_SPOKE"): Judge =>
      () => ({
        decision: "deny",
        reason: why,
        matchedRules: [],
      });
    expect(
      readCases(text)
        .run(denying(reason))
        .map(({ name }) => name),
    ).toEqual([null]);
    expect(readCases(text).run(denying("NO_RULE_SPOKE"))).toEqual([]);
  });

  it("are counted in the check of a whole bundle", () => {
    expect(checkFiles(givenBundle(), "small", right)).toMatchObject({
      ...{ problems: [], failures: [], cases: 2, denies: 1 },
      policy: { name: "small" },
    });
    expect(checkFiles(givenBundle({ "tools.yaml": null }), "small", right)).toMatchObject({
      ...{ policy: null, problems: [{ file: "tools.yaml" }], failures: [], cases: 0 },
    });
  });
});
