import { describe, expect, it } from "vitest";
import type { GateRequest, JsonObject } from "../../../schemas/gate.ts";
import type { Classified } from "../classified.ts";
import type { ResourceKind, ToolEntry } from "../policy/policy.ts";
import type { JudgedForm } from "./rewrite.ts";
import { findRewriteFault } from "./rewrite.ts";

const toEntry = (kind: ResourceKind): ToolEntry => ({
  tool: "some.tool",
  effect: "write",
  dataClass: "internal",
  action: "act",
  resource: { kind, fields: ["on"], required: true },
  volatile: [],
  constraints: {},
  inputProblems: (input) => (Object.hasOwn(input, "wrong") ? ["wrong: unknown field"] : []),
});
const entries = { command: toEntry("command"), patch: toEntry("patch") };

function form(
  kind: keyof typeof entries,
  parts: Partial<Classified> = {},
  input: JsonObject = {},
): JudgedForm {
  const request: GateRequest = {
    runtime: "own",
    session_id: "s",
    phase: "before_tool",
    tool: "some.tool",
    input,
  };
  const classified: Classified = {
    entry: entries[kind],
    effect: "write",
    dataClass: "internal",
    action: "act",
    resource: "a",
    findings: [],
    touched: [{ path: "/w/a", mode: "write" }],
    command: null,
    operandPaths: [],
    signals: ["one"],
    ...parts,
  };
  return { request, classified };
}

describe("a rewrite", () => {
  it("may leave everything as it is, and take signals from a command", () => {
    expect(findRewriteFault(form("patch"), form("patch"))).toBeNull();
    expect(findRewriteFault(form("command"), form("command", { resource: "b", signals: [] }))).toBeNull();
  });

  it("may not let a command do more, though its text stays: a field can change where and how it runs", () => {
    const more = form("command", { signals: ["one", "path.outside-workspace.write"] });
    expect(findRewriteFault(form("command"), more)).toBe(
      "made a command that does more: path.outside-workspace.write",
    );
  });

  it("may not change any file of a call that names several", () => {
    const others = form("patch", {
      touched: [
        { path: "/w/a", mode: "write" },
        { path: "/w/b", mode: "write" },
      ],
    });
    expect(findRewriteFault(form("patch"), others)).toBe("changed the resource");
    expect(findRewriteFault(others, form("patch"))).toBe("changed the resource");
    expect(findRewriteFault(form("patch"), form("patch", { resource: "b" }))).toBe("changed the resource");
  });

  it("may not make an input that the tool does not take", () => {
    expect(findRewriteFault(form("patch"), form("patch", {}, { wrong: 1 }))).toBe(
      "made an input that the tool does not take: wrong: unknown field",
    );
  });
});
