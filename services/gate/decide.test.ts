import { beforeAll, describe, expect, it } from "vitest";
import { policyCases } from "../../test/harness/policy-corpus.ts";
import { loadBundle } from "./bundle.ts";
import type { Facts, Stage } from "./decide.ts";
import { decide, defaultStages, proposedDigest } from "./decide.ts";
import type { Normalizer } from "./normalize.ts";
import type { Bundle } from "./rules.ts";

let bundle: Bundle;
beforeAll(async () => {
  bundle = await loadBundle("deploy/policy/default");
});
const facts: Facts = { tenant: { state: "active", version: 1 }, session: { version: 0, labels: [] } };
const request = (tool: string, input: object, rest: object = {}): Parameters<typeof decide>[0] =>
  ({
    runtime: "own",
    session_id: "s",
    phase: "before_tool",
    tool,
    input,
    working_directory: "/w",
    ...rest,
  }) as never;

describe("the default policy", () => {
  it.each(policyCases())("decides $name", ({ request: asked, facts: known, expect: expected }) => {
    const ruling = decide(asked, known, bundle);
    expect({ decision: ruling.decision, reason_code: ruling.reason, rules: ruling.matchedRules }).toEqual(
      expected,
    );
  });

  it("gives a capability to plans with effects, and to no others", () => {
    expect(decide(request("shell.run", { command: "ls" }), facts, bundle).needsCapability).toBe(true);
    expect(decide(request("file.read", { path: "a" }), facts, bundle).needsCapability).toBe(false);
    expect(decide(request("shell.run", { command: "rm -rf /" }), facts, bundle).needsCapability).toBe(false);
  });

  it("decides the same again from the same request, facts and bundle", () => {
    const asked = request("shell.run", { command: "cat .env; npm publish" });
    expect(JSON.stringify(decide(asked, facts, bundle))).toBe(JSON.stringify(decide(asked, facts, bundle)));
  });

  it("judges a text at the limit within the budget, and denies one past it", () => {
    const startedMs = performance.now();
    const long = decide(request("shell.run", { command: "a ".repeat(32_768) }), facts, bundle);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    expect(long.decision).toBe("allow");
    const longer = decide(request("shell.run", { command: "a".repeat(65_537) }), facts, bundle);
    expect(longer).toMatchObject({ decision: "deny", reason: "RULE_FAILED" });
    expect(longer.message).toMatch(/deny\.shell\.[a-z-]+. could not judge/);
  });
});

describe("stages", () => {
  it("turn a failure of their own into a deny that names them", () => {
    const broken: Stage = {
      name: "broken",
      judge() {
        throw new Error("no such fact");
      },
    };
    const ruling = decide(request("file.read", { path: "a" }), facts, bundle, {
      stages: [...defaultStages, broken],
    });
    expect(ruling).toMatchObject({ decision: "deny", reason: "RULE_FAILED" });
    expect(ruling.matchedRules).toContain("stage.broken");
  });

  it("deny when none of them speaks", () => {
    expect(decide(request("file.read", { path: "a" }), facts, bundle, { stages: [] })).toMatchObject({
      decision: "deny",
      reason: "NO_RULE_SPOKE",
    });
  });

  it("add constraints and labels, the most restrictive of each", () => {
    const limit = (seconds: number, network: "none" | "any"): Stage => ({
      name: `limit-${String(seconds)}`,
      judge: () => ({
        verdicts: [],
        constraints: [{ max_runtime_seconds: seconds, network }],
        labels: [`l-${String(seconds)}`],
      }),
    });
    const ruling = decide(request("shell.run", { command: "ls" }), facts, bundle, {
      stages: [...defaultStages, limit(60, "any"), limit(30, "none")],
    });
    expect(ruling.constraints).toEqual({ network: "none", max_runtime_seconds: 30 });
    expect(ruling.labels).toEqual(["l-30", "l-60"]);
    expect(ruling.plan.constraints).toEqual(ruling.constraints);
  });
});

describe("a rewritten input", () => {
  const rewriteTo =
    (input: object, rest: object = {}): Normalizer =>
    (asked) => ({ rule: "modify.planted", request: { ...asked, ...rest, input: { ...input } } });
  const write = request("file.write", { path: "a.txt", content: "long" });

  it("is what the plan freezes, and the answer says modify", () => {
    const ruling = decide(write, facts, bundle, {
      normalize: rewriteTo({ path: "a.txt", content: "short" }),
    });
    expect(ruling).toMatchObject({
      decision: "modify",
      modifiedInput: { path: "a.txt", content: "short" },
      plan: { arguments: { path: "a.txt", content: "short" } },
      needsCapability: true,
    });
    expect(ruling.matchedRules).toEqual(["catalog.file.write", "modify.planted"]);
    expect(ruling.planDigest).not.toBe(decide(write, facts, bundle).planDigest);
  });

  it("is judged like any other", () => {
    const command = request("shell.run", { command: "ls" });
    const ruling = decide(command, facts, bundle, { normalize: rewriteTo({ command: "rm -rf /" }) });
    expect(ruling).toMatchObject({ decision: "deny", reason: "STATIC_DENY", needsCapability: false });
    const milder = decide(command, facts, bundle, { normalize: rewriteTo({ command: "ls -l" }) });
    expect(milder).toMatchObject({ decision: "modify", modifiedInput: { command: "ls -l" } });
  });

  it("may not touch another resource or place", () => {
    for (const normalize of [
      rewriteTo({ path: "b.txt" }),
      rewriteTo({ path: "a.txt" }, { working_directory: "/w/sub" }),
      rewriteTo({ path: "a.txt" }, { tool: "file.edit" }),
    ]) {
      expect(decide(write, facts, bundle, { normalize })).toMatchObject({
        decision: "deny",
        reason: "RULE_FAILED",
        needsCapability: false,
      });
    }
  });

  it("does not turn a deny into anything", () => {
    const denied = request("shell.run", { command: "rm -rf /" });
    expect(decide(denied, facts, bundle, { normalize: rewriteTo({ command: "ls" }) }).decision).toBe("deny");
  });
});

describe("the plan's digest", () => {
  const digest = (tool: string, input: object, rest: object = {}): string | null =>
    proposedDigest(request(tool, input, rest), bundle);

  it("does not see what the model says about the call", () => {
    const base = digest("shell.run", { command: "ls", description: "lists files", timeout: 1000 });
    expect(digest("shell.run", { description: "shows them", command: "ls" })).toBe(base);
  });

  it("sees the command, the folder, every other field, and the tool", () => {
    const base = digest("shell.run", { command: "ls" });
    const others = [
      digest("shell.run", { command: "ls -a" }),
      digest("shell.run", { command: "ls" }, { working_directory: "/x" }),
      digest("shell.run", { command: "ls", dangerouslyDisableSandbox: true }),
      digest("file.read", { command: "ls" }),
    ];
    expect(new Set([base, ...others]).size).toBe(5);
  });

  it("counts a description where it is the work itself", () => {
    expect(digest("agent.spawn", { description: "a" })).not.toBe(digest("agent.spawn", { description: "b" }));
  });
});
