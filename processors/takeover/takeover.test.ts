import { describe, expect, it } from "vitest";
import type { Envelope, EnvelopeContext } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { eventOf, given } from "../kit/given.ts";
import { findCycle } from "../kit/graph.ts";
import { slaMs } from "./causes.ts";
import { takeover } from "./takeover.ts";

const subject = {
  tool: "shell.run",
  action: "run",
  resource_ref: "host:db1",
  data_class: "internal",
} as const;
const ruled = (reason_code: string) => ({
  revision: "policy@2026-11-30.1",
  risk: "high" as const,
  decision: "deny" as const,
  reason_code,
  matched_rules: ["needs-state"],
});
const deferred = (plan: string, context: Partial<EnvelopeContext> = {}) =>
  eventOf(
    draft(
      "agent.tool.deferred",
      {
        decision_id: "dec_1",
        effect_class: "write",
        message: "wait",
        waits_for: ["repo.state", "ci.status"],
        deadline_at: 1,
      },
      { subject, plan_digest: plan, execution: { session_id: "s1", tool_call_id: "c1" } },
    ),
    context,
  );
const denied = (reason: string, plan = "sha256:a") =>
  eventOf(
    draft(
      "agent.tool.denied",
      { decision_id: "dec_1", effect_class: "write", message: "no" },
      { subject, policy: ruled(reason), plan_digest: plan },
    ),
  );
const letter = (code: string, consumer = "cost") =>
  eventOf(
    draft("fabric.letter.buried", {
      letter_id: "l",
      kind: "dead",
      fault_kind: "poison",
      code,
      detail: "d",
      consumer,
      consumer_version: "1",
      attempts: 1,
      source_topic: "agent.model.completed",
      source_partition: 0,
      source_offset: 1n,
      source_event_id: null,
      accountable: "platform",
    }),
  );

interface Judged {
  readonly kind: string;
  readonly row: Readonly<Record<string, unknown>>;
}
const judged = async (...events: Envelope<EventType>[]): Promise<readonly Judged["row"][]> => {
  const { changes } = await given(takeover).when(...events);
  return (changes as readonly Judged[]).map(({ row }) => row);
};

