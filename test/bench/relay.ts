import type { Admin } from "kafkajs";
import type { Backlog } from "./backlog.ts";
import { benchCodec, createBacklog } from "./backlog.ts";
import type { BenchDatabase } from "./bench-database.ts";
import { benchType } from "./bench-events.ts";
import type { TopicRates } from "./bench-topic.ts";
import { checkRecords, createTopic, openKafka, watchTopic } from "./bench-topic.ts";
import type { BenchProcess } from "./child-process.ts";
import { startProcess } from "./child-process.ts";
import type { Debezium, DebeziumSetup } from "./debezium.ts";
import { createDebezium, markerType, prepareDebezium } from "./debezium.ts";
import type { Bench, Row } from "./figure.ts";
import { toRow } from "./figure.ts";
import { cpuMsOf } from "./process-use.ts";
import { eventually } from "../harness/eventually.ts";

/** Records of one send of the raw producer: what the relay takes at a time. */
const batchRows = 1_000;

const contestants = [
  "ours",
  "raw kafkajs",
  "our producer alone",
  "Debezium tuned",
  "Debezium default",
] as const;
type Contestant = (typeof contestants)[number];

/** What one run of one contestant showed. */
interface Measured extends TopicRates {
  /** Processor time of its process for each event, start included, in microseconds. */
  readonly cpuMicros: number;
}

/** One arrangement of servers that all contestants of this figure run on. */
interface Arena {
  readonly bench: Bench;
  readonly brokers: readonly string[];
  readonly database: BenchDatabase;
  readonly debezium: Debezium;
  readonly backlog: Backlog;
  readonly admin: Admin;
}

/** Committed outbox rows to the broker's acknowledgement, over a backlog that waits when the contestant starts. */
export async function relay(bench: Bench): Promise<Row[]> {
  const { kafkaBrokers: brokers } = await bench.stack();
  const debezium = await prepareDebezium(bench);
  const database = await bench.database("relay");
  bench.progress(`${bench.sizes.rows.toLocaleString("en-US")} rows are made`);
  const backlog = await createBacklog(database.admin, benchCodec(), bench.sizes.rows);
  const kafka = openKafka(brokers);
  const admin = kafka.admin();
  await admin.connect();
  bench.onEnd(() => admin.disconnect());
  const arena: Arena = { bench, brokers, database, debezium, backlog, admin };

  const rates = new Map<Contestant, Measured[]>(contestants.map((name) => [name, []]));
  for (let repetition = 0; repetition < bench.sizes.repetitions; repetition += 1) {
    for (let turn = 0; turn < contestants.length; turn += 1) {
      // Who comes first changes, so that no one always follows the same neighbour.
      const contestant = contestants[(turn + repetition) % contestants.length] ?? "ours";
      const prefix = `${database.name}.${String(repetition)}.${contestant.replaceAll(" ", "-")}.`;
      const topic = `${prefix}${benchType}`;
      await createTopic(admin, topic);
      const measured = await runOne(arena, contestant, prefix, topic);
      rates.get(contestant)?.push(measured);
      bench.progress(
        `${String(repetition + 1)}/${String(bench.sizes.repetitions)} ${contestant}: ${String(Math.round(measured.whole))}/s, second half ${String(Math.round(measured.secondHalf))}/s, ${measured.cpuMicros.toFixed(0)} µs of processor an event`,
      );
      await checkRecords(kafka, topic, backlog.eventIds);
      await admin.deleteTopics({ topics: [topic] });
    }
  }

  const list = (name: Contestant, part: keyof Measured): number[] =>
    (rates.get(name) ?? []).map((measured) => measured[part]);
  const note = `${String(backlog.size)} rows of 900 bytes, 6 partitions, acks all, each contestant a fresh process, watched by the broker's end offsets; every event read back once; ours sends 9 headers, Debezium 1`;
  const names: Readonly<Record<keyof Measured, string>> = {
    secondHalf: "relay, second half",
    whole: "relay, whole backlog",
    cpuMicros: "relay, processor time",
  };
  const row = (part: keyof Measured, other: Contestant, atLeast?: number): Row =>
    toRow(
      {
        name: names[part],
        unit: part === "cpuMicros" ? "µs/event" : "events/s",
        against: other.startsWith("Debezium") ? "peer" : "limit",
        other,
        ...(atLeast !== undefined && { target: { better: "higher", ratio: atLeast } as const }),
        command: bench.command,
        note,
      },
      list("ours", part),
      list(other, part),
    );
  return [
    row("secondHalf", "our producer alone"),
    row("secondHalf", "raw kafkajs"),
    row("secondHalf", "Debezium tuned", 1.1),
    row("secondHalf", "Debezium default", 1.4),
    row("whole", "our producer alone"),
    row("whole", "raw kafkajs"),
    row("whole", "Debezium tuned"),
    row("whole", "Debezium default"),
    row("cpuMicros", "our producer alone"),
    row("cpuMicros", "raw kafkajs"),
    row("cpuMicros", "Debezium tuned"),
    row("cpuMicros", "Debezium default"),
  ];
}

