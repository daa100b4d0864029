import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventOf } from "../../processors/kit/given.ts";
import { defineProcessor } from "../../processors/kit/processor.ts";
import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { createVaultLetterSealer } from "../../services/host/letter-sealer.ts";
import { newUuidV7 } from "../../services/platform/ids.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openMemoryKek, openPayload, openTenantKeys } from "../../services/platform/vault-seal.ts";
import { resumePartition } from "../../services/recovery/gaps.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { ledgerProcessor, modelEvent, openHostRig, stepsWith } from "../harness/host-rig.ts";

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
const untilRead = (offset: bigint, partition = 0, deadlineMs = 15_000) =>
  eventually(
    () => rig.watermarks(),
    (marks) => marks.get(`${type}/${partition}`) === offset,
    { deadlineMs },
  );

/** Deletes the records of partition 0 before `offset`, as retention would. */
const trim = async (offset: string): Promise<void> => {
  // kafkajs knows the leader of a topic only after a question about it.
  await rig.admin.fetchTopicOffsets(rig.topicOf(type));
  await rig.admin.deleteTopicRecords({ topic: rig.topicOf(type), partitions: [{ partition: 0, offset }] });
};

describe("poison", () => {
  // A record on which the processor's code throws: retries run out, the consumer restarts, the same record again, for
  // ever (tulios/kafkajs#1271).
  it("buries the one record whose projection throws and goes on with the rest, without a restart", async () => {
    await rig.createTopics([type]);
    const events = many(10);
    await rig.publish(events);
    const host = rig.start([
      ledgerProcessor({
        project(event) {
          if (event.redacted_summary.output_tokens === 4n)
            throw new Error("amount is not a number: --token=abc123");
          return [{ eventId: event.event_id, n: event.redacted_summary.output_tokens ?? 0n }];
        },
      }),
    ]);
    await untilRead(10n);
    expect(await rig.ledger()).toMatchObject({ rows: 9, events: 9 });
    const [letter, ...others] = await rig.letters();
    expect(others).toEqual([]);
    expect(letter).toMatchObject({
      kind: "dead",
      fault_kind: "poison",
      code: "PROJECTION_FAILED",
      topic: rig.topicOf(type),
      partition: 0,
      kafka_offset: 4n,
      tenant_id: "acme",
      event_id: events[4]?.event_id.slice(4),
    });
    expect(letter?.["detail"]).not.toContain("abc123");
    const [notice] = await rig.outbox();
    expect(notice).toMatchObject({
      type: "fabric.letter.buried",
      tenant_id: "acme",
      causation_id: events[4]?.event_id,
      redacted_summary: { letter_id: letter?.["id"], consumer: "ledger", source_offset: 4n },
    });
    const opened = await openPayload(
      rig.sql,
      openTenantKeys(rig.sql, openMemoryKek("test", Buffer.alloc(32, 7))),
      letter?.["payload_ref"] as string,
    );
    expect(opened.bytes).toEqual(rig.codec.encode(events[4] as never).bytes);
    expect(await host.render()).not.toMatch(/fabric_host_consumer_restarts_total\{[^}]*\} [1-9]/);
  });

  it("halves a batch that the database refuses until the bad record stands alone", async () => {
    await rig.createTopics([type]);
    await rig.sql.query(
      "ALTER TABLE host.ledger ADD CONSTRAINT small CHECK (n <> 37 AND n <> 38 AND n <> 90)",
    );
    await rig.publish(many(100));
    rig.start([ledgerProcessor()]);
    await untilRead(100n);
    expect(await rig.ledger()).toMatchObject({ rows: 97, events: 97 });
    expect((await rig.letters()).map((one) => [one["kafka_offset"], one["code"]])).toEqual([
      [37n, "DATABASE_REJECTED"],
      [38n, "DATABASE_REJECTED"],
      [90n, "DATABASE_REJECTED"],
    ]);
  });

  it("writes one letter and one notice about an event that is published twice, wherever it fails", async () => {
    await rig.createTopics([type]);
    await rig.sql.query("ALTER TABLE host.ledger ADD CONSTRAINT small CHECK (n <> 1)");
    const events = many(4);
    await rig.publish([...events, ...events]);
    rig.start([
      ledgerProcessor({
        project(event) {
          if (event.redacted_summary.output_tokens === 2n) throw new Error("cannot be");
          return [{ eventId: event.event_id, n: event.redacted_summary.output_tokens ?? 0n }];
        },
      }),
    ]);
    await untilRead(8n);
    expect(await rig.ledger()).toMatchObject({ rows: 2, events: 2 });
    expect((await rig.letters()).map((one) => [one["kafka_offset"], one["code"]])).toEqual([
      [1n, "DATABASE_REJECTED"],
      [2n, "PROJECTION_FAILED"],
    ]);
    expect(await rig.outbox()).toHaveLength(2);
    expect((await rig.sql.query("SELECT 1 FROM host.inbox")).rowCount).toBe(4);
  });

  it("sets aside JSON and an empty value as not Avro, takes null as a tombstone, keeps the bytes and goes on", async () => {
    await rig.createTopics([type]);
    const json = Buffer.from('{"a":1}');
    await rig.publishBytes(type, [json, Buffer.alloc(0), null]);
    await rig.publish(many(3), { partition: 0 });
    const host = rig.start([ledgerProcessor()]);
    await untilRead(6n);
    expect(await rig.ledger()).toMatchObject({ rows: 3 });
    const letters = await rig.letters();
    expect(letters.map((one) => [one["kafka_offset"], one["kind"], one["code"], one["tenant_id"]])).toEqual([
      [0n, "quarantine", "NOT_AVRO", "fabric"],
      [1n, "quarantine", "NOT_AVRO", "fabric"],
    ]);
    expect(letters[0]?.["headers"]).toEqual({ note: Buffer.from("kept").toString("base64") });
    const keys = openTenantKeys(rig.sql, openMemoryKek("test", Buffer.alloc(32, 7)));
    expect((await openPayload(rig.sql, keys, letters[0]?.["payload_ref"] as string)).bytes).toEqual(json);
    await eventually(
      () => host.render(),
      (text) => /fabric_host_skipped_total\{[^}]*why="tombstone"\} 1/.test(text),
      { what: "the metric" },
    );
  });

  it("refuses a higher major and an event of another type, and reads the rest", async () => {
    await rig.createTopics([type]);
    const newer = { ...modelEvent(1), schema_version: "2.0" } as never;
    const stray = eventOf(draft("agent.session.ended", { reason: null }), {
      eventId: `evt_${newUuidV7(Date.now())}`,
    });
    await rig.publishBytes(type, [rig.codec.encode(newer).bytes, rig.codec.encode(stray).bytes]);
    await rig.publish(many(1), { partition: 0 });
    rig.start([ledgerProcessor()]);
    await untilRead(3n);
    expect((await rig.letters()).map((one) => one["code"])).toEqual(["SCHEMA_REFUSED", "RECORD_UNDECODABLE"]);
    expect(await rig.ledger()).toMatchObject({ rows: 1 });
  });

  it("needs no second connection to bury the letters of a tenant whose key nobody has opened", async () => {
    await rig.createTopics([type]);
    await rig.sql.query("ALTER TABLE host.ledger ADD CONSTRAINT small CHECK (n <> 1)");
    await rig.publish([modelEvent(1, "first"), modelEvent(2, "second")]);
    await rig.publishBytes(type, [Buffer.from("junk")]);
    const database = openDatabase({
      url: rig.database.roleUrl("fabric_host"),
      applicationName: "host-under-test",
      searchPath: ["host"],
      maxConnections: 1,
      connectTimeoutMs: 1_000,
    });
    const host = rig.start(
      [
        ledgerProcessor({
          project(event) {
            if (event.tenant_id === "second") throw new Error("cannot be");
            return [{ eventId: event.event_id, n: event.redacted_summary.output_tokens ?? 0n }];
          },
        }),
      ],
      {
        database,
        sealer: createVaultLetterSealer(openTenantKeys(database, openMemoryKek("test", Buffer.alloc(32, 7)))),
      },
    );
    await untilRead(3n);
    expect((await rig.letters()).map((one) => one["tenant_id"])).toEqual(["first", "second", "fabric"]);
    expect(rig.lines.filter(({ msg }) => msg === "the partition waits")).toEqual([]);
    await host.stop();
    await database.end();
  });

  it("does not move on when the letter cannot be stored", async () => {
    await rig.createTopics([type]);
    await rig.publishBytes(type, [Buffer.from("junk")]);
    let vaultIsAway = true;
    const host = rig.start([ledgerProcessor()], {
      sealer: {
        open: () => Promise.resolve(),
        seal: () =>
          vaultIsAway
            ? Promise.reject(new Fault("DATABASE_UNAVAILABLE", "planted"))
            : Promise.resolve([{ ref: "vault://fabric/x", digest: "hmac-sha256:00" }]),
      },
    });
    await eventually(() => host.health().get("ledger")?.partitions[0]?.status === "retrying");
    expect((await rig.watermarks()).get(`${type}/0`)).toBe(0n);
    expect((await rig.committed(type)).get(0)).toBe(-1n);
    vaultIsAway = false;
    await untilRead(1n);
    expect(await rig.letters()).toHaveLength(1);
  });

  it("never hands a processor a letter about itself, and says nothing about a letter about a letter", async () => {
    const letters = defineProcessor({
      name: "letters",
      topics: ["fabric.letter.buried"],
      project(event) {
        if (event.redacted_summary.detail === "bad") throw new Error("cannot be");
        return [{ eventId: event.event_id, n: 1n }];
      },
      async apply(tx, changes) {
        await tx.query("INSERT INTO ledger (event_id, n) SELECT * FROM unnest($1::text[], $2::bigint[])", [
          changes.map((one) => one.eventId),
          changes.map((one) => one.n),
        ]);
      },
    });
    const letter = (consumer: string, detail: string) =>
      eventOf(
        draft("fabric.letter.buried", {
          letter_id: newUuidV7(Date.now()),
          kind: "dead",
          fault_kind: "poison",
          code: "PROJECTION_FAILED",
          detail,
          consumer,
          consumer_version: "1",
          attempts: 1,
          source_topic: "t",
          source_partition: 0,
          source_offset: 0n,
          source_event_id: null,
          accountable: "sre",
        }),
        { eventId: `evt_${newUuidV7(Date.now())}` },
      );
    await rig.createTopics(["fabric.letter.buried"]);
    await rig.publish([letter("other", "good"), letter("letters", "good"), letter("other", "bad")]);
    const host = rig.start([letters]);
    await eventually(
      () => rig.watermarks("letters"),
      (marks) => marks.get("fabric.letter.buried/0") === 3n,
    );
    expect(await rig.ledger()).toMatchObject({ rows: 1 });
    expect(await rig.letters()).toHaveLength(1);
    expect(await rig.outbox()).toEqual([]);
    await eventually(
      () => host.render(),
      (text) => /fabric_host_skipped_total\{[^}]*why="own_letter"\} 1/.test(text),
      { what: "the metric" },
    );
  });
});

