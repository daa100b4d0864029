import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Translation } from "../../../schemas/adapter.ts";
import { rules } from "./events.ts";
import { toRefusal, toReply } from "./reply.ts";
import { translate } from "./translate.ts";

const base = { session_id: "s1", prompt_id: "p1", cwd: "/workspace", permission_mode: "default" };
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

describe("a payload that is no payload", () => {
  it.each([null, [], "text", 7, true, [call]])("%j is answered with no", (payload) => {
    const translation = read(payload);
    expect(translation).toMatchObject({ kind: "unrecognized", eventName: null, call: {} });
    expect(summaryOf(payload)).toMatchObject({ problem: "not_an_object", field: null, gating: true });
    expect(toReply(translation, null).exitCode).toBe(2);
  });

  it.each([
    [{ session_id: "s1" }, "missing_field", null],
    [{ ...call, hook_event_name: 7 }, "wrong_type", null],
    [{ ...call, hook_event_name: "PreTeleport" }, "unknown_event", "PreTeleport"],
    [{ ...call, hook_event_name: "__proto__" }, "unknown_event", "__proto__"],
    [{ ...call, hook_event_name: "constructor" }, "unknown_event", "constructor"],
  ])("%j: %s", (payload, problem, eventName) => {
    expect(read(payload)).toMatchObject({ kind: "unrecognized", eventName });
    expect(summaryOf(payload)).toMatchObject({
      problem,
      field: "/hook_event_name",
      gating: true,
      body_bytes: 100,
    });
  });

  it("keeps the ids that it could read", () => {
    expect(read({ ...call, tool_input: "x" })).toMatchObject({
      kind: "unrecognized",
      call: { sessionId: "s1", turnId: "p1", toolCallId: "c1", phase: "before_tool" },
    });
  });
});

describe("a call", () => {
  it.each([
    ["tool_name", 7, "wrong_type"],
    ["tool_name", "", "unknown_value"],
    ["tool_name", "x".repeat(201), "unknown_value"],
    ["tool_name", "工".repeat(60), "unknown_value"],
    ["tool_input", "ls", "wrong_type"],
    ["tool_input", JSON.parse('{"__proto__":{"command":"rm"}}') as unknown, "unknown_value"],
    ["session_id", 7, "wrong_type"],
    ["agent_id", ["a"], "wrong_type"],
    ["prompt_id", null, "wrong_type"],
    ["tool_use_id", undefined, "missing_field"],
    ["cwd", 7, "wrong_type"],
  ])("whose %s is %j is not understood: %s", (field, value, problem) => {
    const translation = read({ ...call, [field]: value });
    expect(translation.kind).toBe("unrecognized");
    expect(summaryOf({ ...call, [field]: value })).toMatchObject({
      problem,
      field: `/${field}`,
      gating: true,
    });
    expect(toReply(translation, null)).toMatchObject({ exitCode: 2, stdout: "" });
  });

  it("goes on when mere metadata is new or strange, and says so", () => {
    const translation = read({
      ...call,
      permission_mode: 7,
      shiny: { a: 1 },
      mcp_server: { name: "x", age: 1 },
    });
    expect(translation).toMatchObject({
      kind: "gated",
      runtime: { permission_mode: null },
      unknownFields: ["/permission_mode", "/shiny", "/mcp_server/age"],
    });
    expect(translation.kind === "gated" && "permission_mode" in translation.request).toBe(false);
  });

  it("of a resumed session, which carries no prompt id, hangs on the session", () => {
    const { prompt_id: _, ...resumed } = call;
    const translation = read(resumed);
    expect(translation.kind === "gated" && translation.observations[0]?.causes).toEqual([
      { scope: "session", id: "s1" },
    ]);
  });

  it("names its files as they will be found", () => {
    const edit = { ...call, tool_name: "Edit", tool_input: { file_path: "../etc/passwd" } };
    expect(summaryOf(edit)).toMatchObject({ paths: ["/etc/passwd"], effect_class: "write" });
  });

  it("shows no secret in its preview", () => {
    const token = ["ghp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].join("_");
    const input = { command: `curl -H 'Authorization: Bearer ${token}' x\nexport T=${token}` };
    expect(JSON.stringify(summaryOf({ ...call, tool_input: input }))).not.toContain(token.slice(0, 10));
  });
});

describe("an observed event", () => {
  it("with an unknown source is recorded with an unknown source", () => {
    const start = { ...base, hook_event_name: "SessionStart", source: "teleport" };
    expect(summaryOf(start)).toMatchObject({ source: "unknown" });
    expect(read(start)).toMatchObject({ kind: "observed", unknownFields: ["/source"] });
  });

  it("that is not understood is recorded, and nobody is told no", () => {
    const stop = { ...base, hook_event_name: "Stop", session_id: 7 };
    expect(summaryOf(stop)).toMatchObject({ problem: "wrong_type", field: "/session_id", gating: false });
    expect(toReply(read(stop), null)).toMatchObject({ body: {}, exitCode: 0, stdout: "", stderr: "" });
  });

  it.each([
    [{ hook_event_name: "PostToolUseFailure", error: "x", is_interrupt: true }, "interrupted"],
    [{ hook_event_name: "PostToolUseFailure", error: "x", is_interrupt: false }, "failed"],
    [{ hook_event_name: "PostToolUse", tool_response: { stdout: "", interrupted: true } }, "interrupted"],
    [{ hook_event_name: "PostToolUse", tool_response: "done" }, "succeeded"],
    [{ hook_event_name: "PostToolUse" }, "succeeded"],
  ])("%j ends %s", (fields, outcome) => {
    expect(summaryOf({ ...base, tool_name: "Bash", tool_use_id: "c1", ...fields })).toMatchObject({
      outcome,
    });
  });
});

describe("any JSON", () => {
  // INVARIANT: no payload makes the translation throw, and each has a reply.
  it("is translated without throwing, and answered", () => {
    const names = fc.oneof(fc.constantFrom(...rules.keys()), fc.string());
    const payload = fc.oneof(
      fc.jsonValue(),
      fc
        .tuple(
          fc.jsonValue(),
          names,
          fc.dictionary(
            fc.constantFrom(
              ...Object.keys(call),
              "tool_response",
              "tool_calls",
              "mcp_server",
              "background_tasks",
            ),
            fc.jsonValue(),
          ),
        )
        .map(([value, name, fields]) => ({ value, ...call, ...fields, hook_event_name: name })),
    );
    fc.assert(
      fc.property(payload, fc.nat(), (value, bytes) => {
        const translation = translate(value, bytes);
        expect(toReply(translation, null).status).toBe(200);
        expect(
          toRefusal(translation.kind === "unrecognized" ? translation.eventName : null, "X: y").status,
        ).toBe(200);
      }),
      { numRuns: 500 },
    );
  });

  it("nested ten thousand levels deep is translated wherever it stands", () => {
    const deep = JSON.parse(`${"[".repeat(10_000)}${"]".repeat(10_000)}`) as unknown;
    for (const name of rules.keys())
      for (const field of ["tool_input", "tool_response", "tool_calls", "prompt", "strange"])
        expect(() => read({ ...call, hook_event_name: name, [field]: deep })).not.toThrow();
    expect(read(deep).kind).toBe("unrecognized");
  });

  it("of ten megabytes is translated in a fraction of a second", () => {
    const huge = "a b=".repeat(2_500_000);
    const started = performance.now();
    read({ ...call, tool_input: { command: huge } });
    read({ ...base, hook_event_name: "UserPromptSubmit", prompt: huge });
    expect(performance.now() - started).toBeLessThan(2000);
  });
});
