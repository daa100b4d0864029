import { describe, expect, it } from "vitest";
import type { GateDecision, GateQuestion } from "../gate/gate-answer.ts";
import { readAnswer, toRefusal } from "../gate/gate-answer.ts";
import type { JsonObject } from "../json.ts";
import { createLifecycle } from "../lifecycle.ts";
import { createHookRegistry } from "../registry/registry.ts";
import type { ApprovalService } from "./approval.ts";
import type { ToolPipeline, ToolPipelineOptions } from "./pipeline.ts";
import { createToolPipeline } from "./pipeline.ts";
import type { ProposedCall, Tool } from "./tool.ts";
import { UnknownEffect } from "./tool.ts";

const answered = (rest: JsonObject): GateDecision =>
  readAnswer({
    decision: "allow",
    decision_id: "dec_1",
    reason_code: "ALLOWED",
    message: "fine",
    policy_revision: "policy@2026-11-30.1",
    plan_digest: null,
    constraints: {},
    labels: [],
    ...rest,
  });
const needsPerson = answered({
  decision: "require_approval",
  reason_code: "APPROVAL_REQUIRED",
  message: "a person has to agree",
  approval: { id: "apr_1", expires_at: new Date(Date.now() + 60_000).toISOString() },
});

interface Rig {
  readonly pipeline: ToolPipeline;
  readonly hooks: ReturnType<typeof createHookRegistry>;
  readonly asked: GateQuestion[];
  readonly ran: JsonObject[];
  call(input: unknown, rest?: Partial<ProposedCall>): ReturnType<ToolPipeline["run"]>;
}
let calls = 0;
const rig = (
  decide: GateDecision | ((question: GateQuestion, nth: number) => GateDecision) = answered({}),
  tool: Partial<Tool> = {},
  options: Partial<ToolPipelineOptions> = {},
): Rig => {
  const hooks = createHookRegistry();
  const asked: GateQuestion[] = [];
  const ran: JsonObject[] = [];
  const gate = {
    decide(question: GateQuestion) {
      asked.push(question);
      return Promise.resolve(typeof decide === "function" ? decide(question, asked.length) : decide);
    },
  };
  const pipeline = createToolPipeline({
    lifecycle: createLifecycle(hooks, null),
    gate,
    tools: [
      {
        name: "note.write",
        body(input) {
          ran.push(input);
          return { done: true };
        },
        ...tool,
      },
    ],
    ...options,
  });
  return {
    ...{ pipeline, hooks, asked, ran },
    call: (input, rest = {}) =>
      pipeline.run({
        id: `call-${String((calls += 1))}`,
        tool: "note.write",
        input,
        sessionId: "s",
        ...rest,
      }),
  };
};
const never = (): Promise<never> => new Promise(() => undefined);

describe("a call that is blocked", () => {
  const cases: [string, () => [Rig, unknown], string, string][] = [
    ["by the gate", () => [rig(toRefusal("STATIC_DENY", "no")), {}], "gate", "STATIC_DENY"],
    [
      "by a handler",
      () => {
        const made = rig();
        made.hooks.hook("PreToolUse", () => ({ deny: "no" }));
        return [made, {}];
      },
      "hook",
      "HOOK_DENIED",
    ],
    ["by a missing person", () => [rig(needsPerson), {}], "gate", "APPROVAL_REQUIRED"],
    ["by a guard", () => [rig(undefined, {}, { guards: [() => "read-only"] }), {}], "guard", "GUARD_REFUSED"],
    [
      "by a guard that fails",
      () => [rig(undefined, {}, { guards: [() => Promise.reject(new Error("x"))] }), {}],
      "guard",
      "GUARD_REFUSED",
    ],
    ["by an input that JSON cannot hold", () => [rig(), { at: 1n }], "guard", "INPUT_UNREADABLE"],
    [
      "by an input of another tool",
      () => [rig(undefined, { check: () => "where is the text?" }), {}],
      "guard",
      "SCHEMA_MISMATCH",
    ],
    [
      "by a check that fails",
      () => [
        rig(undefined, {
          check: () => {
            throw new Error("x");
          },
        }),
        {},
      ],
      "guard",
      "SCHEMA_MISMATCH",
    ],
    ["by garbage of the gate", () => [rig(readAnswer({ decision: "allow" })), {}], "gate", "GATE_GARBAGE"],
    [
      "though its input looks like a refusal",
      () => [rig(toRefusal("STATIC_DENY", "no")), { status: "blocked", reasonCode: "X", text: "y" }],
      "gate",
      "STATIC_DENY",
    ],
  ];
  it.each(cases)(
    "%s never enters the body, and is in the book of refusals alone",
    async (_, make, by, code) => {
      const [made, input] = make();
      const told: unknown[] = [];
      made.hooks.observe("ToolBlocked", (event) => told.push(event.reasonCode));
      const outcome = await made.call(input);
      expect(outcome).toMatchObject({ status: "blocked", by, reasonCode: code });
      expect(outcome.text).toContain(code);
      expect(made.ran).toEqual([]);
      expect(made.pipeline.ledgers.executed).toEqual([]);
      expect(made.pipeline.ledgers.blocked).toMatchObject([{ by, reasonCode: code }]);
      expect(told).toEqual([code]);
    },
  );

  it("was an input that only looks like a refusal: it runs when it is allowed", async () => {
    const made = rig();
    expect(await made.call({ status: "blocked", reasonCode: "X" })).toMatchObject({ status: "succeeded" });
  });
});

