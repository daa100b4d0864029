import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventOf } from "../../processors/kit/given.ts";
import { toCause } from "../../processors/kit/emission.ts";
import { defineProcessor } from "../../processors/kit/processor.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import type { EventType } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { checkProcessors } from "../../services/host/host.ts";
import { checkInboxRetention, pruneInbox } from "../../services/host/inbox-retention.ts";
import { createVaultLetterSealer } from "../../services/host/letter-sealer.ts";
import { createPostgresHostStore } from "../../services/host/postgres-host-store.ts";
import { openMemoryKek, openTenantKeys } from "../../services/platform/vault-seal.ts";
import { endHolding } from "../../services/recovery/emissions.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { ledgerProcessor, modelEvent, openHostRig } from "../harness/host-rig.ts";

let rig: HostRig;
beforeEach(async () => {
  rig = await openHostRig();
});
afterEach(async () => {
  await rig.close();
});

const type = "agent.model.completed" as const;
const many = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => modelEvent(from + index));
const untilRead = (offset: bigint, processor: string) =>
  eventually(
    () => rig.watermarks(processor),
    (marks) => marks.get(`${type}/0`) === offset,
  );

const storeFor = (processor: Pick<Processor, "name" | "version">) =>
  createPostgresHostStore({
    database: rig.sql,
    processor,
    encoder: rig.codec,
    sealer: createVaultLetterSealer(openTenantKeys(rig.sql, openMemoryKek("k", Buffer.alloc(32)))),
  });

/** A person lets go of what was held back; how many events that were. */
const release = async (): Promise<number> =>
  (await endHolding(rig.recovery(), "teller", "released", { by: "ann", reason: "looked at" })).events;

/** Denies every event that it reads, in the transaction of a ledger line. */
const teller = defineProcessor({
  name: "teller",
  topics: [type],
  emits: ["agent.tool.denied"],
  project: (event) => [event],
  async apply(tx, events) {
    await tx.query("INSERT INTO ledger (event_id, n) SELECT *, 1 FROM unnest($1::text[])", [
      events.map(({ event_id }) => event_id),
    ]);
    return events.map((event) => ({
      dedupeKey: event.correlation_id,
      cause: toCause(event),
      draft: draft("agent.tool.denied", { decision_id: "d", effect_class: "none", message: "m" }),
    }));
  },
});

