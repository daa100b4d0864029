import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { EventType } from "../../../schemas/catalog.ts";
import { catalog } from "../../../schemas/catalog.ts";
import { draft } from "../../../schemas/envelope.ts";
import type { HookWork } from "../hook-work.ts";
import { createThrottle } from "./throttle.ts";
import type { ThrottleRule } from "./throttle-rules.ts";
import { omittableTypes, parseThrottle } from "./throttle-rules.ts";

const signal = (detail: string | null = null, sessionId = "s1", tenantId = "acme"): HookWork => ({
  tenantId,
  subject: "dev",
  runtime: {
    kind: "own",
    adapter_version: "1",
    runtime_version: null,
    permission_mode: null,
    sandbox: null,
  },
  call: { sessionId },
  request: null,
  observations: [
    { draft: draft("agent.lifecycle.observed", { signal: "notice_shown", detail, path: null }), causes: [] },
  ],
  raw: Buffer.from(""),
  dataClass: "internal",
  traceparent: null,
});
const completed = (): HookWork => ({
  ...signal(),
  observations: [
    {
      draft: draft("agent.tool.completed", {
        outcome: "succeeded",
        duration_ms: null,
        output_bytes: null,
        output_preview: null,
        error_preview: null,
        tool_alias: null,
      }),
      causes: [],
    },
  ],
});
const rule = (action: ThrottleRule["action"], more: Partial<ThrottleRule> = {}): ThrottleRule => ({
  id: "noise",
  scope: "agent",
  types: [],
  windowMs: 10_000,
  limit: 2,
  action,
  ...more,
});
const words = (rules: readonly ThrottleRule[], works: readonly HookWork[], nowMs = 5): string[] => {
  const throttle = createThrottle(rules);
  return works.map((work) => throttle.judge(work, nowMs).kind);
};
const times = (count: number, make: (index: number) => HookWork): HookWork[] =>
  Array.from({ length: count }, (_, index) => make(index));

describe("observing events past a limit", () => {
  it("are dropped, each agent for itself, and counted anew in the next window", () => {
    const throttle = createThrottle([rule({ kind: "drop" })]);
    const kinds = (nowMs: number, session = "s1"): string[] =>
      times(4, () => signal(null, session)).map((one) => throttle.judge(one, nowMs).kind);
    expect(kinds(5)).toEqual(["pass", "pass", "omit", "omit"]);
    expect(kinds(6, "s2")).toEqual(["pass", "pass", "omit", "omit"]);
    expect(kinds(10_000)).toEqual(["pass", "pass", "omit", "omit"]);
  });

  it("are sampled: one of so many is kept", () => {
    expect(
      words(
        [rule({ kind: "sample", oneIn: 3 })],
        times(9, () => signal()),
      ),
    ).toEqual(["pass", "pass", "omit", "omit", "pass", "omit", "omit", "pass", "omit"]);
  });

  it("are coalesced: what says something new is kept", () => {
    const said = ["a", "b", "a", "c", "c", "b"].map((detail) => signal(detail));
    expect(words([rule({ kind: "coalesce" })], said)).toEqual([
      "pass",
      "pass",
      "omit",
      "pass",
      "omit",
      "omit",
    ]);
  });

  it("are delayed, also those that are never left out", () => {
    const throttle = createThrottle([rule({ kind: "delay", delayMs: 70 }, { scope: "tenant" })]);
    const kinds = times(4, completed).map((one) => throttle.judge(one, 5));
    expect(kinds.slice(2)).toEqual([
      { kind: "delay", delayMs: 70 },
      { kind: "delay", delayMs: 70 },
    ]);
  });

  it("leaves nothing out that a decision or an audit rests on", () => {
    expect([...omittableTypes].every((type) => catalog[type].class === "lifecycle")).toBe(true);
    for (const type of [
      "agent.subagent.started",
      "agent.session.ended",
      "agent.prompt.submitted",
    ] as EventType[])
      expect(omittableTypes.has(type)).toBe(false);
    expect(words([rule({ kind: "drop" }, { scope: "tenant" })], times(5, completed))).toEqual(
      Array.from({ length: 5 }, () => "pass"),
    );
    const mixed = { ...signal(), observations: [...signal().observations, ...completed().observations] };
    expect(
      words(
        [rule({ kind: "drop" })],
        times(4, () => mixed),
      ),
    ).not.toContain("omit");
  });

  it("are told once for each rule, scope and window, when it is over", () => {
    const throttle = createThrottle([rule({ kind: "drop" })]);
    for (const work of times(7, () => signal())) throttle.judge(work, 5);
    for (const work of times(3, () => signal(null, "s2", "other"))) throttle.judge(work, 7);
    expect(throttle.takeApplied(9_999)).toEqual([]);
    expect(throttle.takeApplied(10_000)).toMatchObject([
      { tenantId: "acme", scopeId: "own/s1/", type: "agent.lifecycle.observed", events: 5 },
      { tenantId: "other", scopeId: "own/s2/", events: 1 },
    ]);
    expect(throttle.takeApplied(20_000, true)).toEqual([]);
  });
});

describe("the file of limits", () => {
  it("that ships is read", async () => {
    const file = new URL("../../../deploy/throttle.yaml", import.meta.url);
    const parsed = parseThrottle("throttle.yaml", await readFile(file, "utf8"));
    expect(parsed.ok && parsed.rules.map(({ action }) => action.kind)).toEqual([
      "delay",
      "coalesce",
      "sample",
      "drop",
    ]);
  });

  it("cannot leave out what is evidence, and tells where it tries", () => {
    const parsed = parseThrottle(
      "t.yaml",
      `rules:
  - { id: a, scope: type, types: [agent.tool.completed], window_seconds: 1, limit: 1, action: drop }
  - { id: b, scope: type, window_seconds: 1, limit: 1, action: delay }
`,
    );
    expect(parsed.ok ? "" : parsed.problems).toMatch(
      /t\.yaml:2: .*may be left out: .*\n?t\.yaml:3: .*delay/s,
    );
  });
});