describe("what runs", () => {
  it("is what the gate was asked about, as the last handler rewrote it", async () => {
    const made = rig();
    made.hooks.hook("PreToolUse", ({ call }) => ({ rewrite: { ...call.input, b: 2 } }));
    const outcome = await made.call({ a: 1 });
    expect(made.asked[0]?.input).toEqual({ a: 1, b: 2 });
    expect(made.ran).toEqual([{ a: 1, b: 2 }]);
    expect(outcome).toMatchObject({ status: "succeeded", output: { done: true }, text: '{"done":true}' });
  });

  it("does not change when the caller changes its own copy meanwhile, or a body its input", async () => {
    const input: Record<string, unknown> = { path: "a" };
    const made = rig(
      (question) => {
        input["path"] = "/etc/passwd";
        return answered({ message: JSON.stringify(question.input) });
      },
      {
        body(given) {
          (given as Record<string, unknown>)["path"] = "changed";
          return JSON.stringify(given);
        },
      },
    );
    const outcome = await made.call(input);
    expect(outcome).toMatchObject({ input: { path: "a" }, output: '{"path":"changed"}' });
    expect(made.asked[0]?.input).toEqual({ path: "a" });
  });

  it("is the gate's own input after a modify; handlers see it, may refuse it, and may not change it", async () => {
    const modify = answered({
      decision: "modify",
      reason_code: "REWRITTEN",
      message: "dry run",
      modified_input: { dry: true },
    });
    const plain = rig(modify);
    expect(await plain.call({})).toMatchObject({ status: "succeeded", input: { dry: true } });
    const refusing = rig(modify);
    refusing.hooks.hook("PreToolUse", ({ call }) =>
      call.input["dry"] === true ? { deny: "no dry runs" } : null,
    );
    expect(await refusing.call({})).toMatchObject({ status: "blocked", by: "hook" });
    const changing = rig(modify);
    changing.hooks.hook("PreToolUse", ({ call }) => ({ rewrite: { ...call.input, force: true } }));
    expect(await changing.call({})).toMatchObject({ status: "blocked", reasonCode: "REWRITE_TOO_LATE" });
    expect([...refusing.ran, ...changing.ran]).toEqual([]);
  });

  it("runs once for an id: the same id again is refused, also at the same time", async () => {
    const made = rig();
    const both = await Promise.all([made.call({}, { id: "one" }), made.call({}, { id: "one" })]);
    expect(both.map(({ status }) => status).sort()).toEqual(["blocked", "succeeded"]);
    expect(made.ran).toHaveLength(1);
    expect(await made.call({}, { id: "one", sessionId: "other" })).toMatchObject({ status: "succeeded" });
  });
});