describe("what may pass", () => {
  it("waits with one partition while its dependency is away, goes on with the others, and buries nothing", async () => {
    await rig.createTopics([type], 2);
    await rig.publish(many(5), { partition: 0 });
    await rig.publish(many(5, 100), { partition: 1 });
    let away = true;
    const host = rig.start([
      ledgerProcessor({
        async apply(tx, changes) {
          const all = changes as { eventId: string; n: bigint }[];
          if (away && all.some(({ n }) => n < 100n)) throw new Fault("DATABASE_UNAVAILABLE", "planted");
          await tx.query("INSERT INTO ledger (event_id, n) SELECT * FROM unnest($1::text[], $2::bigint[])", [
            all.map((one) => one.eventId),
            all.map((one) => one.n),
          ]);
          return [];
        },
      }),
    ]);
    await untilRead(5n, 1);
    await eventually(() =>
      host
        .health()
        .get("ledger")
        ?.partitions.some((one) => one.partition === 0 && one.status === "retrying"),
    );
    away = false;
    await untilRead(5n, 0);
    expect(await rig.ledger()).toMatchObject({ rows: 10, events: 10 });
    expect(await rig.letters()).toEqual([]);
  });

  it("buries a single record that stays transient while its neighbours go through", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(20));
    rig.start([
      ledgerProcessor({
        async apply(tx, changes) {
          const all = changes as { eventId: string; n: bigint }[];
          if (all.some(({ n }) => n === 7n))
            throw new Fault("DATABASE_CONFLICT", "planted: always for this one");
          await tx.query("INSERT INTO ledger (event_id, n) SELECT * FROM unnest($1::text[], $2::bigint[])", [
            all.map((one) => one.eventId),
            all.map((one) => one.n),
          ]);
          return [];
        },
      }),
    ]);
    await untilRead(20n, 0, 45_000);
    expect(await rig.ledger()).toMatchObject({ rows: 19, events: 19 });
    expect(await rig.letters()).toMatchObject([{ kafka_offset: 7n, fault_kind: "transient", attempts: 5 }]);
  });

  it("waits for a schema id that the registry does not know yet", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(3));
    let known = false;
    rig.start([ledgerProcessor()], {
      codec: {
        encode: (event) => rig.codec.encode(event),
        decode: (bytes) =>
          known ? rig.codec.decode(bytes) : Promise.reject(new Fault("SCHEMA_ID_UNKNOWN", "planted")),
      },
    });
    await eventually(() => rig.lines.some(({ msg }) => msg === "the partition waits"));
    known = true;
    await untilRead(3n);
    expect(await rig.letters()).toEqual([]);
  });

  it("counts a schema id that stays unknown for a minute as poison", async () => {
    await rig.createTopics([type]);
    await rig.publishBytes(type, [Buffer.from([0, 127, 255, 255, 0, 0])]);
    await rig.publish(many(1), { partition: 0 });
    let nowMs = Date.now();
    rig.start([ledgerProcessor()], { clock: { nowMs: () => nowMs } });
    await eventually(() => rig.lines.some(({ msg }) => msg === "the partition waits"));
    nowMs += 60_000;
    await untilRead(2n);
    expect(await rig.letters()).toMatchObject([
      { code: "SCHEMA_ID_UNKNOWN", kind: "quarantine", kafka_offset: 0n },
    ]);
  });
});

