import { randomBytes, randomUUID } from "node:crypto";
import type { Admin, Producer } from "kafkajs";
import { Kafka, logLevel } from "kafkajs";
import pino from "pino";
import { inject } from "vitest";
import { eventOf } from "../../processors/kit/given.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import { defineProcessor } from "../../processors/kit/processor.ts";
import type { EventType } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Step } from "../../services/host/batch-steps.ts";
import { liveSteps } from "../../services/host/batch-steps.ts";
import type { Host, HostOptions } from "../../services/host/host.ts";
import { startHost } from "../../services/host/host.ts";
import { createVaultLetterSealer } from "../../services/host/letter-sealer.ts";
import type { EventCodec } from "../../services/platform/avro.ts";
import { systemClock } from "../../services/platform/clock.ts";
import type { OffsetsPort } from "../../services/platform/kafka-offsets.ts";
import { createKafkaOffsets } from "../../services/platform/kafka-offsets.ts";
import { newUuidV7 } from "../../services/platform/ids.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openMemoryKek, openTenantKeys } from "../../services/platform/vault-seal.ts";
import type { RecoveryDeps } from "../../services/recovery/recovery-deps.ts";
import type { TestDatabase } from "./database.ts";
import { createTestDatabase } from "./database.ts";
import { memoryCodec } from "./memory-codec.ts";
import { createTopics } from "./topics.ts";

/** A model call of `tenantId`, number `n`; each has an id of its own. */
export const modelEvent = (n: number, tenantId = "acme"): Envelope<"agent.model.completed"> =>
  eventOf(
    draft("agent.model.completed", {
      model: "m",
      outcome: "succeeded",
      input_tokens: 1n,
      cached_input_tokens: null,
      cache_write_tokens: null,
      output_tokens: BigInt(n),
      reasoning_tokens: null,
      duration_ms: null,
      cost_micros: null,
      error_kind: null,
      model_call_id: null,
    }),
    {
      eventId: `evt_${newUuidV7(Date.now())}`,
      tenantId,
      correlationId: `cor_${n}`,
      recordedAtMs: Date.now(),
    },
  );

interface LedgerChange {
  readonly eventId: string;
  readonly n: bigint;
}
/** Writes one row per event into a table without any key: what is counted twice shows. */
export const ledgerProcessor = (
  change: Partial<Pick<Processor, "name" | "apply">> & {
    readonly project?: (event: Envelope<"agent.model.completed">) => readonly LedgerChange[];
  } = {},
): Processor =>
  ({
    ...defineProcessor({
      name: change.name ?? "ledger",
      topics: ["agent.model.completed"],
      project:
        change.project ??
        ((event): LedgerChange[] => [
          { eventId: event.event_id, n: event.redacted_summary.output_tokens ?? 0n },
        ]),
      async apply(tx, changes) {
        await tx.query({
          name: "ledger-add",
          text: "INSERT INTO ledger (event_id, n) SELECT * FROM unnest($1::text[], $2::bigint[])",
          values: [changes.map((one) => one.eventId), changes.map((one) => one.n)],
        });
      },
    }),
    ...(change.apply === undefined ? {} : { apply: change.apply }),
  }) satisfies Processor;

/** The live steps with some replaced or moved by name. */
export const stepsWith = (replaced: Partial<Record<Step["name"], Step["run"]>>): readonly Step[] =>
  liveSteps.map((step) => {
    const run = replaced[step.name];
    return run === undefined ? step : { ...step, run };
  });

export interface Line {
  readonly level: string;
  readonly msg: string;
  readonly [key: string]: unknown;
}

