import { describe, expect, it } from "vitest";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { eventOf } from "../kit/given.ts";
import { createBreaker } from "./breaker.ts";
import type { Bucket } from "./judge.ts";
import { judgeScope } from "./judge.ts";
import { parseThresholds, thresholdsOf } from "./thresholds.ts";
import type { Threshold } from "./thresholds.ts";
import { sumOf } from "./judge.ts";
import type { Counts, Tally } from "./words.ts";

const base = 1_767_225_600_000;
const none = sumOf([]);
const bucket = (second: number, counts: Partial<Counts>): Bucket => ({
  ...none,
  ...counts,
  startedMs: base + second * 1_000,
});
const threshold = (one: Partial<Threshold>): Threshold => ({
  scope: "correlation",
  measure: "fan_out",
  windowMs: 10_000,
  limit: 10n,
  minCount: 1n,
  resetAfterMs: null,
  ...one,
});
const now = (second: number, resetSecond: number | null = null) => ({
  nowMs: base + second * 1_000,
  resetMs: resetSecond === null ? null : base + resetSecond * 1_000,
});

describe("a scope", () => {
  it("trips past its limit and not at it, over the buckets of one window", () => {
    const limit = [threshold({})];
    expect(judgeScope([bucket(0, { starts: 5n }), bucket(5, { starts: 5n })], limit, now(9))).toBeNull();
    expect(judgeScope([bucket(0, { starts: 6n }), bucket(5, { starts: 5n })], limit, now(9))).toMatchObject({
      measure: "fan_out",
      observed: 11n,
      threshold: 10n,
      windowEndedMs: base + 10_000,
    });
    // Ten seconds are two buckets: what lies further apart is not added up.
    expect(judgeScope([bucket(0, { starts: 6n }), bucket(10, { starts: 5n })], limit, now(14))).toBeNull();
  });

  it("counts an agent once, whose start is told by the call and by itself", () => {
    const both = bucket(0, { starts: 8n, spawns: 9n });
    expect(judgeScope([both], [threshold({})], now(4))).toBeNull();
    expect(judgeScope([both], [threshold({ limit: 8n })], now(4))).toMatchObject({ observed: 9n });
  });

  it("trips on no window that ended a minute ago", () => {
    const old = [bucket(0, { starts: 99n })];
    expect(judgeScope(old, [threshold({})], now(64))).not.toBeNull();
    expect(judgeScope(old, [threshold({})], now(65))).toBeNull();
  });

  it("forgets at a reset what was counted before it", () => {
    const buckets = [bucket(0, { starts: 99n }), bucket(5, { starts: 9n })];
    expect(judgeScope(buckets, [threshold({})], now(9, 3))).toBeNull();
    expect(judgeScope(buckets, [threshold({ limit: 8n })], now(9, 3))).toMatchObject({ observed: 9n });
  });

  it("wants enough to tell a share from", () => {
    const share = [threshold({ measure: "denial_rate", limit: 900n, minCount: 20n })];
    expect(judgeScope([bucket(0, { decisions: 19n, denials: 19n })], share, now(4))).toBeNull();
    expect(judgeScope([bucket(0, { decisions: 20n, denials: 18n })], share, now(4))).toBeNull();
    expect(judgeScope([bucket(0, { decisions: 20n, denials: 19n })], share, now(4))).toMatchObject({
      observed: 950n,
      samples: 20n,
    });
    const failing = [threshold({ measure: "failure_rate", limit: 500n })];
    expect(judgeScope([bucket(0, { results: 3n, failures: 2n })], failing, now(4))).toMatchObject({
      observed: 666n,
    });
  });

  it("takes spending as a rate by the minute", () => {
    const rate = [threshold({ measure: "cost_rate", windowMs: 30_000, limit: 12_000_000n })];
    expect(judgeScope([bucket(0, { cost_micros: 6_000_000n, priced: 30n })], rate, now(4))).toBeNull();
    expect(judgeScope([bucket(0, { cost_micros: 6_200_000n, priced: 31n })], rate, now(4))).toMatchObject({
      observed: 12_400_000n,
    });
  });

  it("takes lag for one while it grows, and not while a backlog is worked off", () => {
    const lag = [threshold({ measure: "lag", limit: 1_000n, minCount: 10n })];
    const waited = (second: number, ms: bigint) => bucket(second, { events: 10n, wait_ms: 10n * ms });
    expect(judgeScope([waited(0, 500n), waited(5, 2_000n)], lag, now(9))).toMatchObject({
      observed: 2_000n,
    });
    expect(judgeScope([waited(0, 40_000n), waited(5, 20_000n)], lag, now(9))).toBeNull();
    // One bucket alone tells no direction.
    expect(judgeScope([waited(0, 40_000n)], lag, now(4))).toBeNull();
  });
});

