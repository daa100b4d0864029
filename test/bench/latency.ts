import { openDatabase } from "../../services/platform/postgres.ts";
import type { Database } from "../../services/platform/postgres.ts";
import type { OutboxRow } from "../../services/platform/outbox.ts";
import { notifyOutbox, outboxStatement } from "../../services/platform/outbox.ts";
import { eventually } from "../harness/eventually.ts";
import { benchCodec, benchRows } from "./backlog.ts";
import type { BenchDatabase } from "./bench-database.ts";
import { benchType, eventIdOf } from "./bench-events.ts";
import { createTopic, openKafka } from "./bench-topic.ts";
import { startProcess } from "./child-process.ts";
import { createDebezium, markerType, prepareDebezium } from "./debezium.ts";
import type { Bench, Row } from "./figure.ts";
import { percentile, toRow } from "./figure.ts";
import { openLoop } from "./open-loop.ts";

const eventsPerSecond = 500;
/** Writers' connections: a slow commit must not hold back the schedule. */
const connections = 8;
/** Sent and not counted: connections, prepared statements and the peer's JVM are warm after it. */
const warmUpSeconds = 4;

const contestants = ["ours", "Debezium tuned", "Debezium default"] as const;
type Contestant = (typeof contestants)[number];

interface Percentiles {
  readonly p50: number;
  readonly p99: number;
  /** The statement alone, to its commit: no relay can be faster than what comes before it. */
  readonly insert: number;
}

/** Start of the insert to the consumer's hands at a steady 500 events a second. */
export async function latency(bench: Bench): Promise<Row[]> {
  const { kafkaBrokers: brokers } = await bench.stack();
  const debezium = await prepareDebezium(bench);
  const database = await bench.database("latency");
  const kafka = openKafka(brokers);
  const admin = kafka.admin();
  await admin.connect();
  bench.onEnd(() => admin.disconnect());

  /** Starts a contestant; returns how to end it. */
  async function start(contestant: Contestant, prefix: string): Promise<() => Promise<void>> {
    if (contestant === "ours") {
      const process = await startProcess("relay-process", {
        brokers,
        databaseUrl: database.roleUrl("fabric_relay"),
        topicPrefix: prefix,
      });
      bench.onEnd(() => process.stop());
      return () => process.stop();
    }
    await createTopic(admin, `${prefix}${markerType}`);
    const instance = await createDebezium(bench, debezium, database, {
      setup: contestant === "Debezium tuned" ? "tuned" : "default",
      brokers,
      topicPrefix: prefix,
    });
    await instance.prime();
    const running = await instance.start();
    return async () => {
      await running.stop();
      await instance.remove();
    };
  }

  const measured = new Map<Contestant, Percentiles[]>(contestants.map((name) => [name, []]));
  for (let repetition = 0; repetition < bench.sizes.repetitions; repetition += 1) {
    for (let turn = 0; turn < contestants.length; turn += 1) {
      const contestant = contestants[(turn + repetition) % contestants.length] ?? "ours";
      const prefix = `${database.name}.${String(repetition)}.${contestant.replaceAll(" ", "-")}.`;
      await createTopic(admin, `${prefix}${benchType}`);
      await database.admin.query("TRUNCATE outbox.events");
      const stop = await start(contestant, prefix);
      const { latencies, inserts } = await measure(bench, brokers, database, `${prefix}${benchType}`);
      await stop();
      const result = {
        p50: percentile(latencies, 0.5),
        p99: percentile(latencies, 0.99),
        insert: percentile(inserts, 0.5),
      };
      measured.get(contestant)?.push(result);
      bench.progress(
        `${String(repetition + 1)}/${String(bench.sizes.repetitions)} ${contestant}: p50 ${result.p50.toFixed(1)} ms, p99 ${result.p99.toFixed(1)} ms; insert and commit alone ${result.insert.toFixed(1)} ms`,
      );
    }
  }

  const list = (name: Contestant, part: keyof Percentiles): number[] =>
    (measured.get(name) ?? []).map((one) => one[part]);
  const note = `${String(eventsPerSecond)} events/s of 900 bytes for ${String(bench.sizes.seconds)} s, one row a transaction, open loop; writer and consumer in one process, contestant in another; nothing lost`;
  const row = (
    part: "p50" | "p99",
    against: Row["against"],
    other: string,
    theirs: readonly number[],
    atMost?: number,
  ): Row =>
    toRow(
      {
        name: `latency ${part}`,
        unit: "ms",
        against,
        other,
        ...(atMost !== undefined && { target: { better: "lower", ratio: atMost } as const }),
        command: bench.command,
        note,
      },
      list("ours", part),
      theirs,
    );
  const budget = (ms: number): number[] => list("ours", "p50").map(() => ms);
  return [
    row("p50", "limit", "insert and commit alone", list("ours", "insert")),
    row("p50", "budget", "3 ms", budget(3), 1),
    row("p99", "budget", "20 ms", budget(20), 1),
    row("p50", "peer", "Debezium default", list("Debezium default", "p50"), 0.1),
    row("p99", "peer", "Debezium default", list("Debezium default", "p99"), 0.1),
    row("p50", "peer", "Debezium tuned", list("Debezium tuned", "p50")),
    row("p99", "peer", "Debezium tuned", list("Debezium tuned", "p99")),
  ];
}

