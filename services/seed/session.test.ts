import { describe, expect, it } from "vitest";
import type { SeedPlan } from "./session.ts";
import { generateSession, generateSessions } from "./session.ts";

const plan: SeedPlan = {
  seed: 7,
  sessions: 600,
  startMs: Date.UTC(2026, 8, 1),
  days: 90,
  tenantPrefix: "seed",
};
const all = [...generateSessions(plan)];
const events = all.flat();
const countOf = (type: string): number => events.filter((event) => event.type === type).length;

describe("a seeded history", () => {
  it("is the same for the same plan, session by session, and another for another seed", () => {
    expect(generateSession(plan, 41)).toEqual(all[41]);
    expect(generateSession({ ...plan, seed: 8 }, 41)).not.toEqual(all[41]);
  });

  it("gives every event an id of its own, of the time when it was recorded", () => {
    const ids = events.map((event) => event.event_id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const event of events.slice(0, 200)) {
      expect(event.event_id).toMatch(
        /^evt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
      expect(Number.parseInt(event.event_id.slice(4).replaceAll("-", "").slice(0, 12), 16)).toBe(
        event.recorded_at,
      );
    }
  });

  it("has one tenant with nine tenths of the sessions, and a long tail", () => {
    const tenants = new Map<string, number>();
    for (const [first] of all) {
      if (first !== undefined) tenants.set(first.tenant_id, (tenants.get(first.tenant_id) ?? 0) + 1);
    }
    expect((tenants.get("seed-big") ?? 0) / plan.sessions).toBeGreaterThan(0.85);
    expect(tenants.size).toBeGreaterThan(8);
  });

  it("tells whole stories: each decision has its request, each use of an approval its grant", () => {
    const idsOf = (type: string, pick: (one: (typeof events)[number]) => string | null) =>
      new Set(events.filter((one) => one.type === type).map(pick));
    const requested = idsOf("agent.tool.requested", (one) => one.execution.tool_call_id);
    const ruled = events.filter(
      (one) => one.type === "agent.tool.authorized" || one.type === "agent.tool.denied",
    );
    expect(ruled.filter((one) => !requested.has(one.execution.tool_call_id))).toEqual([]);
    const granted = idsOf("agent.approval.granted", (one) => one.approval_id);
    const consumed = idsOf("agent.approval.consumed", (one) => one.approval_id);
    expect([...consumed].filter((id) => !granted.has(id))).toEqual([]);
  });

  it("has some of everything that analysts ask about", () => {
    for (const type of [
      "agent.tool.denied",
      "agent.tool.deferred",
      "agent.approval.refused",
      "agent.approval.expired",
      "agent.capability.spent",
      "agent.effect.receipted",
      "agent.effect.unresolved",
      "agent.subagent.started",
      "agent.model.completed",
    ])
      expect([type, countOf(type) > 0]).toEqual([type, true]);
    expect(events.some((one) => Math.abs(one.occurred_at - one.recorded_at) > 60_000)).toBe(true);
    expect(events.every((one) => one.recorded_at >= plan.startMs)).toBe(true);
  });
});
