import { describe, expect, it } from "vitest";
import type { GateRequest } from "../../schemas/gate.ts";
import type { AskedCall, Classified } from "./classified.ts";
import { createRememberingClassify } from "./classify-remembered.ts";
import type { Policy } from "./policy/policy.ts";

const request: GateRequest = {
  runtime: "own",
  session_id: "s",
  phase: "before_tool",
  tool: "shell.run",
  input: { command: "ls" },
  working_directory: "/a",
};
const [policy, other] = [{ name: "one" } as Policy, { name: "two" } as Policy];

function remembering(tookMs = 0, parts = 0) {
  const made: AskedCall[] = [];
  let nowMs = 0;
  const classify = createRememberingClassify(
    (asked) => {
      made.push(asked);
      nowMs += tookMs;
      const touched = Array.from({ length: parts }, () => ({ path: "/a/x", mode: "read" }));
      const found = { command: null, touched, signals: [] as string[] };
      return { ...found, resource: JSON.stringify(asked.input) } as unknown as Classified;
    },
    () => nowMs,
  );
  return { classify, made };
}

describe("classifications that are remembered", () => {
  it("are the same for the same tool, input, folder and policy, whoever asks", () => {
    const { classify, made } = remembering();
    const first = classify(request, policy);
    const elsewhere: GateRequest = { ...request, session_id: "t", runtime: "other", agent_id: "x" };
    expect(classify(elsewhere, policy)).toBe(first);
    expect(classify({ ...request, input: { command: "ls" } }, policy, new Map())).toBe(first);
    expect(made).toHaveLength(1);
  });

  it("see nothing of a request but what they are remembered by", () => {
    const { classify, made } = remembering();
    const more: GateRequest = { ...request, agent_id: "x", permission_mode: "plan" };
    classify(more, policy);
    const { tool, input, working_directory } = request;
    expect(made).toEqual([{ tool, input, working_directory }]);
    classify({ ...request, tool_alias: "x" }, policy);
    expect(made[1]).toEqual({ tool, input, working_directory, tool_alias: "x" });
  });

  it.each([
    ["another input", { input: { command: "ls " } }],
    ["a key more", { input: { command: "ls", description: "" } }],
    ["another tool", { tool: "file.read" }],
    ["another name of the tool", { tool_alias: "PowerShell" }],
    ["another folder", { working_directory: "/b" }],
    ["a number for its text", { input: { command: 1 } }],
  ])("are made anew for %s", (_what, change) => {
    const { classify, made } = remembering();
    classify(request, policy);
    classify({ ...request, ...change }, policy);
    expect(made).toHaveLength(2);
  });

  it("are made anew for another policy, for links, and where no folder is said", () => {
    const { classify, made } = remembering();
    classify(request, policy);
    classify(request, other);
    classify(request, policy, new Map([["/a/x", "/b"]]));
    const { working_directory: _folder, ...nowhere } = request;
    classify(nowhere, policy);
    expect(made).toHaveLength(4);
  });

  it("are not kept when they took long, or when what is asked is long", () => {
    const slow = remembering(6);
    slow.classify(request, policy);
    slow.classify(request, policy);
    expect(slow.made).toHaveLength(2);
    const { classify, made } = remembering();
    const long = { ...request, input: { command: "x".repeat(3_000) } };
    classify(long, policy);
    classify(long, policy);
    expect(made).toHaveLength(2);
  });

  it("are not kept when a short text names very much", () => {
    for (const [parts, count] of [
      [64, 1],
      [65, 2],
    ] as const) {
      const { classify, made } = remembering(0, parts);
      classify(request, policy);
      classify(request, policy);
      expect(made).toHaveLength(count);
    }
  });

  it("are bounded: of very many, the last ones are kept", () => {
    const { classify, made } = remembering();
    const ask = (n: number): unknown => classify({ ...request, input: { command: String(n) } }, policy);
    for (let n = 0; n < 5_000; n += 1) ask(n);
    for (let n = 4_700; n < 5_000; n += 1) ask(n);
    expect(made).toHaveLength(5_000);
    ask(0);
    expect(made).toHaveLength(5_001);
  });
});