describe("takeover", () => {
  it("never reads what it says", () => {
    expect(findCycle([takeover])).toBeNull();
    expect(takeover.topics).not.toContain("fabric.takeover.opened");
  });

  it("takes a second defer of the same plan for the same work, and another plan for other work", async () => {
    const [one, again, other] = await judged(
      deferred("sha256:a"),
      deferred("sha256:a", { correlationId: "cor_2" }),
      deferred("sha256:b"),
    );
    expect(one).toMatchObject({
      cause: "deferred",
      role: "opens",
      title: "shell.run on host:db1 waits for repo.state, ci.status",
      due_after_ms: slaMs.deferred,
      session_id: "s1",
      decision_id: "dec_1",
    });
    expect(again?.["cause_key"]).toBe(one?.["cause_key"]);
    expect(other?.["cause_key"]).not.toBe(one?.["cause_key"]);
  });

  it("counts a defer whose facts never came to the item of its plan", async () => {
    const [wait, late] = await judged(deferred("sha256:a"), denied("DEFER_EXPIRED"));
    expect([late?.["cause"], late?.["cause_key"]]).toEqual(["deferred", wait?.["cause_key"]]);
    expect(late?.["matched_rules"]).toEqual(["needs-state"]);
  });

  it("leaves what a policy refuses to the policy", async () => {
    expect(await judged(denied("STATIC_DENY"), denied("APPROVAL_REFUSED"))).toEqual([]);
    expect(await judged(denied("GATE_TIMEOUT"))).toMatchObject([{ cause: "gate_timeout" }]);
  });

  it("makes one item of all inputs that fail in the same way", async () => {
    const keys = (await judged(letter("NOT_AVRO"), letter("NOT_AVRO"), letter("NOT_AVRO", "eval"))).map(
      (row) => row["cause_key"],
    );
    expect(new Set(keys).size).toBe(2);
  });

  it("settles an unresolved effect when it is known what became of it, and not before", async () => {
    const effect = { effect_id: "eff_1", subject };
    const unresolved = eventOf(
      draft("agent.effect.unresolved", { effect_class: "write", cause: "timeout" }, effect),
    );
    const found = (outcome: "succeeded" | "unknown") =>
      eventOf(
        draft(
          "agent.effect.reconciled",
          { effect_class: "write", outcome, reconciled_by: "reconciler" },
          effect,
        ),
      );
    const rows = await judged(unresolved, found("unknown"), found("succeeded"));
    expect(rows.map((row) => [row["role"], row["cause_key"]])).toEqual([
      ["opens", "eff_1"],
      ["closes", "eff_1"],
    ]);
  });

  it("settles an approval that ran out when the same plan passed by another one", async () => {
    const plan = { plan_digest: "sha256:a", subject };
    const rows = await judged(
      eventOf(
        draft(
          "agent.approval.expired",
          { decision_id: "dec_1", expired_at: 1 },
          { ...plan, approval_id: "apr_1" },
        ),
      ),
      eventOf(draft("agent.approval.consumed", { decision_id: "dec_2" }, { ...plan, approval_id: "apr_2" })),
    );
    expect(rows.map((row) => [row["role"], row["cause"], row["cause_key"]])).toEqual([
      ["opens", "approval_expired", "sha256:a"],
      ["closes", "approval_expired", "sha256:a"],
    ]);
  });

  it("settles a breaker by its reset, of the same scope alone", async () => {
    const rows = await judged(
      eventOf(
        draft("fabric.breaker.tripped", {
          scope: "agent",
          scope_id: "a1",
          measure: "cost_rate",
          observed: 9n,
          threshold: 5n,
          window_ms: 60_000n,
          trip_id: null,
          window_ended_at: null,
          samples: null,
          resets_at: null,
        }),
      ),
      eventOf(
        draft("fabric.breaker.reset", {
          scope: "agent",
          scope_id: "a1",
          reset_by: "ann",
          cause: "ok",
          trip_id: null,
        }),
      ),
      eventOf(
        draft("fabric.breaker.reset", {
          scope: "agent",
          scope_id: "a2",
          reset_by: "ann",
          cause: "ok",
          trip_id: null,
        }),
      ),
    );
    expect(rows.map((row) => [row["role"], row["cause_key"]])).toEqual([
      ["opens", "agent|a1"],
      ["closes", "agent|a1"],
      ["closes", "agent|a2"],
    ]);
  });

  it("wants a person for a hard limit and for a payload that was answered with no, and for no others", async () => {
    const budget = (limit_kind: "soft" | "hard" | "unknown") =>
      eventOf(
        draft("fabric.budget.crossed", {
          budget_id: "b",
          scope: "tenant",
          scope_id: "acme",
          limit_kind,
          limit_micros: 1n,
          spent_micros: 2n,
          period: "2026-11",
        }),
      );
    const odd = (gating: boolean) =>
      eventOf(
        draft("fabric.adapter.unrecognized", {
          problem: "unknown_event",
          field: null,
          event_name: "Quux",
          body_bytes: 3,
          gating,
        }),
      );
    expect((await judged(budget("soft"), budget("hard"), budget("unknown"))).length).toBe(2);
    expect(await judged(odd(false), odd(true))).toMatchObject([{ cause: "adapter_unrecognized" }]);
  });

  it("keeps text that Postgres would refuse, cut to what its index takes", async () => {
    const [row] = await judged(deferred(`sha256:${"\u0000😀".repeat(400)}`));
    const key = String(row?.["cause_key"]);
    expect(key).not.toContain("\u0000");
    expect(Buffer.byteLength(key)).toBeLessThan(700);
    expect(key).not.toMatch(/\p{Surrogate}/u);
    expect(JSON.stringify(row)).not.toContain("\\u0000");
  });

  it("keeps two long keys apart that begin alike", async () => {
    const rows = await judged(deferred("x".repeat(400) + "1"), deferred("x".repeat(400) + "2"));
    expect(rows[0]?.["cause_key"]).not.toBe(rows[1]?.["cause_key"]);
  });

  it("lists the deeds of people by their item", async () => {
    const rows = await judged(
      eventOf(
        draft("fabric.takeover.claimed", {
          item_id: "tko_1",
          claimed_by: "ann",
          lease_ends_at: 1_767_225_600_000,
        }),
      ),
      eventOf(
        draft("fabric.takeover.resolved", {
          item_id: "tko_1",
          resolved_by: "ann",
          outcome: "redrive_proposed",
          note: null,
          proposal: "redrive cost",
        }),
      ),
    );
    expect(rows).toMatchObject([
      { kind: "claimed", assigned_to: "ann", lease_ends_at: "2026-01-01T00:00:00.000Z" },
      { kind: "resolved", person: "ann", outcome: "redrive_proposed", proposal: "redrive cost" },
    ]);
  });

  it("asks nothing of the database for a batch in which nobody is needed", async () => {
    expect((await given(takeover).when(denied("STATIC_DENY"))).statements).toEqual([]);
  });
});
