import { randomBytes, randomUUID } from "node:crypto";
import { Kafka, logLevel } from "kafkajs";
import type { Admin } from "kafkajs";
import type { AvroRecord } from "../../../schemas/avro-json.ts";
import { eventSchema } from "../../../schemas/event-schemas.ts";
import { hostPool, hostSessionTimeoutMs, relayPool } from "../../../services/app/service-pools.ts";
import type { Step } from "../../../services/host/batch-steps.ts";
import type { Host } from "../../../services/host/host.ts";
import { startHost } from "../../../services/host/host.ts";
import { createVaultLetterSealer } from "../../../services/host/letter-sealer.ts";
import type { Relay, RelayOptions } from "../../../services/outbox/relay.ts";
import { createRelay } from "../../../services/outbox/relay.ts";
import { EventCodec } from "../../../services/platform/avro.ts";
import { systemClock } from "../../../services/platform/clock.ts";
import type { ProducerPort } from "../../../services/platform/kafka.ts";
import type { ConsumerPort } from "../../../services/platform/kafka-consumer.ts";
import { createKafkaConsumer } from "../../../services/platform/kafka-consumer.ts";
import { createKafkaOffsets } from "../../../services/platform/kafka-offsets.ts";
import { createKafkaProducer } from "../../../services/platform/kafka-producer.ts";
import { createLog } from "../../../services/platform/log.ts";
import { createMetrics } from "../../../services/platform/metrics.ts";
import type { Database } from "../../../services/platform/postgres.ts";
import { openDatabase } from "../../../services/platform/postgres.ts";
import { openRegistry } from "../../../services/platform/registry.ts";
import { openMemoryKek, openTenantKeys } from "../../../services/platform/vault-seal.ts";
import type { StackEndpoints } from "../../../services/stack/stack.ts";
import type { TestDatabase } from "../../harness/database.ts";
import { createTestDatabase } from "../../harness/database.ts";
import type { FaultLink } from "../../harness/fault-link.ts";
import { startFaultLink } from "../../harness/fault-link.ts";
import { readTopic } from "../../harness/topic-reader.ts";
import { createTopics } from "../../harness/topics.ts";
import { ledgerProcessor } from "./ledger-processor.ts";
import { ProjectionWatch } from "./projection-watch.ts";
import { prepareTraffic, Traffic, trafficType } from "./traffic.ts";
import type { TrafficOptions } from "./traffic.ts";
import type { Verdict } from "./verdict.ts";
import { compareLedger } from "./verdict.ts";

/** The links on which a pipeline can be disturbed. */
export interface Links {
  readonly broker: FaultLink;
  readonly postgres: FaultLink;
  readonly registry: FaultLink;
}
export type LinkName = keyof Links;

/** Relay, topic, host and projection as `fabric serve` composes them, each server behind a link of its own. */
export interface Pipeline {
  readonly links: Links;
  readonly topic: string;
  readonly prefix: string;
  readonly sql: Database;
  readonly testDatabase: TestDatabase;
  readonly traffic: Traffic;
  readonly watch: ProjectionWatch;
  readonly relay: Relay;
  readonly host: Host;
  /** What relay and host logged at warning or worse. */
  readonly lines: readonly string[];
  /** What stands still, and the last of those lines. */
  said(): readonly string[];
  /** What the traffic is written with now. */
  encoder(): EventCodec;
  /** From now on events are written with a schema id that no reader has met. */
  renewSchema(): Promise<void>;
  /** Ends the traffic, waits until everything is through, and compares. */
  finish(deadlineMs?: number): Promise<Verdict>;
  close(): Promise<void>;
}

export interface PipelineOptions {
  readonly stack: StackEndpoints;
  readonly traffic?: Partial<TrafficOptions>;
  readonly relay?: Pick<RelayOptions, "batchRows">;
  /** What a test puts in place of parts, for planted faults. */
  readonly relaySteps?: RelayOptions["steps"];
  readonly hostSteps?: (database: Database) => readonly Step[];
  readonly wrapProducer?: (producer: ProducerPort) => ProducerPort;
  readonly wrapConsumer?: (consumer: ConsumerPort) => ConsumerPort;
}

const partitions = 3;

export async function openLinks(stack: StackEndpoints): Promise<Links> {
  const [brokerHost = "", brokerPort] = (stack.kafkaBrokers[0] ?? "").split(":");
  const registry = new URL(stack.registryUrl);
  const postgres = new URL(stack.postgresUrl);
  const [one, two, three] = await Promise.all([
    startFaultLink({ host: brokerHost, port: Number(brokerPort) }),
    startFaultLink({ host: postgres.hostname, port: Number(postgres.port) }),
    startFaultLink({ host: registry.hostname, port: Number(registry.port) }),
  ]);
  return { broker: one, postgres: two, registry: three };
}

/** The same address over a link. */
export function overLink(url: string, link: FaultLink): string {
  const address = new URL(url);
  address.hostname = link.host;
  address.port = String(link.port);
  return address.href;
}