describe("gaps", () => {
  it("stops one partition whose log begins after the position, tells it once, and lets a person go on", async () => {
    await rig.createTopics([type], 2);
    await rig.publish(many(10), { partition: 0 });
    await rig.publish(many(10, 100), { partition: 1 });
    const first = rig.start([ledgerProcessor()]);
    await untilRead(10n, 0);
    await untilRead(10n, 1);
    await first.stop();
    await rig.publish(many(10, 10), { partition: 0 });
    await trim("15");
    await rig.publish(many(1, 110), { partition: 1 });

    const second = rig.start([ledgerProcessor()]);
    await untilRead(11n, 1);
    await eventually(() => second.health().get("ledger")?.ready === false);
    expect((await rig.watermarks()).get(`${type}/0`)).toBe(10n);
    expect(await rig.outbox()).toMatchObject([
      {
        type: "fabric.gap.found",
        redacted_summary: {
          cause: "retention",
          expected_offset: 10n,
          found_offset: 15n,
          source_partition: 0,
        },
      },
    ]);
    await second.stop();
    const third = rig.start([ledgerProcessor()]);
    await eventually(() => third.health().get("ledger")?.partitions.length === 2);
    expect(await rig.outbox()).toHaveLength(1);

    const chosen = { consumer: "ledger", topic: rig.topicOf(type), partition: 0 };
    const how = { by: "ann", reason: "retention was too short" };
    expect(await resumePartition(rig.recovery(), chosen, { kind: "log_start" }, how)).toMatchObject({
      stopped_offset: 10n,
      resumed_offset: 15n,
    });
    await untilRead(20n, 0);
    expect(await rig.ledger()).toMatchObject({ rows: 26, events: 26 });
  });

  it("stops a partition whose topic was made anew with fewer records", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(10));
    const first = rig.start([ledgerProcessor()]);
    await untilRead(10n);
    await first.stop();
    await rig.admin.deleteTopics({ topics: [rig.topicOf(type)] });
    await eventually(async () => !(await rig.admin.listTopics()).includes(rig.topicOf(type)));
    await eventually(async () => {
      await rig.createTopics([type]);
      return true;
    });
    await rig.publish(many(3, 50), { partition: 0 });
    const second = rig.start([ledgerProcessor()]);
    await eventually(() => second.health().get("ledger")?.partitions[0]?.status === "stopped");
    expect(second.health().get("ledger")?.partitions[0]?.reason).toBe("topic_recreated");
    expect(await rig.ledger()).toMatchObject({ rows: 10 });
  });

  it("notices a jump while it runs: records that were deleted before it could read them", async () => {
    await rig.createTopics([type]);
    await rig.publish(many(5));
    let block = false;
    const host = rig.start([ledgerProcessor()], {
      steps: stepsWith({
        claim: () =>
          block ? Promise.reject(new Fault("DATABASE_UNAVAILABLE", "planted")) : Promise.resolve(),
        project: () => Promise.resolve(),
      }),
    });
    await untilRead(5n);
    block = true;
    await rig.publish(many(10, 5));
    await eventually(() => host.health().get("ledger")?.partitions[0]?.status === "retrying");
    await trim("12");
    block = false;
    await eventually(() => host.health().get("ledger")?.partitions[0]?.status === "stopped", Boolean, {
      deadlineMs: 20_000,
    });
    expect((await rig.watermarks()).get(`${type}/0`)).toBe(5n);
    expect(await rig.outbox()).toMatchObject([
      { type: "fabric.gap.found", redacted_summary: { cause: "retention" } },
    ]);
  });

  it("takes the holes that transactions leave in the log for what they are", async () => {
    await rig.createTopics([type]);
    await rig.publishInTransaction(many(3), "commit");
    await rig.publishInTransaction(many(2, 50), "abort");
    await rig.publish(many(1, 100));
    rig.start([ledgerProcessor()]);
    await untilRead(8n);
    await rig.publishInTransaction(many(2, 200), "commit");
    await untilRead(11n);
    expect(await rig.ledger()).toMatchObject({ rows: 6, events: 6 });
    expect(await rig.outbox()).toEqual([]);
  });
});