function runOne(arena: Arena, contestant: Contestant, prefix: string, topic: string): Promise<Measured> {
  switch (contestant) {
    case "ours":
      return runOurs(arena, prefix, topic);
    case "raw kafkajs":
      return runRaw(arena, topic, "kafkajs");
    case "our producer alone":
      return runRaw(arena, topic, "platform");
    case "Debezium tuned":
      return runDebezium(arena, "tuned", prefix, topic);
    case "Debezium default":
      return runDebezium(arena, "default", prefix, topic);
  }
}

async function runOurs(arena: Arena, prefix: string, topic: string): Promise<Measured> {
  const { admin, backlog, brokers, database } = arena;
  await backlog.commit();
  const starting = startProcess("relay-process", {
    brokers,
    databaseUrl: database.roleUrl("fabric_relay"),
    topicPrefix: prefix,
  });
  const process = await watched(arena, starting);
  const rates = await watchTopic(admin, topic, backlog.size, process.broken);
  const cpuMicros = cpuMicrosOf(arena, process.pid);
  await eventually(
    () => database.admin.query<{ left: number }>("SELECT count(*)::int AS left FROM outbox.events"),
    ({ rows }) => rows[0]?.left === 0,
    { what: "an empty outbox after the last acknowledgement" },
  );
  await process.stop();
  return { ...rates, cpuMicros };
}

async function runRaw(arena: Arena, topic: string, client: "kafkajs" | "platform"): Promise<Measured> {
  const { admin, backlog, brokers, database } = arena;
  const process = await watched(
    arena,
    startProcess("raw-producer-process", { brokers, databaseUrl: database.url, topic, batchRows, client }),
  );
  // Its rows come from the database too, which is no part of the limit.
  const loadingMicros = cpuMicrosOf(arena, process.pid);
  const [rates] = await Promise.all([
    watchTopic(admin, topic, backlog.size, process.broken),
    process.ask("send"),
  ]);
  const cpuMicros = cpuMicrosOf(arena, process.pid) - loadingMicros;
  await process.stop();
  return { ...rates, cpuMicros };
}

async function runDebezium(
  arena: Arena,
  setup: DebeziumSetup,
  prefix: string,
  topic: string,
): Promise<Measured> {
  const { admin, backlog, bench, brokers, database, debezium } = arena;
  await createTopic(admin, `${prefix}${markerType}`);
  const instance = await createDebezium(bench, debezium, database, { setup, brokers, topicPrefix: prefix });
  try {
    await instance.prime();
    await backlog.commit();
    const running = await instance.start();
    const rates = await watchTopic(admin, topic, backlog.size, running.broken);
    const cpuMicros = cpuMicrosOf(arena, running.pid);
    await running.stop();
    return { ...rates, cpuMicros };
  } finally {
    await instance.remove();
    await admin.deleteTopics({ topics: [`${prefix}${markerType}`] });
  }
}

function cpuMicrosOf({ backlog }: Arena, pid: number): number {
  return (cpuMsOf(pid) * 1000) / backlog.size;
}

async function watched(arena: Arena, starting: Promise<BenchProcess>): Promise<BenchProcess> {
  const process = await starting;
  arena.bench.onEnd(() => process.stop());
  return process;
}