describe("emissions", () => {
  it("are held back while their goal is read-only, and the projection and other goals go on", async () => {
    await rig.sql.query("INSERT INTO access.tenants (tenant_id) VALUES ('acme') ON CONFLICT DO NOTHING");
    await rig.sql.query(
      `INSERT INTO incidents.holds (hold_id, source, mode, tenant_id, scope, scope_id, kind, reason, declared_by)
        VALUES (gen_random_uuid(), 'breaker', 'read_only', 'acme', 'correlation', 'cor_1', 'fan_out', 'x', 'breaker')`,
    );
    await rig.createTopics([type]);
    await rig.publish(many(3));
    rig.start([teller]);
    await untilRead(3n, "teller");
    expect((await rig.outbox()).map((one) => one.correlation_id)).toEqual(["cor_0", "cor_2"]);
    expect(await rig.ledger()).toMatchObject({ rows: 3 });
    await rig.sql.query("UPDATE incidents.holds SET lifted_at = now(), lifted_by = 'ida'");
    expect(await release()).toBe(1);
    const denied = (await rig.outbox()).filter((one) => one.type === "agent.tool.denied");
    expect(denied.map((one) => one.correlation_id)).toEqual(["cor_0", "cor_2", "cor_1"]);
  });

  it("of a chain that goes on for ever are cut, recorded once, and the projection goes on", async () => {
    await rig.createTopics([type]);
    await rig.publish(
      [modelEvent(1), modelEvent(1), modelEvent(2)].map((one) => ({ ...one, hop_count: 12 })),
    );
    await rig.publish([{ ...modelEvent(3), hop_count: 11 }]);
    rig.start([teller]);
    await untilRead(4n, "teller");
    expect(await rig.ledger()).toMatchObject({ rows: 4 });
    const said = await rig.outbox();
    expect(said.map((one) => [one.type, one.correlation_id]).sort()).toEqual([
      ["agent.tool.denied", "cor_3"],
      ["fabric.throttle.applied", "cor_1"],
      ["fabric.throttle.applied", "cor_2"],
    ]);
  });

  // Three teams, three hosts: no start sees the whole circle.
  it("that come back to the processor that began are cut after one round, recorded, whichever hosts they went through", async () => {
    const drafts = {
      "agent.tool.denied": draft("agent.tool.denied", {
        decision_id: "d",
        effect_class: "unknown",
        message: "m",
      }),
      "agent.turn.started": draft("agent.turn.started", { trigger: "prompt" }),
      "agent.turn.completed": draft("agent.turn.completed", {
        outcome: "succeeded",
        error_kind: null,
        final_message_bytes: null,
        continued_by_hook: false,
        background_tasks: 0,
      }),
    };
    const link = (name: string, from: EventType, to: keyof typeof drafts): Processor => ({
      ...teller,
      name,
      topics: [from],
      emits: [to],
      project: (event) => [event],
      apply: (_tx, changes) =>
        Promise.resolve(
          (changes as readonly Envelope[]).map((event) => ({
            dedupeKey: event.event_id,
            cause: toCause(event),
            draft: drafts[to],
          })),
        ),
    });
    const a = link("ring-a", "agent.turn.completed", "agent.tool.denied");
    const b = link("ring-b", "agent.tool.denied", "agent.turn.started");
    const c = link("ring-c", "agent.turn.started", "agent.turn.completed");
    await rig.createTopics(["agent.tool.denied", "agent.turn.started", "agent.turn.completed"]);
    await rig.publish([eventOf(drafts["agent.turn.completed"], { correlationId: "cor_ring" })]);
    for (const one of [a, b, c]) rig.start([one]);
    const sent = new Set<string>();
    // The relay is not part of this rig: what the outbox holds goes on by hand.
    const passOn = async (): Promise<readonly Envelope[]> => {
      const all = await rig.outbox();
      const fresh = all.filter(
        ({ event_id: id, type: of }) => !sent.has(id) && of !== "fabric.throttle.applied",
      );
      for (const { event_id: id } of fresh) sent.add(id);
      if (fresh.length > 0) await rig.publish(fresh);
      return all;
    };
    const said = await eventually(
      passOn,
      (all) => all.some((one) => one.type === "fabric.throttle.applied"),
      {
        what: "the cut of the circle",
        deadlineMs: 30_000,
      },
    );
    expect(said.map((one) => [one.type, one.origin, one.hop_count])).toEqual([
      ["agent.tool.denied", "processor:ring-a", 1],
      ["agent.turn.started", "processor:ring-b", 2],
      ["agent.turn.completed", "processor:ring-c", 3],
      ["fabric.throttle.applied", "processor:ring-a", 4],
    ]);
    expect(said.at(-1)?.redacted_summary).toMatchObject({ rule: "loop.causation", action: "cut" });
  });

  it("that only tell are not held back", async () => {
    await rig.sql.query(
      `INSERT INTO incidents.holds (hold_id, source, mode, tenant_id, scope, scope_id, kind, reason, declared_by)
        VALUES (gen_random_uuid(), 'incident', 'frozen', '*', 'all', '*', 'leak', 'x', 'ida')`,
    );
    await rig.createTopics([type]);
    await rig.publish(many(1));
    const alarm = defineProcessor({
      name: "alarm",
      topics: [type],
      emits: ["fabric.cost.anomalous"],
      project: (event) => [event],
      apply: (_tx, events) =>
        Promise.resolve(
          events.map((event) => ({
            dedupeKey: event.event_id,
            cause: toCause(event),
            draft: draft("fabric.cost.anomalous", {
              scope: "tenant",
              scope_id: "acme",
              window_started_at: 0,
              window_ms: 1n,
              observed_micros: 2n,
              expected_micros: 1n,
            }),
          })),
        ),
    });
    rig.start([alarm]);
    await untilRead(1n, "alarm");
    expect((await rig.outbox()).map((one) => one.type)).toEqual(["fabric.cost.anomalous"]);
  });

  it("are events of the same transaction, with a derived id, their cause and one hop more", async () => {
    await rig.createTopics([type]);
    const [event] = many(1);
    await rig.publish([event as never]);
    rig.start([teller]);
    await untilRead(1n, "teller");
    const [emitted] = await rig.outbox();
    expect(emitted).toMatchObject({
      type: "agent.tool.denied",
      tenant_id: "acme",
      causation_id: event?.event_id,
      correlation_id: event?.correlation_id,
      origin: "processor:teller",
      hop_count: 1,
    });
    expect(emitted?.event_id).toMatch(/^evt_[0-9a-f]{8}-[0-9a-f]{4}-8/);
    // A second run over the same event, in another database even, would publish the same id.
    await rig.sql.query("DELETE FROM host.inbox");
    await rig.sql.query("DELETE FROM outbox.events");
    await rig.publish([event as never]);
    await untilRead(2n, "teller");
    expect((await rig.outbox())[0]?.event_id).toBe(emitted?.event_id);
  });

  it("of a type that is not declared bury the event that caused them", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(3));
    const stray: Processor = { ...teller, name: "stray", emits: [] };
    rig.start([stray]);
    await untilRead(3n, "stray");
    expect((await rig.letters()).map((one) => one["code"])).toEqual(Array(3).fill("PROJECTION_FAILED"));
    expect((await rig.outbox()).every((one) => one.type === "fabric.letter.buried")).toBe(true);
    expect(await rig.ledger()).toMatchObject({ rows: 0 });
  });

  it("past the limit are held back with one alarm, the projection goes on, and a person releases them", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(10));
    rig.start([teller], { fanOutLimit: { maxEmissions: 15, windowMs: 3_600_000 } });
    await untilRead(10n, "teller");
    expect(await rig.outbox()).toHaveLength(10);
    await rig.publish(many(10, 10));
    await untilRead(20n, "teller");
    await rig.publish(many(10, 20));
    await untilRead(30n, "teller");
    expect(await rig.ledger()).toMatchObject({ rows: 30 });
    expect(await rig.outbox()).toHaveLength(10);
    expect(rig.lines.filter(({ msg }) => /held back/.test(msg))).toHaveLength(1);
    expect(await release()).toBe(20);
    const said = await rig.outbox();
    expect(said).toHaveLength(31);
    expect(said.at(-1)).toMatchObject({
      type: "fabric.emission.released",
      actor: { user_id: "ann" },
      redacted_summary: { consumer: "teller", events: 20, released_by: "ann", reason: "looked at" },
    });
    expect((await rig.sql.query("SELECT 1 FROM host.emission_guards")).rowCount).toBe(0);
  });

  const lockWaits = async () =>
    (
      await rig.sql.query(
        `SELECT 1 FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
          WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`,
      )
    ).rowCount > 0;

  it("are not held back by a batch that read the guard before a person released them", async () => {
    await rig.sql.query("INSERT INTO host.emission_guards (processor, reason) VALUES ('teller', 'r')");
    let released: Promise<number> = Promise.resolve(-1);
    await storeFor(teller).transaction(async (tx) => {
      expect(await tx.isHeld()).toBe(true);
      let done = false;
      released = release().finally(() => (done = true));
      await eventually(async () => done || (await lockWaits()));
      await tx.hold(many(1));
    });
    expect(await released).toBe(1);
    expect(await rig.outbox()).toHaveLength(2);
    expect((await rig.sql.query("SELECT 1 FROM host.held_emissions")).rowCount).toBe(0);
  });

  it("go out when a release that was under way commits before the batch reads the guard", async () => {
    await rig.sql.query("INSERT INTO host.emission_guards (processor, reason) VALUES ('teller', 'r')");
    let held: Promise<boolean> = Promise.resolve(true);
    await rig.sql.transaction(async (tx) => {
      await tx.query("SELECT host.take_held_emissions('teller')");
      held = storeFor(teller).transaction((batch) => batch.isHeld());
      await eventually(lockWaits);
    });
    expect(await held).toBe(false);
  });

  it("in a circle are refused at the start, and so are two processors of one name", () => {
    const echo: Processor = { ...teller, name: "echo", topics: ["agent.tool.denied"], emits: [type] };
    expect(() => checkProcessors([teller, echo])).toThrow(/circle: agent\.model\.completed → teller/);
    expect(() => checkProcessors([teller, teller])).toThrow(/two processors/);
    expect(() => checkProcessors([teller, ledgerProcessor()])).not.toThrow();
  });
});

