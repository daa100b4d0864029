import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { eventually } from "../harness/eventually.ts";
import type { Storm } from "../harness/storm-rig.ts";
import { openStorm, readRequest, spawnRequest } from "../harness/storm-rig.ts";
import { projectDir } from "../harness/stack.ts";

const spawnLimit = 20;
const fanOutLimit = 30;

let database: TestDatabase;
let storm: Storm;
beforeAll(async () => {
  database = await createTestDatabase();
  storm = await openStorm({
    brokers: inject("stack").kafkaBrokers,
    databaseUrl: database.url,
    roleUrl: (role) => database.roleUrl(role),
    projectDir,
    spawnLimit,
    thresholds: [
      {
        scope: "correlation",
        measure: "fan_out",
        windowMs: 300_000,
        limit: BigInt(fanOutLimit),
        minCount: 1n,
        resetAfterMs: null,
      },
      {
        scope: "agent",
        measure: "denial_rate",
        windowMs: 300_000,
        limit: 500n,
        minCount: 30n,
        resetAfterMs: null,
      },
    ],
  });
});
afterAll(async () => {
  await storm.close();
  await database.drop();
});

interface Trip {
  readonly id: string;
  readonly measure: string;
  readonly scope: string;
  readonly scope_id: string;
  readonly evidence: { readonly observed: number; readonly threshold: number };
}
const openTrips = async (): Promise<readonly Trip[]> =>
  ((await storm.ask("GET", "/v1/breaker", "incident")).json as { trips: Trip[] }).trips;
const tripOf = (scopeId: string): Promise<Trip> =>
  eventually(
    async () => (await openTrips()).find((one) => one.scope_id === scopeId),
    (one) => one !== undefined,
    { deadlineMs: 30_000, what: "a trip" },
  ) as Promise<Trip>;
const reasonsOf = (answers: readonly GateAnswer[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { reason_code } of answers) counts[reason_code] = (counts[reason_code] ?? 0) + 1;
  return counts;
};
const itemsOf = async (scopeId: string) =>
  (
    await storm.sql.query<{ state: string; occurrences: bigint; closed_by: string | null }>(
      "SELECT state, occurrences, closed_by FROM takeover.items WHERE cause = 'breaker' AND cause_key LIKE '%' || $1",
      [scopeId],
    )
  ).rows;

describe("a storm", () => {
  it("of one session is stopped by the gate's own counter, at the limit itself, at two gates at once", async () => {
    const session = `s-${randomUUID().slice(0, 8)}`;
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, call) => storm.decide(spawnRequest(session), call)),
    );
    const counts = reasonsOf(answers);
    expect(counts["ALLOWED"]).toBe(spawnLimit);
    // Behind the counter the breaker sees an agent that is refused all the time.
    const agent = `own/${session}/`;
    const trip = await tripOf(agent);
    expect(trip).toMatchObject({ scope: "agent", measure: "denial_rate", evidence: { threshold: 500 } });
    const after = await storm.decide(spawnRequest(session));
    expect(after.reason_code).toBe("READ_ONLY_BREAKER");
    expect((await storm.decide(readRequest(session))).decision).toBe("allow");
    // One alarm, however long it goes on, and one item for a person.
    await Promise.all(Array.from({ length: 40 }, (_, call) => storm.decide(spawnRequest(session), call)));
    await eventually(
      () => itemsOf(agent),
      (items) => items.length === 1,
      { deadlineMs: 30_000, what: "an item of the queue" },
    );
    expect(await itemsOf(agent)).toMatchObject([{ state: "open", occurrences: 1n }]);
    expect((await openTrips()).filter(({ scope_id }) => scope_id === agent)).toHaveLength(1);
  });

  it("of a tree of agents, where each starts three, is seen by the breaker alone, and all of it is read-only", async () => {
    const root = `root-${randomUUID().slice(0, 8)}`;
    const first = await storm.decide(spawnRequest(root));
    const { correlation_id: goal } = first;
    const allowed: GateAnswer[] = [first];
    const refused: GateAnswer[] = [];
    let generation: string[] = [root];
    // Branching 3, as deep as it gets: each session is far below the gate's own limit.
    for (let depth = 1; depth <= 9 && refused.length === 0; depth += 1) {
      const children: string[] = [];
      for (const parent of generation) {
        for (let child = 0; child < 3 && refused.length === 0; child += 1) {
          const session = `${parent}.${String(child)}`;
          const answer = await storm.decide(
            spawnRequest(session, { parent_session_id: parent }),
            child + depth,
          );
          if (answer.decision === "allow") allowed.push(answer);
          else refused.push(answer);
          children.push(session);
        }
      }
      generation = children;
    }
    expect(refused).toMatchObject([{ reason_code: "READ_ONLY_BREAKER", decision: "deny" }]);
    expect(allowed.length).toBeGreaterThan(fanOutLimit);
    const trip = await tripOf(goal);
    expect(trip).toMatchObject({ scope: "correlation", measure: "fan_out" });
    expect(trip.evidence.observed).toBeGreaterThan(fanOutLimit);
    // Every agent of the goal, and rights that are out; nobody else's, and no reading.
    expect((await storm.decide(spawnRequest(root))).reason_code).toBe("READ_ONLY_BREAKER");
    const last = allowed.at(-1);
    const use = {
      capability_id: last?.capability?.id,
      plan_digest: last?.plan_digest,
      idempotency_key: "late",
    };
    const spent = await storm.ask("POST", "/v1/capabilities/spend", "resource", use, 1);
    expect([spent.status, spent.json]).toMatchObject([409, { differs: "read_only" }]);
    expect((await storm.decide(readRequest(root))).decision).toBe("allow");
    expect((await storm.decide(spawnRequest(`other-${root}`))).decision).toBe("allow");
    // Spawns are events although they were allowed.
    const seen = await eventually(
      async () =>
        (
          await storm.sql.query<{ spawns: bigint }>(
            "SELECT sum(spawns)::bigint AS spawns FROM breaker.buckets WHERE scope = 'correlation' AND scope_id = $1",
            [goal],
          )
        ).rows[0]?.spawns,
      (spawns) => spawns === BigInt(allowed.length),
      { deadlineMs: 30_000, what: "every allowed spawn in the breaker's counts" },
    );
    expect(seen).toBe(BigInt(allowed.length));

    const reset = await storm.ask("POST", `/v1/breaker/${trip.id}/reset`, "incident", { reason: "looked" });
    expect(reset.status).toBe(200);
    expect((await storm.decide(spawnRequest(root), 1)).decision).toBe("allow");
    // What was counted before the reset counts no more, and the item of the queue closes by itself.
    await eventually(
      () => itemsOf(goal),
      (items) => items[0]?.closed_by === "fabric.breaker.reset",
      { deadlineMs: 30_000, what: "a closed item" },
    );
    expect((await openTrips()).filter(({ scope_id }) => scope_id === goal)).toEqual([]);
  });
});