/** Topics, a database and hosts for one test. */
export interface HostRig {
  readonly prefix: string;
  readonly codec: EventCodec;
  readonly database: TestDatabase;
  /** As superuser, in the host's schema. */
  readonly sql: Database;
  readonly admin: Admin;
  readonly lines: Line[];
  topicOf(type: EventType): string;
  createTopics(
    types: readonly EventType[],
    partitions?: number,
    config?: Record<string, string>,
  ): Promise<void>;
  publish(events: readonly Envelope[], to?: { readonly partition?: number }): Promise<void>;
  publishInTransaction(events: readonly Envelope[], end: "commit" | "abort"): Promise<void>;
  publishBytes(type: EventType, values: readonly (Buffer | null)[], partition?: number): Promise<void>;
  start(
    processors: readonly Processor[],
    options?: Partial<HostOptions>,
  ): Host & { render(): Promise<string> };
  ledger(): Promise<{ readonly rows: number; readonly events: number; readonly sum: number }>;
  watermarks(processor?: string): Promise<Map<string, bigint>>;
  committed(type: EventType, processor?: string): Promise<Map<number, bigint>>;
  /** What an operator's commands work with, as their own role. */
  recovery(): RecoveryDeps;
  letters(): Promise<Record<string, unknown>[]>;
  outbox(): Promise<Envelope[]>;
  close(): Promise<void>;
}

export const quickTimings = { watchMs: 300, stallMs: 20_000, heartbeatMs: 500 };

