import { describe, expect, it } from "vitest";
import type { When } from "./policy.ts";
import { findTool, patternsMeet, toolFits } from "./tool-pattern.ts";
import type { WhenView } from "./when.ts";
import { whenHolds } from "./when.ts";

const always: When = {
  ...{
    tools: [],
    effects: [],
    runtimes: [],
    environments: [],
    signalsAny: [],
    signalsAll: [],
    signalsNone: [],
  },
  ...{ labelsAny: [], labelsNone: [], riskAtLeast: null },
};
const view: WhenView = {
  tool: "mcp.tracker.list",
  effect: "read",
  runtime: "codex",
  environment: "staging",
  signals: new Set(["deploy", "git.push"]),
  labels: new Set(["secret_read"]),
  riskScore: 40,
};

describe("a `when`", () => {
  it("without parts always holds", () => {
    expect(whenHolds(always, view)).toBe(true);
  });

  const parts: readonly (readonly [Partial<When>, boolean])[] = [
    [{ tools: ["mcp.tracker.list"] }, true],
    [{ tools: ["mcp.tracker"] }, false],
    [{ tools: ["shell.run", "mcp.tracker.*"] }, true],
    [{ tools: ["mcp.other.*"] }, false],
    [{ tools: ["*"] }, true],
    [{ effects: ["write", "read"] }, true],
    [{ effects: ["write"] }, false],
    [{ runtimes: ["codex"] }, true],
    [{ runtimes: ["opencode"] }, false],
    [{ environments: ["staging"] }, true],
    [{ environments: ["production"] }, false],
    [{ signalsAny: ["git.commit", "deploy"] }, true],
    [{ signalsAny: ["git.commit"] }, false],
    [{ signalsAll: ["git.push", "deploy"] }, true],
    [{ signalsAll: ["git.push", "git.commit"] }, false],
    [{ signalsNone: ["git.commit"] }, true],
    [{ signalsNone: ["git.commit", "deploy"] }, false],
    [{ labelsAny: ["secret_read"] }, true],
    [{ labelsAny: ["other"] }, false],
    [{ labelsNone: ["other"] }, true],
    [{ labelsNone: ["secret_read"] }, false],
    [{ riskAtLeast: 40 }, true],
    [{ riskAtLeast: 41 }, false],
  ];
  it.each(parts)("with %o: %s", (part, holds) => {
    expect(whenHolds({ ...always, ...part }, view)).toBe(holds);
  });

  it("holds when all of its parts do, and not when one does not", () => {
    for (const [one, oneHolds] of parts) {
      for (const [other, otherHolds] of parts) {
        if (Object.keys(one)[0] === Object.keys(other)[0]) continue;
        expect(whenHolds({ ...always, ...one, ...other }, view)).toBe(oneHolds && otherHolds);
      }
    }
  });

  it("is asked again and again with other views", () => {
    const when = { ...always, signalsAny: ["deploy"] };
    expect([view, { ...view, signals: new Set<string>() }, view].map((one) => whenHolds(when, one))).toEqual([
      ...[true, false, true],
    ]);
  });
});

describe("a tool", () => {
  it("fits its own name, or the beginning of it before a star", () => {
    expect(toolFits("file.read", "file.read")).toBe(true);
    expect(toolFits("file.read", "file.read.more")).toBe(false);
    expect(toolFits("file.*", "file.read")).toBe(true);
    expect(toolFits("file.*", "files.read")).toBe(false);
  });

  it("is its own entry, else that of the longest wildcard", () => {
    const tools = ["mcp.*", "mcp.tracker.*", "mcp.tracker.list"].map((tool) => ({ tool }));
    expect(findTool(tools, "mcp.tracker.list")?.tool).toBe("mcp.tracker.list");
    expect(findTool(tools, "mcp.tracker.add")?.tool).toBe("mcp.tracker.*");
    expect(findTool(tools, "mcp.other.add")?.tool).toBe("mcp.*");
    expect(findTool(tools, "shell.run")).toBeNull();
  });

  it("can be meant by two patterns of which one is the narrower", () => {
    expect(patternsMeet("mcp.*", "mcp.tracker.*")).toBe(true);
    expect(patternsMeet("mcp.tracker.list", "mcp.*")).toBe(true);
    expect(patternsMeet("file.*", "mcp.*")).toBe(false);
  });
});