const denied = (
  reason: string,
  decision: "deny" | "require_approval" = "deny",
): Envelope<"agent.tool.denied"> =>
  eventOf(
    draft(
      "agent.tool.denied",
      { decision_id: "dec_1", effect_class: "write", message: "no" },
      {
        policy: { revision: "p", risk: "low", decision, reason_code: reason, matched_rules: [] },
        agent_id: "child",
        execution: { session_id: "s1" },
      },
    ),
    { recordedAtMs: base + 7_300 },
  );
const breaker = createBreaker({
  thresholds: { usual: [], byTenant: new Map() },
  costOf: (event) => ({ micros: event.redacted_summary.cost_micros ?? 0n, silence: 0 }),
});
const tallyOf = (event: Envelope): Tally | undefined => {
  const changes = breaker.project(event, { topic: event.type, partition: 0, offset: 0n });
  return (changes as readonly { tally: Tally }[])[0]?.tally;
};

describe("what is counted", () => {
  it("belongs to the goal, the agent of the session, the tenant and everything, in a bucket of its recording", () => {
    expect(tallyOf(denied("STATIC_DENY"))).toMatchObject({
      startedMs: base + 5_000,
      counts: { decisions: 1n, denials: 1n, events: 1n },
      scopes: [
        { tenantId: "acme", scope: "correlation", scopeId: "cor_1" },
        { tenantId: "acme", scope: "agent", scopeId: "test/s1/child" },
        { tenantId: "acme", scope: "tenant", scopeId: "acme" },
        { tenantId: "fabric", scope: "all", scopeId: "*" },
      ],
    });
  });

  it("is no denial that follows from a trip or a freeze, and none that waits for a person", () => {
    for (const reason of ["READ_ONLY_BREAKER", "INCIDENT_FROZEN", "TENANT_FROZEN"])
      expect(tallyOf(denied(reason))).toBeUndefined();
    expect(tallyOf(denied("APPROVAL_REQUIRED", "require_approval"))).toMatchObject({
      counts: { decisions: 1n, denials: 0n },
    });
  });

  it("is nothing that a processor made", () => {
    expect(tallyOf({ ...denied("STATIC_DENY"), origin: "processor:other" })).toBeUndefined();
  });
});

describe("the file of thresholds", () => {
  const line = "{ scope: tenant, measure: fan_out, window_seconds: 60, limit: 5, min_count: 1 }";

  it("lets a tenant's own take the place of those with the same scope and measure", () => {
    const parsed = parseThresholds(
      "b.yaml",
      `thresholds:\n  - ${line}\n  - { scope: agent, measure: denial_rate, window_seconds: 60, limit: 900, min_count: 9 }
tenants:\n  acme:\n    - ${line.replace("limit: 5", "limit: 50, reset_after_seconds: 600")}\n`,
    );
    if (!parsed.ok) throw new Error(parsed.problems.join("\n"));
    expect(thresholdsOf(parsed.thresholds, "other").map(({ limit }) => limit)).toEqual([5n, 900n]);
    expect(thresholdsOf(parsed.thresholds, "acme")).toMatchObject([
      { measure: "denial_rate", limit: 900n },
      { measure: "fan_out", limit: 50n, resetAfterMs: 600_000 },
    ]);
  });

  it("tells every problem with file and line", () => {
    const parsed = parseThresholds(
      "b.yaml",
      `thresholds:\n  - ${line}\n  - ${line}\ntenants:\n  acme:\n    - ${line.replace("tenant", "all")}\n`,
    );
    expect(parsed).toEqual({
      ok: false,
      problems: ["b.yaml:3: fan_out of tenant is there twice", "b.yaml:6: `all` is no tenant's"],
    });
    const wrong = parseThresholds("b.yaml", "thresholds:\n  - { scope: tenant, measure: speed }\n");
    expect(wrong.ok ? [] : wrong.problems).toContain(
      'b.yaml:2: thresholds.0.measure: Invalid option: expected one of "fan_out"|"cost_rate"|"failure_rate"|"denial_rate"|"lag"',
    );
    const never = parseThresholds(
      "b.yaml",
      "thresholds:\n  - { scope: tenant, measure: denial_rate, window_seconds: 60, limit: 1000, min_count: 1 }\n",
    );
    expect(never.ok ? [] : never.problems).toEqual([
      "b.yaml:2: thresholds.0.limit: a share is per mille: it never gets above 1000",
    ]);
  });
});