describe("position and inbox", () => {
  const storeOf = () => storeFor({ name: "loud", version: "1" });
  const at = { topic: "t", partition: 0, earliest: 5n, topicId: null };

  it("lets only the newest owner of a partition move it, and only from where it stands", async () => {
    const store = storeOf();
    const [former] = await store.takePositions("a", [at]);
    const [owner] = await store.takePositions("b", [at]);
    if (former === undefined || owner === undefined) throw new Error("no position");
    expect(former).toMatchObject({ nextOffset: 5n, epoch: 1n });
    expect(owner).toMatchObject({ nextOffset: 5n, epoch: 2n });
    const move = (position: typeof former, to: bigint) =>
      store.transaction((tx) => tx.moveWatermark(position, to));
    expect(await move(former, 9n)).toBe(false);
    expect(await move(owner, 9n)).toBe(true);
    expect(await move(owner, 12n)).toBe(false);
    expect(await move({ ...owner, nextOffset: 9n }, 12n)).toBe(true);
  });

  // Check-then-insert lets both run (Particular/NServiceBus#4086).
  it("gives an event to one of two that claim it in the same moment", async () => {
    const store = storeOf();
    const id = modelEvent(1).event_id.slice(4);
    let calls = 0;
    const handle = () =>
      store.transaction(async (tx) => {
        // Not `calls += await …`: that reads the count before the wait.
        const fresh = await tx.claimEvents([id, id]);
        calls += fresh.length;
      });
    await Promise.all([handle(), handle(), handle(), handle()]);
    expect(calls).toBe(1);
  });

  it("gives only the new ones, each once, of a list in which some were claimed before, and claims those", async () => {
    const store = storeOf();
    const [one, two, three] = many(3).map(({ event_id }) => event_id.slice(4)) as [string, string, string];
    const claim = (ids: readonly string[]) => store.transaction((tx) => tx.claimEvents(ids));
    expect(await claim([two, one])).toEqual([two, one]);
    expect(await claim([three, two, three, one])).toEqual([three]);
    expect(await claim([three, two, one])).toEqual([]);
    expect((await rig.sql.query("SELECT 1 FROM host.inbox")).rowCount).toBe(3);
  });

  it("leaves an event to the next one when the first claim is undone", async () => {
    const store = storeOf();
    const id = modelEvent(1).event_id.slice(4);
    await expect(
      store.transaction(async (tx) => {
        await tx.claimEvents([id]);
        throw new Error("undone");
      }),
    ).rejects.toThrow("undone");
    expect(await store.transaction((tx) => tx.claimEvents([id]))).toEqual([id]);
  });

  it("prunes old inbox rows only, by the clock that wrote them, and refuses a retention that would forget a night", async () => {
    await rig.sql.query(
      `INSERT INTO host.inbox SELECT gen_random_uuid(), 'ledger', now() - make_interval(days => d)
        FROM generate_series(0, 9) AS d, generate_series(1, 700)`,
    );
    const dayMs = 86_400_000;
    expect(await pruneInbox(rig.sql, 6.5 * dayMs)).toBe(3 * 700);
    expect((await rig.sql.query("SELECT 1 FROM host.inbox")).rowCount).toBe(7 * 700);
    expect(() => checkInboxRetention(3_600_000)).toThrow(/at least/);
    expect(() => checkInboxRetention(7 * dayMs)).not.toThrow();
  });
});
