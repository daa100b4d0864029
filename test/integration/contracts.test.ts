import { randomBytes } from "node:crypto";
import { Kafka, logLevel } from "kafkajs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { AvroRecord } from "../../schemas/avro-json.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { catalog } from "../../schemas/catalog.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { listSchemas } from "../../services/contracts/list.ts";
import type { RegisterOptions } from "../../services/contracts/register.ts";
import { registerSchemas, renderRegister } from "../../services/contracts/register.ts";
import { applyTopics, planTopics, renderTopics } from "../../services/contracts/topics.ts";
import { loadSchemaIds, reportReader } from "../../services/platform/contract-tables.ts";
import { createKafkaAdmin } from "../../services/platform/kafka-admin.ts";
import { createLog } from "../../services/platform/log.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openRegistry } from "../../services/platform/registry.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { eventually } from "../harness/eventually.ts";

const { kafkaBrokers, registryUrl } = inject("stack");
const topicPrefix = `test-${process.pid}-${randomBytes(4).toString("hex")}.`;
const log = createLog({ service: "test", level: "silent" });
const types = ["agent.turn.started", "agent.session.ended"] as const satisfies readonly EventType[];

describe("registration", () => {
  const registry = openRegistry({ url: registryUrl });
  let testDatabase: TestDatabase;
  let database: Database;
  let host: Database;

  beforeAll(async () => {
    testDatabase = await createTestDatabase();
    database = openDatabase({
      url: testDatabase.roleUrl("fabric_contracts"),
      applicationName: "test-contracts",
    });
    host = openDatabase({ url: testDatabase.roleUrl("fabric_host"), applicationName: "test-host" });
  });
  afterAll(async () => {
    for (const type of types) {
      const subject = `${topicPrefix}${type}-value`;
      await fetch(`${registryUrl}/subjects/${subject}`, { method: "DELETE" });
      await fetch(`${registryUrl}/subjects/${subject}?permanent=true`, { method: "DELETE" });
    }
    registry.close();
    await database.end();
    await host.end();
    await testDatabase.drop();
  });
  const options = (): RegisterOptions => ({ registry, database, topicPrefix, types });

  it("registers under the topic's subject, writes the ids down for producers, and is safe to repeat", async () => {
    const first = await registerSchemas(options());
    expect(first.registrations.map((one) => [one.type, one.subject, one.state])).toEqual(
      types.map((type) => [type, `${topicPrefix}${type}-value`, "new"]),
    );
    for (const one of first.registrations)
      expect(await registry.getCompatibility(one.subject)).toBe("FULL_TRANSITIVE");
    const second = await registerSchemas(options());
    expect(second.registrations.map((one) => [one.schemaId, one.state])).toEqual(
      first.registrations.map((one) => [one.schemaId, "known"]),
    );
    expect(await loadSchemaIds(host)).toEqual(
      new Map(first.registrations.map((one) => [one.type, one.schemaId])),
    );
    const listed = (await listSchemas(database)).find((one) => one.type === types[0]);
    expect(listed?.schemaId).toBe(first.registrations[0]?.schemaId);
  });

  it("gives a producer no id for a schema that is not its own", async () => {
    await registerSchemas(options());
    await database.query("UPDATE contracts.schema_ids SET fingerprint = $1 WHERE event_type = $2", [
      `sha256:${"0".repeat(64)}`,
      types[1],
    ]);
    expect([...(await loadSchemaIds(host)).keys()]).toEqual([types[0]]);
    await expect(registerSchemas(options())).rejects.toMatchObject({ code: "SCHEMA_INCOMPATIBLE" });
  });

  it("says which running consumers would refuse a new schema, and why", async () => {
    await reportReader(host, { consumer: "audit", consumerVersion: "1.0.0", types: [types[0]] });
    await reportReader(host, { consumer: "cost", consumerVersion: "1.0.0", types: [types[1]] });
    const next = structuredClone(eventSchema(types[0]));
    (next.fields.at(-1)?.type as AvroRecord).fields.push({
      name: "on_behalf_of",
      type: ["null", "string"],
      default: null,
      must_understand: true,
    });
    const at = (version: string): RegisterOptions => ({
      ...options(),
      types: [types[0]],
      schemaOf: () => ({ schema: next, version }),
    });
    const minor = await registerSchemas(at("1.1"));
    expect(minor.registrations[0]?.refusedBy).toEqual([
      {
        consumer: "audit",
        consumerVersion: "1.0.0",
        reason: "it does not understand redacted_summary.on_behalf_of",
      },
    ]);
    expect(renderRegister(minor)).toContain("upgrade it before its producer");
    const major = await registerSchemas(at("2.0"));
    expect(major.registrations[0]?.refusedBy[0]?.reason).toBe("it understands major 1");
    await reportReader(host, { consumer: "audit", consumerVersion: "1.0.1", types: [types[1]] });
    expect((await registerSchemas(at("2.0"))).registrations[0]?.refusedBy).toEqual([]);
  });
});