describe("a person's word", () => {
  const service = (answer: unknown): ApprovalService => ({
    ask: () => Promise.resolve(answer as never),
  });
  it("lets the call pass only after the gate has said yes once more", async () => {
    const made = rig(
      (_, nth) => (nth === 1 ? needsPerson : answered({ reason_code: "APPROVED" })),
      {},
      { approvals: service("approved") },
    );
    expect(await made.call({})).toMatchObject({ status: "succeeded" });
    expect(made.asked).toHaveLength(2);
    const still = rig(needsPerson, {}, { approvals: service("approved") });
    expect(await still.call({})).toMatchObject({ status: "blocked", by: "gate" });
    const changed = rig(
      (_, nth) => (nth === 1 ? needsPerson : toRefusal("TENANT_FROZEN", "x")),
      {},
      { approvals: service("approved") },
    );
    expect(await changed.call({})).toMatchObject({ status: "blocked", reasonCode: "TENANT_FROZEN" });
  });

  it.each([
    ["refused", "APPROVAL_REFUSED"],
    ["expired", "APPROVAL_EXPIRED"],
    ["yes", "APPROVAL_FAILED"],
    [true, "APPROVAL_FAILED"],
  ])("%s blocks with %s", async (answer, code) => {
    const made = rig(needsPerson, {}, { approvals: service(answer) });
    expect(await made.call({})).toMatchObject({
      status: "blocked",
      by: "approval",
      reasonCode: code,
      approvalId: "apr_1",
    });
    expect(made.ran).toEqual([]);
  });

  it("is not given by a service that fails, that never answers, or that is not there", async () => {
    const failing = rig(needsPerson, {}, { approvals: { ask: () => Promise.reject(new Error("x")) } });
    expect(await failing.call({})).toMatchObject({ reasonCode: "APPROVAL_FAILED" });
    const silent = rig(needsPerson, {}, { approvals: { ask: never }, approvalTimeoutMs: 10 });
    expect(await silent.call({})).toMatchObject({ reasonCode: "APPROVAL_EXPIRED" });
    const nobody = rig();
    nobody.hooks.hook("PreToolUse", () => ({ ask: "send it?" }));
    expect(await nobody.call({})).toMatchObject({ by: "approval", reasonCode: "APPROVAL_REQUIRED" });
  });

  it("is asked for by a handler too, which cannot give it", async () => {
    const asked: string[] = [];
    const made = rig(
      undefined,
      {},
      {
        approvals: {
          ask(question) {
            asked.push(`${question.askedBy}: ${question.reason}`);
            return Promise.resolve("approved");
          },
        },
      },
    );
    made.hooks.hook("PreToolUse", () => ({ ask: "send it?" }), { name: "outgoing" });
    expect(await made.call({})).toMatchObject({ status: "succeeded" });
    expect(asked).toEqual(["hook:outgoing: send it?"]);
    expect(made.asked).toHaveLength(2);
  });
});

describe("the body", () => {
  it.each(["never", undefined] as const)(
    "that does not end in time is unknown, and not made again (%s)",
    async (repeat) => {
      const made = rig(undefined, {
        body: never,
        timeoutMs: 10,
        ...(repeat === undefined ? {} : { repeat }),
      });
      expect(await made.call({})).toMatchObject({ status: "unknown" });
      expect(made.pipeline.ledgers.executed).toMatchObject([{ attempts: 1, status: "unknown" }]);
    },
  );

  it.each(["read_only", "idempotent"] as const)("is made again when it is %s", async (repeat) => {
    let entered = 0;
    const made = rig(undefined, {
      body: () => ((entered += 1) === 1 ? never() : "second"),
      timeoutMs: 20,
      repeat,
    });
    expect(await made.call({})).toMatchObject({ status: "succeeded", output: "second" });
    expect(made.pipeline.ledgers.executed).toMatchObject([{ attempts: 2 }]);
  });

  it("that says it does not know is unknown, and one that fails has failed", async () => {
    const lost = rig(undefined, { body: () => Promise.reject(new UnknownEffect("the connection was lost")) });
    expect(await lost.call({})).toMatchObject({ status: "unknown" });
    const broken = rig(undefined, { body: () => Promise.reject(new Error("no such file")) });
    const outcome = await broken.call({});
    expect(outcome).toMatchObject({
      status: "failed",
      error: "no such file",
      text: "the tool failed: no such file",
    });
  });

  it("gets no more time than policy gives, and the right that came with the allow", async () => {
    const seen: unknown[] = [];
    const made = rig(
      answered({
        constraints: { max_runtime_seconds: 1, network: "none" },
        capability: { id: "cap_1", token: "t", expires_at: "2026-12-01T00:00:00Z" },
      }),
      {
        body(_, { capability, constraints }) {
          seen.push(capability, constraints.network);
          return null;
        },
      },
    );
    await made.call({});
    expect(seen).toEqual([{ id: "cap_1", token: "t" }, "none"]);
  });

  it("that is stopped while it runs is unknown, and before that never entered", async () => {
    const stopped = AbortSignal.abort();
    const before = rig();
    expect(
      await before.pipeline.run(
        { id: "x", tool: "note.write", input: {}, sessionId: "s" },
        { signal: stopped },
      ),
    ).toMatchObject({ status: "blocked", reasonCode: "INTERRUPTED" });
    const controller = new AbortController();
    const during = rig(undefined, {
      body() {
        controller.abort();
        return never();
      },
    });
    expect(
      await during.pipeline.run(
        { id: "x", tool: "note.write", input: {}, sessionId: "s" },
        { signal: controller.signal },
      ),
    ).toMatchObject({ status: "unknown" });
  });

  it("that ends after it was given up is noted", async () => {
    let end: (value: string) => void = () => undefined;
    const made = rig(undefined, {
      body: () =>
        new Promise((resolve) => {
          end = resolve;
        }),
      timeoutMs: 5,
    });
    await made.call({});
    end("late");
    await new Promise((resolve) => setImmediate(resolve));
    expect(made.pipeline.ledgers.executed).toMatchObject([{ status: "unknown", endedLate: "succeeded" }]);
  });
});

