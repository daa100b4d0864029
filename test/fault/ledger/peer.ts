import { connect } from "node:net";
import { SchemaRegistry } from "@kafkajs/confluent-schema-registry";
import { Kafka, logLevel } from "kafkajs";
import pg from "pg";
import type { Envelope } from "../../../schemas/envelope.ts";
import { toKey } from "../../../schemas/envelope.ts";
import type { EventEncoder } from "../../../services/platform/outbox.ts";
import type { Database } from "../../../services/platform/postgres.ts";
import { openDatabase } from "../../../services/platform/postgres.ts";
import type { StackEndpoints } from "../../../services/stack/stack.ts";
import { createTestDatabase } from "../../harness/database.ts";
import { createTopics } from "../../harness/topics.ts";
import type { Links } from "./pipeline.ts";
import { openLinks, overLink } from "./pipeline.ts";
import { ProjectionWatch } from "./projection-watch.ts";
import type { trafficType } from "./traffic.ts";

/**
 * What many have today, to be looked at under the same fault: a kafkajs consumer with `eachBatch` and an INSERT per
 * batch, with the clients' own defaults. It is handed its records by a producer that meets no fault, so it has less to do than the pipeline.
 */
export interface Peer {
  readonly links: Links;
  readonly watch: ProjectionWatch;
  publish(events: readonly Envelope<typeof trafficType>[], encoder: EventEncoder): void;
  /** Rows that are there twice. */
  doubled(): Promise<number>;
  close(): Promise<void>;
}

interface DecodedRow {
  readonly event_id: string;
  readonly correlation_id: string;
  readonly redacted_summary: { readonly output_tokens: number };
}

export async function openPeer(stack: StackEndpoints, prefix: string): Promise<Peer> {
  const links = await openLinks(stack);
  const testDatabase = await createTestDatabase({ adminUrl: stack.postgresUrl });
  const sql: Database = openDatabase({
    url: testDatabase.url,
    applicationName: "fault-peer",
    maxConnections: 3,
  });
  await sql.query(`CREATE SCHEMA peer;
    CREATE TABLE peer.rows (id bigint GENERATED ALWAYS AS IDENTITY, event_id text NOT NULL, key text NOT NULL, n bigint NOT NULL)`);
  const topic = `${prefix}peer`;
  const direct = new Kafka({
    brokers: stack.kafkaBrokers,
    clientId: "fault-peer",
    logLevel: logLevel.NOTHING,
    // What feeds it does not give up: it is the consumer that is looked at.
    retry: { retries: 200, maxRetryTime: 1_000 },
  });
  const admin = direct.admin();
  const producer = direct.producer({ allowAutoTopicCreation: false });
  await Promise.all([admin.connect(), producer.connect()]);
  await createTopics(admin, [{ topic, numPartitions: 3 }]);

  const kafka = new Kafka({
    brokers: [`${links.broker.host}:${String(links.broker.port)}`],
    clientId: "fault-peer",
    logLevel: logLevel.NOTHING,
    socketFactory: ({ onConnect }) => connect(links.broker.port, links.broker.host, onConnect),
  });
  const registry = new SchemaRegistry({ host: overLink(stack.registryUrl, links.registry) });
  const pool = new pg.Pool({ connectionString: overLink(testDatabase.url, links.postgres), max: 4 });
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  const consumer = kafka.consumer({ groupId: `${prefix}peer` });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    eachBatch: async ({ batch }) => {
      const events = await Promise.all(
        batch.messages.map(
          async ({ value }) => (await registry.decode(value ?? Buffer.alloc(0))) as DecodedRow,
        ),
      );
      await pool.query(
        "INSERT INTO peer.rows (event_id, key, n) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])",
        [
          events.map((event) => event.event_id),
          events.map((event) => event.correlation_id),
          events.map((event) => Number(event.redacted_summary.output_tokens)),
        ],
      );
    },
  });
  const sends = new Set<Promise<unknown>>();
  const watch = new ProjectionWatch(sql, "peer.rows");
  return {
    links,
    watch,
    publish(events, encoder) {
      const messages = events.map((event) => ({ key: toKey(event), value: encoder.encode(event).bytes }));
      const send = producer.send({ topic, messages }).finally(() => sends.delete(send));
      send.catch(() => undefined);
      sends.add(send);
    },
    async doubled() {
      const { rows } = await sql.query<{ n: number }>(
        "SELECT (count(*) - count(DISTINCT event_id))::int AS n FROM peer.rows",
      );
      return rows[0]?.n ?? 0;
    },
    async close() {
      await Promise.allSettled(sends);
      await watch.stop();
      // Dead sockets would keep it for as long as its own patience; with its links gone it ends at once.
      const ended = consumer.disconnect().catch(() => undefined);
      await Promise.all([links.broker, links.postgres, links.registry].map((link) => link.close()));
      await ended;
      await pool.end().catch(() => undefined);
      await producer.disconnect();
      await admin.deleteGroups([`${prefix}peer`]).catch(() => undefined);
      await admin.deleteTopics({ topics: [topic] }).catch(() => undefined);
      await admin.disconnect();
      await sql.end();
      await testDatabase.drop();
    },
  };
}
