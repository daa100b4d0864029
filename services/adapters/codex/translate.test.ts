import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Translation } from "../../../schemas/adapter.ts";
import { rules } from "./events.ts";
import { toReply } from "./reply.ts";
import { toFabricTool, toNamedPaths } from "./tool-names.ts";
import { toOutcome } from "./tool-events.ts";
import { translate } from "./translate.ts";

const base = { session_id: "s1", turn_id: "t1", cwd: "/workspace", model: "m", permission_mode: "default" };
const call = {
  ...base,
  hook_event_name: "PreToolUse",
  tool_name: "Bash",
  tool_input: { command: "true" },
  tool_use_id: "c1",
};
const read = (payload: unknown): Translation => translate(payload, 100);
const summaryOf = (payload: unknown): unknown => {
  const translation = read(payload);
  return translation.kind === "unrecognized"
    ? translation.draft.redacted_summary
    : translation.observations[0]?.draft.redacted_summary;
};

describe("a payload that is not understood", () => {
  it.each([
    [null, "not_an_object", null],
    [{ ...base }, "missing_field", "/hook_event_name"],
    [{ ...call, hook_event_name: "PreTeleport" }, "unknown_event", "/hook_event_name"],
    [{ ...call, hook_event_name: "toString" }, "unknown_event", "/hook_event_name"],
    [{ ...call, turn_id: undefined }, "missing_field", "/turn_id"],
    [{ ...call, tool_input: "ls" }, "wrong_type", "/tool_input"],
    [{ ...call, tool_name: ["Bash"] }, "wrong_type", "/tool_name"],
    [{ ...call, agent_id: 1 }, "wrong_type", "/agent_id"],
    [{ ...call, cwd: null }, "wrong_type", "/cwd"],
  ])("%j is answered with no, in a form that is honoured", (payload, problem, field) => {
    expect(summaryOf(payload)).toMatchObject({ problem, field, gating: true });
    const reply = toReply(read(payload), null);
    expect([reply.exitCode, reply.stdout]).toEqual([2, ""]);
    expect(reply.stderr).toMatch(/^PAYLOAD_UNRECOGNIZED: .+/);
  });

  it("in a new session source goes on with an unknown one", () => {
    const start = { ...base, turn_id: undefined, hook_event_name: "SessionStart", source: "teleport" };
    expect(summaryOf(JSON.parse(JSON.stringify(start)))).toMatchObject({ source: "unknown" });
  });
});

describe("the outcome of a tool", () => {
  it.each([
    // A command that failed sends the same event with the same kind of text.
    ["Bash", "cat: missing.txt: No such file or directory\n", "unknown"],
    ["Bash", "Exit code: 0\n", "unknown"],
    ["apply_patch", "Exit code: 0\nWall time: 0 seconds\nOutput:\n", "succeeded"],
    ["apply_patch", "Exit code: 1\nOutput:\n", "failed"],
    ["apply_patch", "done", "unknown"],
    ["apply_patch", "Output:\nExit code: 0\n", "unknown"],
    ["spawn_agent", '{"agent_id":"a","nickname":"n"}', "succeeded"],
    ["spawn_agent", "no such agent", "unknown"],
    ["mcp__gate__echo", { content: [] }, "succeeded"],
    ["mcp__gate__echo", { content: [], isError: true }, "failed"],
    ["mcp__gate__echo", null, "unknown"],
  ])("%s answering %j is %s", (alias, response, outcome) => {
    expect(toOutcome(alias, response)).toBe(outcome);
  });
});

describe("tools and their files", () => {
  it.each([
    ["Bash", "shell.run"],
    ["apply_patch", "file.patch"],
    ["spawn_agent", "agent.spawn"],
    ["mcp__gate__echo", "mcp.gate.echo"],
    ["write_stdin", "other.write_stdin"],
    ["valueOf", "other.valueOf"],
  ])("%s is %s", (alias, tool) => {
    expect(toFabricTool(alias)).toBe(tool);
  });

  it("reads the files of a patch from its headers, and not from its text", () => {
    const patch = [
      "*** Begin Patch",
      "*** Add File: a b.txt",
      "+*** Add File: no.txt",
      "*** Update File: ../old.txt",
      "*** Move to: /etc/new.txt",
      "@@",
      "-x",
      "*** Delete File: gone.txt ",
      "*** End Patch",
    ].join("\n");
    expect(toNamedPaths("apply_patch", { command: patch })).toEqual([
      "a b.txt",
      "../old.txt",
      "/etc/new.txt",
      "gone.txt",
    ]);
    expect(summaryOf({ ...call, tool_name: "apply_patch", tool_input: { command: patch } })).toMatchObject({
      paths: ["/workspace/a b.txt", "/old.txt", "/etc/new.txt", "/workspace/gone.txt"],
    });
  });

  it("reads a patch of a megabyte of spaces in no time", () => {
    const started = performance.now();
    toNamedPaths("apply_patch", { command: `*** Add File: a${" ".repeat(1_000_000)}b` });
    expect(performance.now() - started).toBeLessThan(500);
  });
});

describe("a model call", () => {
  const result = { ...base, hook_event_name: "PostModelRequest", status: "completed", error: null };

  it("counts all input once: cached tokens are a part of it", () => {
    const usage = {
      input_tokens: 100,
      cached_input_tokens: 60,
      cache_write_input_tokens: 10,
      output_tokens: 5,
    };
    expect(
      summaryOf({ ...result, token_usage: { ...usage, reasoning_output_tokens: 2, total_tokens: 105 } }),
    ).toMatchObject({
      input_tokens: 100n,
      cached_input_tokens: 60n,
      cache_write_tokens: 10n,
      output_tokens: 5n,
      reasoning_tokens: 2n,
    });
  });

  it.each([
    ["failed", "failed", []],
    ["evaporated", "unknown", ["/status"]],
  ])("with status %s ended %s", (status, outcome, unknownFields) => {
    const payload = { ...result, status, token_usage: null };
    expect(summaryOf(payload)).toMatchObject({ outcome, input_tokens: null });
    expect(read(payload)).toMatchObject({ unknownFields });
  });

  it("with counts that are none is recorded without them, and says so", () => {
    const payload = { ...result, token_usage: { input_tokens: -1 } };
    expect(summaryOf(payload)).toMatchObject({ input_tokens: null });
    expect(read(payload)).toMatchObject({ unknownFields: ["/token_usage"] });
  });
});

describe("any JSON", () => {
  // INVARIANT: no payload makes the translation throw, and each has a reply.
  it("is translated without throwing, and answered", () => {
    const names = fc.oneof(fc.constantFrom(...rules.keys()), fc.string());
    const fields = fc.dictionary(
      fc.constantFrom(...Object.keys(call), "tool_response", "token_usage", "source", "error"),
      fc.jsonValue(),
    );
    const payload = fc.oneof(
      fc.jsonValue(),
      fc.tuple(names, fields).map(([name, some]) => ({ ...call, ...some, hook_event_name: name })),
    );
    fc.assert(
      fc.property(payload, fc.nat(), (value, bytes) => toReply(translate(value, bytes), null).status === 200),
      { numRuns: 500 },
    );
  });

  it("nested ten thousand levels deep is translated wherever it stands", () => {
    const deep = JSON.parse(`${"[".repeat(10_000)}${"]".repeat(10_000)}`) as unknown;
    for (const name of rules.keys())
      for (const field of ["tool_input", "tool_response", "token_usage", "prompt", "strange"])
        expect(() => read({ ...call, hook_event_name: name, [field]: deep })).not.toThrow();
  });
});