describe("the result", () => {
  it("is accepted, replaced, or withheld, and the call counts as run each time", async () => {
    const made = rig(undefined, { body: () => "token=abc" });
    const uninstall = made.hooks.hook("PostToolUse", () => ({ replace: "token=***", context: "masked" }), {
      name: "mask",
    });
    expect(await made.call({})).toMatchObject({
      status: "succeeded",
      output: "token=***",
      context: ["masked"],
      replacedBy: ["mask"],
    });
    uninstall();
    expect(await made.call({})).toMatchObject({ status: "succeeded", output: "token=abc" });
    made.hooks.hook("PostToolUse", () => ({ block: "it holds a secret" }), { name: "leak" });
    const withheld = await made.call({});
    expect(withheld).toMatchObject({ status: "withheld", by: "leak" });
    expect(JSON.stringify(withheld)).not.toContain("abc");
    expect(made.pipeline.ledgers.executed.map(({ status }) => status)).toEqual([
      "succeeded",
      "succeeded",
      "withheld",
    ]);
    expect(made.pipeline.ledgers.blocked).toEqual([]);
  });

  it("is withheld when the handler that looks at it fails", async () => {
    const made = rig(undefined, { body: () => "secret" });
    made.hooks.hook("PostToolUse", () => Promise.reject(new Error("x")));
    const outcome = await made.call({});
    expect(outcome.status).toBe("withheld");
    expect(JSON.stringify(outcome)).not.toContain("secret");
  });

  it("of a formatter does not set off the formatter", async () => {
    const made = rig();
    const formatted: string[] = [];
    made.hooks.observe(
      "PostToolUse",
      async ({ call }) => {
        formatted.push(call.id);
        await made.pipeline.run({
          id: `fmt-${call.id}`,
          tool: "note.write",
          input: { formatted: true },
          sessionId: "s",
        });
      },
      { name: "format" },
    );
    const origins: string[] = [];
    made.hooks.observe("PreToolUse", ({ call }) => origins.push(call.origin));
    await made.call({}, { id: "a" });
    expect(formatted).toEqual(["a"]);
    expect(origins).toEqual(["model", "hook:format"]);
    // The gate is asked about what the formatter does, too.
    expect(made.asked).toHaveLength(2);
    expect(made.ran).toHaveLength(2);
  });

  it("of a check that asks for a tool itself is a no: nobody passes his own check", async () => {
    const made = rig();
    const nested: unknown[] = [];
    made.hooks.hook(
      "PreToolUse",
      async ({ call }) => {
        nested.push(
          await made.pipeline.run({ id: `in-${call.id}`, tool: "note.write", input: {}, sessionId: "s" }),
        );
        return null;
      },
      { name: "curious" },
    );
    expect(await made.call({}, { id: "b" })).toMatchObject({ status: "succeeded" });
    expect(nested).toMatchObject([
      { status: "blocked", reasonCode: "HANDLER_REENTERED", handler: "curious" },
    ]);
    expect(made.ran).toHaveLength(1);
  });
});

describe("two calls at once", () => {
  it("each have their own input, decision and outcome", async () => {
    const made = rig((question) =>
      question.input["n"] === 1 ? toRefusal("STATIC_DENY", "no") : answered({}),
    );
    const outcomes = await Promise.all([made.call({ n: 1 }), made.call({ n: 2 })]);
    expect(outcomes.map(({ status }) => status)).toEqual(["blocked", "succeeded"]);
    expect(made.ran).toEqual([{ n: 2 }]);
  });
});