export async function openHostRig(): Promise<HostRig> {
  const { kafkaBrokers } = inject("stack");
  const prefix = `h${randomBytes(5).toString("hex")}.`;
  const kafka = new Kafka({ clientId: "host-rig", brokers: [...kafkaBrokers], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  const producer: Producer = kafka.producer({ allowAutoTopicCreation: false });
  await Promise.all([admin.connect(), producer.connect()]);
  const database = await createTestDatabase();
  const sql = openDatabase({
    url: database.url,
    applicationName: "host-rig",
    searchPath: ["host", "audit"],
    maxConnections: 4,
  });
  await sql.query("CREATE TABLE host.ledger (event_id text NOT NULL, n bigint NOT NULL)");
  await sql.query("GRANT SELECT, INSERT ON host.ledger TO fabric_host");
  const codec = memoryCodec();
  const lines: Line[] = [];
  const log = pino(
    { level: "info", formatters: { level: (level) => ({ level }) } },
    { write: (line: string) => void lines.push(JSON.parse(line) as Line) },
  );
  const topics = new Set<string>();
  const groups = new Set<string>();
  let recovery: (RecoveryDeps & { readonly offsets: OffsetsPort }) | null = null;
  const opened: { host: Host; database: Database }[] = [];
  const topicOf = (type: EventType): string => prefix + type;

  return {
    prefix,
    codec,
    database,
    sql,
    admin,
    lines,
    topicOf,
    async createTopics(types, partitions = 1, config = {}) {
      await createTopics(
        admin,
        types.map((type) => ({
          topic: topicOf(type),
          numPartitions: partitions,
          configEntries: Object.entries(config).map(([name, value]) => ({ name, value })),
        })),
      );
      for (const type of types) topics.add(topicOf(type));
    },
    async publish(events, to = {}) {
      for (const type of new Set(events.map((event) => event.type))) {
        const all = events.filter((event) => event.type === type);
        await producer.send({
          topic: topicOf(type),
          messages: all.map((event) => ({
            key: `${event.tenant_id}/${event.correlation_id}`,
            value: codec.encode(event).bytes,
            headers: { ce_id: event.event_id },
            ...(to.partition === undefined ? {} : { partition: to.partition }),
          })),
        });
      }
    },
    async publishInTransaction(events, end) {
      const writer = kafka.producer({
        transactionalId: `${prefix}tx`,
        maxInFlightRequests: 1,
        idempotent: true,
      });
      await writer.connect();
      const transaction = await writer.transaction();
      for (const event of events) {
        await transaction.send({
          topic: topicOf(event.type),
          messages: [{ partition: 0, value: codec.encode(event).bytes }],
        });
      }
      await transaction[end]();
      await writer.disconnect();
    },
    async publishBytes(type, values, partition = 0) {
      await producer.send({
        topic: topicOf(type),
        messages: values.map((value) => ({ key: "raw", value, partition, headers: { note: "kept" } })),
      });
    },
    start(processors, options = {}) {
      const hostDatabase = openDatabase({
        url: database.roleUrl("fabric_host"),
        applicationName: "host-under-test",
        searchPath: ["host", "audit"],
        maxConnections: 6,
      });
      const metrics = createMetrics();
      const letterKeys = openTenantKeys(hostDatabase, openMemoryKek("test", Buffer.alloc(32, 7)));
      for (const { name } of processors) groups.add(prefix + name);
      const host = startHost({
        processors,
        endpoint: { brokers: kafkaBrokers, clientId: `host-${randomUUID().slice(0, 8)}` },
        database: hostDatabase,
        codec,
        sealer: createVaultLetterSealer(letterKeys),
        letterKeys,
        redrivePollMs: 50,
        metrics,
        log,
        clock: systemClock,
        environment: "test",
        topicPrefix: prefix,
        groupPrefix: prefix,
        timings: quickTimings,
        sessionTimeoutMs: 6_000,
        rebalanceTimeoutMs: 6_000,
        heartbeatIntervalMs: 500,
        ...options,
      });
      let ended = false;
      const stoppable = {
        health: () => host.health(),
        async stop() {
          if (ended) return;
          ended = true;
          await host.stop();
          await hostDatabase.end();
        },
      };
      opened.push({ host: stoppable, database: hostDatabase });
      return { ...stoppable, render: () => metrics.render() };
    },
    async ledger() {
      const found = await sql.query<{ rows: number; events: number; sum: number }>(
        "SELECT count(*)::int AS rows, count(DISTINCT event_id)::int AS events, coalesce(sum(n), 0)::int AS sum FROM host.ledger",
      );
      return found.rows[0] ?? { rows: 0, events: 0, sum: 0 };
    },
    async watermarks(processor = "ledger") {
      const found = await sql.query<{ topic: string; partition: number; next_offset: bigint }>(
        "SELECT topic, partition, next_offset FROM host.watermarks WHERE processor = $1",
        [processor],
      );
      return new Map(
        found.rows.map((row) => [`${row.topic.slice(prefix.length)}/${row.partition}`, row.next_offset]),
      );
    },
    async committed(type, processor = "ledger") {
      const found = await admin.fetchOffsets({ groupId: prefix + processor, topics: [topicOf(type)] });
      return new Map(
        found.flatMap(({ partitions }) =>
          partitions.map(({ partition, offset }) => [partition, BigInt(offset)] as const),
        ),
      );
    },
    recovery() {
      recovery ??= {
        database: openDatabase({
          url: database.roleUrl("fabric_recovery"),
          applicationName: "recovery-under-test",
          maxConnections: 3,
        }),
        codec,
        clock: systemClock,
        environment: "test",
        offsets: createKafkaOffsets({
          endpoint: { brokers: kafkaBrokers, clientId: "recovery-under-test" },
          log,
        }),
      };
      return recovery;
    },
    async letters() {
      return (await sql.query("SELECT * FROM host.letters ORDER BY kafka_offset, buried_at")).rows;
    },
    async outbox() {
      const found = await sql.query<{ payload: Buffer }>("SELECT payload FROM outbox.events ORDER BY seq");
      return Promise.all(found.rows.map(async ({ payload }) => (await codec.decode(payload)).envelope));
    },
    async close() {
      await Promise.all(opened.map(({ host }) => host.stop()));
      await recovery?.offsets.close();
      await recovery?.database.end();
      await producer.disconnect();
      await admin.deleteGroups([...groups]).catch(() => undefined);
      await admin.deleteTopics({ topics: [...topics] }).catch(() => undefined);
      await admin.disconnect();
      await sql.end();
      await database.drop();
    },
  };
}
