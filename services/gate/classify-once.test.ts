import { describe, expect, it } from "vitest";
import type { GateRequest } from "../../schemas/gate.ts";
import type { Classified } from "./classified.ts";
import { withRealPaths } from "./classified.ts";
import { createClassifyOnce } from "./classify-once.ts";
import type { Policy } from "./policy/policy.ts";

const request: GateRequest = {
  runtime: "own",
  session_id: "s",
  phase: "before_tool",
  tool: "shell.run",
  input: { command: "ls" },
};
const [policy, other] = [{ name: "one" } as Policy, { name: "two" } as Policy];

describe("a classification that is made once", () => {
  it("is made anew for another request, policy or link, and only then", () => {
    let made = 0;
    let nowMs = 0;
    const once = createClassifyOnce(
      (asked, _policy, links) => {
        made += 1;
        nowMs += 5;
        const signals = [asked.input["command"] as string, ...(links === undefined ? [] : ["linked"])];
        return { signals } as unknown as Classified;
      },
      () => nowMs,
    );
    const links = new Map([["/a", "/b"]]);
    const first = once.classify(request, policy);
    expect(once.classify(request, policy)).toBe(first);
    expect(made).toBe(1);
    expect(withRealPaths(once.classify, links)(request, policy).signals).toEqual(["ls", "linked"]);
    expect(withRealPaths(once.classify, links)(request, policy).signals).toEqual(["ls", "linked"]);
    expect(made).toBe(2);
    once.classify(request, other);
    expect(made).toBe(3);
    expect(once.costMs(request)).toBe(15);
    const rewritten = Object.assign({}, request, { input: { command: "pwd" } });
    expect(once.classify(rewritten, policy).signals).toEqual(["pwd"]);
    expect(once.costMs(rewritten)).toBe(5);
    expect(made).toBe(4);
  });
});