/** Milliseconds of each event of one run; throws when one is lost or comes twice. */
async function measure(
  bench: Bench,
  brokers: readonly string[],
  database: BenchDatabase,
  topic: string,
): Promise<{ readonly latencies: number[]; readonly inserts: number[] }> {
  const writer = openDatabase({
    url: database.roleUrl("fabric_gate"),
    applicationName: "fabric-bench-writer",
    maxConnections: connections,
  });
  const startedAt = new Map<string, number>();
  const latencies = new Map<string, number>();
  const inserts: number[] = [];
  let repeated = 0;
  const consumer = openKafka(brokers).consumer({ groupId: `${topic}.latency`, maxWaitTimeInMs: 500 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: ({ batch }) => {
      const nowMs = performance.now();
      for (const { value } of batch.messages) {
        const id = value === null ? "" : eventIdOf(value);
        const sentMs = startedAt.get(id);
        if (sentMs === undefined) continue;
        if (latencies.has(id)) repeated += 1;
        else latencies.set(id, nowMs - sentMs);
      }
      return Promise.resolve();
    },
  });
  const everything = async (): Promise<void> => {
    await eventually(
      () => startedAt.size - latencies.size,
      (missing) => missing === 0,
      { deadlineMs: 60_000, what: `${topic}: arrival of every event (the value is how many are missing)` },
    );
  };
  try {
    const codec = benchCodec();
    const warmUps = eventsPerSecond * warmUpSeconds;
    const rows = benchRows(codec, 0, warmUps + eventsPerSecond * bench.sizes.seconds);
    const write = async (row: OutboxRow): Promise<void> => {
      const startMs = performance.now();
      startedAt.set(`evt_${row.id}`, startMs);
      await append(writer, row);
      inserts.push(performance.now() - startMs);
    };
    // The first event alone: from then on the contestant and the consumer are known to be there.
    await write(rows[0] as OutboxRow);
    await everything();
    await openLoop(eventsPerSecond, warmUpSeconds, (index) =>
      index === 0 ? Promise.resolve() : write(rows[index] as OutboxRow),
    );
    await everything();
    startedAt.clear();
    latencies.clear();
    inserts.length = 0;
    await openLoop(eventsPerSecond, bench.sizes.seconds, (index) =>
      write(rows[warmUps + index] as OutboxRow),
    );
    await everything();
    if (repeated > 0) throw new Error(`${topic}: ${String(repeated)} events came twice`);
    return { latencies: [...latencies.values()], inserts };
  } finally {
    await consumer.disconnect();
    await writer.end();
  }
}

/** What a writer of the product does: one statement, then the relay's wake-up, which Debezium does not need. */
async function append(writer: Database, row: OutboxRow): Promise<void> {
  await writer.query(outboxStatement([row]));
  notifyOutbox(writer);
}
