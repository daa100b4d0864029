import { describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import type { Screen } from "../cli/screen.ts";
import { parseDecideFile, renderJudged } from "./decide-file.ts";

const screen: Screen = {
  line: () => undefined,
  record: () => undefined,
  progress: () => undefined,
  colour: false,
  json: false,
};
const answer = (decision: GateAnswer["decision"], reason = "ALLOWED"): GateAnswer => ({
  decision,
  decision_id: "not-recorded",
  reason_code: reason,
  message: "",
  policy_revision: "policy@2026-01-01.1+0",
  plan_digest: null,
  correlation_id: "not-recorded",
  constraints: {},
  matched_rules: ["allow.a"],
  labels: [],
  repeated: false,
});

describe("a file of requests", () => {
  it("holds commands, cases and bare requests, as an array or one a line", () => {
    const items = [
      { text: "ls", decision: "allow" },
      "git status",
      {
        name: "a case",
        request: { tool: "file.read", input: {} },
        expect: { decision: "deny", reason_code: "STATIC_DENY" },
      },
      { tool: "shell.run", input: { command: "pwd" } },
    ];
    for (const text of [JSON.stringify(items), items.map((one) => JSON.stringify(one)).join("\n")]) {
      const asked = parseDecideFile(text, "f");
      expect(asked.map(({ name, expected, expectedReason }) => [name, expected, expectedReason])).toEqual([
        ["ls", "allow", null],
        ["git status", null, null],
        ["a case", "deny", "STATIC_DENY"],
        ["shell.run pwd", null, null],
      ]);
      expect(asked[1]?.request).toMatchObject({ tool: "shell.run", input: { command: "git status" } });
    }
  });

  it("says which item is wrong, and where a line is no JSON", () => {
    expect(() =>
      parseDecideFile(JSON.stringify([{ text: "ls" }, { tool: "nope", input: {} }, 7]), "f"),
    ).toThrow(/item 2: .*tool.*item 3: it is no object/);
    expect(() => parseDecideFile('{"text":"ls"}\n{', "f")).toThrow(/line 2/);
    expect(() => parseDecideFile("[]", "f")).toThrow(/no request/);
  });
});

describe("its table", () => {
  const [ls, push] = parseDecideFile(
    JSON.stringify([
      { text: "ls", decision: "allow" },
      { text: "git\npush", decision: "deny" },
    ]),
    "f",
  );
  if (ls === undefined || push === undefined) throw new Error("two were given");

  it("marks what came out otherwise, and exits 1", () => {
    const report = renderJudged(screen, [
      { asked: ls, answer: answer("allow") },
      { asked: push, answer: answer("allow") },
    ]);
    expect(report.exit).toBe(1);
    expect(report.text.split("\n")).toEqual([
      "   DECISION  REASON   EXPECTED  REQUEST   RULES",
      "─  ────────  ───────  ────────  ────────  ───────",
      "   allow     ALLOWED            ls        allow.a",
      "✗  allow     ALLOWED  deny      git⏎push  allow.a",
      "",
      "2 judged by policy@2026-01-01.1+0: 2 allow",
      "1 of 2 came out otherwise",
    ]);
  });

  it("of many shows only what differs", () => {
    const report = renderJudged(
      screen,
      Array.from({ length: 100 }, () => ({ asked: ls, answer: answer("allow") })),
    );
    expect([report.exit, report.text]).toEqual([
      0,
      "100 judged by policy@2026-01-01.1+0: 100 allow\nall 100 expected decisions came out",
    ]);
  });
});