describe("topics", () => {
  const endpoint = { brokers: kafkaBrokers, clientId: "test-topics" };
  const admin = createKafkaAdmin({ endpoint, log });
  const byHand = new Kafka({ ...endpoint, brokers: [...kafkaBrokers], logLevel: logLevel.NOTHING }).admin();
  const topics = types.map((type) => topicPrefix + type);
  const stranger = `${topicPrefix}agent.forgotten.requested`;
  const options = { topicPrefix, replication: 1, types };

  beforeAll(() => byHand.connect());
  afterAll(async () => {
    const present = await byHand.listTopics();
    await byHand.deleteTopics({ topics: [...topics, stranger].filter((topic) => present.includes(topic)) });
    await byHand.disconnect();
    await admin.close();
  });
  const planWhen = (settled: (plan: Awaited<ReturnType<typeof planTopics>>) => boolean) =>
    eventually(() => planTopics(admin, options), settled, { what: "the plan" });

  it("plans, applies, and then has nothing left to do", async () => {
    const plan = await planTopics(admin, options);
    expect(plan.changes.map((change) => [change.kind, change.topic])).toEqual(
      topics.map((topic) => ["create", topic]),
    );
    expect(plan.drift).toEqual([]);
    await applyTopics(admin, plan);
    const after = await planWhen((one) => one.changes.length === 0);
    expect(renderTopics(after)).toBe("2 topics are as the catalogue says\n");
    const [state] = await admin.topics((topic) => topic === topics[0]);
    expect(state).toMatchObject({
      partitions: catalog[types[0]].partitions,
      overrides: { "retention.ms": String(catalog[types[0]].retentionMs), "cleanup.policy": "delete" },
    });
    await applyTopics(admin, plan);
  });

  it("finds a retention that somebody changed by hand, mends it, and keeps other settings", async () => {
    await byHand.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: 2,
          name: topics[0] ?? "",
          configEntries: [
            { name: "retention.ms", value: "60000" },
            { name: "max.message.bytes", value: "2000000" },
          ],
        },
      ],
    });
    const plan = await planWhen((one) => one.changes.length > 0);
    expect(plan.changes).toEqual([
      {
        kind: "alter_configs",
        topic: topics[0],
        configs: { "retention.ms": { from: "60000", to: String(catalog[types[0]].retentionMs) } },
      },
    ]);
    await applyTopics(admin, plan);
    await planWhen((one) => one.changes.length === 0);
    const [state] = await admin.topics((topic) => topic === topics[0]);
    expect(state?.overrides["max.message.bytes"]).toBe("2000000");
  });

  it("raises partitions, never lowers them, and reports a topic that the catalogue does not know", async () => {
    await byHand.createPartitions({ topicPartitions: [{ topic: topics[0] ?? "", count: 9 }] });
    await byHand.deleteTopics({ topics: [topics[1] ?? ""] });
    await eventually(async () => !(await byHand.listTopics()).includes(topics[1] ?? ""));
    await byHand.createTopics({
      waitForLeaders: true,
      topics: [
        { topic: topics[1] ?? "", numPartitions: 1, replicationFactor: 1 },
        { topic: stranger, numPartitions: 1, replicationFactor: 1 },
      ],
    });
    const plan = await planWhen((one) => one.drift.length === 2);
    expect(plan.drift.map((one) => [one.topic, one.kind])).toEqual([
      [topics[0], "more_partitions"],
      [stranger, "not_in_catalogue"],
    ]);
    expect(plan.changes.map((change) => [change.topic, change.kind])).toEqual([
      [topics[1], "raise_partitions"],
      [topics[1], "alter_configs"],
    ]);
    await applyTopics(admin, plan);
    const after = await planWhen((one) => one.changes.length === 0);
    expect(after.drift).toHaveLength(2);
    const states = await admin.topics((topic) => topic.startsWith(topicPrefix));
    expect(new Map(states.map((state) => [state.topic, state.partitions]))).toEqual(
      new Map([
        [topics[0], 9],
        [topics[1], catalog[types[1]].partitions],
        [stranger, 1],
      ]),
    );
  });

  it("says that the broker is away, and what the broker refuses", async () => {
    const nowhere = createKafkaAdmin({
      endpoint: { brokers: ["127.0.0.1:1"], clientId: "test-nowhere" },
      log,
    });
    await expect(nowhere.topics(() => true)).rejects.toMatchObject({
      code: "BROKER_UNAVAILABLE",
      kind: "transient",
    });
    await nowhere.close();
    await expect(
      admin.createTopics([
        {
          topic: `${topicPrefix}agent.bad.requested`,
          partitions: 1,
          replication: 1,
          configs: { "retention.ms": "soon" },
        },
      ]),
    ).rejects.toMatchObject({ code: "BROKER_REJECTED" });
    await expect(admin.raisePartitions(`${topicPrefix}agent.nothing.requested`, 2)).rejects.toMatchObject({
      code: "TOPIC_MISSING",
    });
  });
});
