import { describe, expect, it } from "vitest";
import type { GateRequest } from "../../schemas/gate.ts";
import { toCounter, toCounterKey } from "./counters.ts";
import type { CountScope } from "./policy/policy.ts";

const request: GateRequest = {
  runtime: "own",
  session_id: "s",
  phase: "before_tool",
  tool: "shell.run",
  input: {},
};
const minute = 60_000;
const rule = (scope: CountScope, windowMs: number | null = minute) => ({ id: "limit.a", scope, windowMs });
const keyOf = (scope: CountScope, asked: Partial<GateRequest> = {}, tenantId = "acme"): string =>
  toCounter("rate", rule(scope), { ...request, ...asked }, tenantId, 0).key;

describe("a counter", () => {
  it("lies in a window of the wall clock, whoever looks at which moment of it", () => {
    const at = (nowMs: number) => toCounter("rate", rule("tenant"), request, "acme", nowMs);
    expect(at(10 * minute).key).toBe(at(11 * minute - 1).key);
    expect(at(11 * minute).key).not.toBe(at(11 * minute - 1).key);
    expect(at(10 * minute).key).toBe("rate|limit.a|tenant|acme|600000");
  });

  it("is found again by a clock that jumps back into its window, and is kept a window longer than it counts", () => {
    const { key, expiresAtMs } = toCounter("rate", rule("tenant"), request, "acme", 10 * minute);
    const later = toCounter("rate", rule("tenant"), request, "acme", 11 * minute);
    expect(toCounter("rate", rule("tenant"), request, "acme", later.expiresAtMs ?? 0).key).not.toBe(key);
    expect(toCounter("rate", rule("tenant"), request, "acme", 10 * minute + 5).key).toBe(key);
    expect(expiresAtMs).toBe(12 * minute);
  });

  it("never ends where it has no window", () => {
    const counter = toCounter("budget", rule("tenant", null), request, "acme", 5);
    expect(counter).toEqual({ key: "budget|limit.a|tenant|acme|all", expiresAtMs: null });
  });

  it.each<[CountScope, Partial<GateRequest>]>([
    ["session", { session_id: "other" }],
    ["session", { runtime: "other" }],
    ["agent", { agent_id: "child" }],
    ["user", { user_id: "u" }],
    ["tool", { tool: "file.read" }],
  ])("of a %s is another one for %o, and for another tenant", (scope, other) => {
    expect(keyOf(scope, other)).not.toBe(keyOf(scope));
    expect(keyOf(scope, {}, "other")).not.toBe(keyOf(scope));
  });

  it("of a session is one for all its agents", () => {
    expect(keyOf("session", { agent_id: "child" })).toBe(keyOf("session"));
  });

  it("takes any id without two of them giving one key, and stays short", () => {
    expect(keyOf("session", { runtime: "a", session_id: 'b","c' })).not.toBe(
      keyOf("session", { runtime: "a" }),
    );
    const long = keyOf("agent", { session_id: "\u0000".repeat(256), agent_id: "|".repeat(256) });
    expect(long.length).toBeLessThan(200);
    expect(toCounterKey("rate", "a", "tenant", "b|c", 1)).not.toBe(
      toCounterKey("rate", "a", "tenant", "b", 1),
    );
  });
});