export async function openPipeline(options: PipelineOptions): Promise<Pipeline> {
  const { stack } = options;
  const links = await openLinks(stack);
  const testDatabase = await createTestDatabase({ adminUrl: stack.postgresUrl });
  const sql = openDatabase({
    url: testDatabase.url,
    applicationName: "fault-ledger",
    maxConnections: 12,
    // On a busy machine the ledger itself must not be what fails.
    connectTimeoutMs: 30_000,
  });
  const keys = options.traffic?.keys ?? 60;
  await prepareTraffic(sql, keys);
  const prefix = `f${randomBytes(5).toString("hex")}.`;
  const topic = prefix + trafficType;
  const kafka = new Kafka({
    brokers: stack.kafkaBrokers,
    clientId: "fault-ledger",
    logLevel: logLevel.NOTHING,
  });
  const admin: Admin = kafka.admin();
  await admin.connect();
  await createTopics(admin, [{ topic, numPartitions: partitions }]);

  // Straight to the registry: the writer has its schema before anything happens.
  const direct = openRegistry({ url: stack.registryUrl });
  const subjects = new Set<string>();
  let encoder: EventCodec;
  const renewSchema = async (): Promise<void> => {
    const schema: AvroRecord = { ...structuredClone(eventSchema(trafficType)), doc: randomUUID() };
    const subject = `${prefix}${randomUUID()}-value`;
    subjects.add(subject);
    const { schemaId } = await direct.register(subject, schema, "NONE");
    encoder = new EventCodec({ source: direct, schemaIds: new Map([[trafficType, schemaId]]) });
  };
  await renewSchema();

  const lines: string[] = [];
  const log = createLog({
    service: "fault-ledger",
    level: "warn",
    destination: { write: (line: string) => void lines.push(line) },
  });
  const endpoint = {
    brokers: [`${links.broker.host}:${String(links.broker.port)}`],
    clientId: `fault-${randomUUID().slice(0, 8)}`,
  };
  const route = () => ({ host: links.broker.host, port: links.broker.port });
  const asRole = (role: string): string => overLink(testDatabase.roleUrl(role), links.postgres);

  const relayDatabase = openDatabase({
    url: asRole("fabric_relay"),
    applicationName: "fabric-relay",
    ...relayPool,
  });
  const relay = createRelay({
    database: relayDatabase,
    producerFactory: async () => {
      const producer = await createKafkaProducer({ ...endpoint, routes: route, log });
      return options.wrapProducer?.(producer) ?? producer;
    },
    log,
    metrics: createMetrics(),
    relayId: randomUUID(),
    topicPrefix: prefix,
    ...options.relay,
    ...(options.relaySteps === undefined ? {} : { steps: options.relaySteps }),
  });
  const stopping = new AbortController();
  const relayDone = relay.run(stopping.signal);
  relayDone.catch(() => undefined);

  const hostDatabase = openDatabase({
    url: asRole("fabric_host"),
    applicationName: "fabric-host",
    ...hostPool,
  });
  const registry = openRegistry({ url: overLink(stack.registryUrl, links.registry) });
  const letterKeys = openTenantKeys(hostDatabase, openMemoryKek("test", Buffer.alloc(32, 7)));
  const offsets = createKafkaOffsets({ endpoint, log, route });
  const host = startHost({
    processors: [ledgerProcessor],
    endpoint,
    database: hostDatabase,
    codec: new EventCodec({ source: registry, schemaIds: new Map() }),
    sealer: createVaultLetterSealer(letterKeys),
    letterKeys,
    metrics: createMetrics(),
    log,
    clock: systemClock,
    environment: "test",
    topicPrefix: prefix,
    groupPrefix: prefix,
    offsets,
    openConsumer: (groupId, consumerLog) => {
      const consumer = createKafkaConsumer({
        endpoint,
        route,
        groupId,
        log: consumerLog,
        sessionTimeoutMs: hostSessionTimeoutMs,
      });
      return options.wrapConsumer?.(consumer) ?? consumer;
    },
    ...(options.hostSteps === undefined ? {} : { steps: options.hostSteps(hostDatabase) }),
  });

  const traffic = new Traffic({
    sql,
    encoder: () => encoder,
    keys,
    writers: 4,
    eventsPerSecond: 90,
    mayFail: true,
    ...options.traffic,
  });
  const watch = new ProjectionWatch(sql, "ledger.rows");
  let finished = false;
  return {
    links,
    topic,
    prefix,
    sql,
    testDatabase,
    traffic,
    watch,
    relay,
    host,
    lines,
    said: () => [
      JSON.stringify(relay.health()),
      JSON.stringify(host.health().get("ledger"), (_key, value: unknown) =>
        typeof value === "bigint" ? String(value) : value,
      ),
      ...lines.slice(-60),
    ],
    encoder: () => encoder,
    renewSchema,
    async finish(deadlineMs = 120_000) {
      await traffic.stop();
      finished = true;
      return compareLedger({
        committed: traffic.committed,
        sql,
        decoder: new EventCodec({ source: direct, schemaIds: new Map() }),
        readTopic: () => readTopic(kafka, admin, topic),
        deadlineMs,
      });
    },
    async close() {
      if (!finished) await traffic.stop().catch(() => undefined);
      await watch.stop();
      stopping.abort();
      await Promise.all([host.stop(), relayDone.catch(() => undefined)]);
      await offsets.close();
      registry.close();
      await Promise.all([relayDatabase.end(), hostDatabase.end()]);
      await Promise.all([links.broker, links.postgres, links.registry].map((link) => link.close()));
      for (const subject of subjects) {
        const url = `${stack.registryUrl}/subjects/${encodeURIComponent(subject)}`;
        await fetch(url, { method: "DELETE" });
        await fetch(`${url}?permanent=true`, { method: "DELETE" });
      }
      direct.close();
      await admin.deleteGroups([`${prefix}ledger`]).catch(() => undefined);
      await admin.deleteTopics({ topics: [topic] }).catch(() => undefined);
      await admin.disconnect();
      await sql.end();
      await testDatabase.drop();
    },
  };
}
