import { setTimeout as wait } from "node:timers/promises";
import type { Admin } from "kafkajs";
import { toKey } from "../../schemas/envelope.ts";
import type { BenchDatabase } from "./bench-database.ts";
import { benchCodec } from "./backlog.ts";
import { benchEvent, benchType } from "./bench-events.ts";
import { createProjection } from "./bench-projection.ts";
import { createTopic, fillTopic, openKafka } from "./bench-topic.ts";
import type { BenchProcess } from "./child-process.ts";
import { startProcess } from "./child-process.ts";
import type { ConsumerProgress } from "./consumer-progress.ts";
import { preciseNowMs } from "./consumer-progress.ts";
import type { Bench, Row } from "./figure.ts";
import { toRow } from "./figure.ts";
import { cpuMsOf, serverCpuMsOf } from "./process-use.ts";

/** The naive consumer is so much slower that a tenth of the events says as much. */
const naiveShare = 0.1;
const stallDeadlineMs = 120_000;
const pollMs = 20;
/** Names that the consumers give to their connections. */
const hostApplication = "fabric-bench-host";
const bareApplication = "fabric-bench-bare";

/** What one run of one consumer showed. */
interface Measured {
  readonly perSecond: number;
  /** Processor time of its process for each event, start included, in microseconds. */
  readonly cpuMicros: number;
  /** The same of its connections' server processes. */
  readonly serverMicros: number;
}

/** Topic to committed projection, in one process. */
export async function host(bench: Bench): Promise<Row[]> {
  const { kafkaBrokers: brokers } = await bench.stack();
  const database = await bench.database("host");
  await createProjection(database.admin);
  const kafka = openKafka(brokers);
  const admin = kafka.admin();
  await admin.connect();
  bench.onEnd(() => admin.disconnect());

  const sizes = { all: bench.sizes.rows, few: Math.ceil(bench.sizes.rows * naiveShare) };
  const prefixes = { all: `${database.name}.all.`, few: `${database.name}.few.` };
  for (const size of ["all", "few"] as const) {
    await createTopic(admin, prefixes[size] + benchType);
    bench.onEnd(() => deleteTopic(admin, prefixes[size] + benchType));
    const codec = benchCodec();
    // In lots: a topic's worth of messages need not be in memory at once.
    const lot = 20_000;
    for (let from = 0; from < sizes[size]; from += lot) {
      const messages = Array.from({ length: Math.min(lot, sizes[size] - from) }, (_, index) => {
        const event = benchEvent(from + index);
        return { key: toKey(event), value: codec.encode(event).bytes };
      });
      await fillTopic(kafka, prefixes[size] + benchType, messages);
    }
  }
  bench.progress(`${sizes.all.toLocaleString("en-US")} events are in the topic`);

  const databaseUrl = database.roleUrl("fabric_host");
  const run = async (
    name: string,
    start: Promise<BenchProcess>,
    events: number,
    applicationName = bareApplication,
  ): Promise<Measured> => {
    const process = await start;
    bench.onEnd(() => process.stop());
    const perSecond = await measure(database, process, events);
    const cpuMicros = (cpuMsOf(process.pid) * 1000) / events;
    const serverMicros = ((await serverCpuMsOf(database.admin, applicationName)) * 1000) / events;
    await process.stop();
    await database.admin.query("TRUNCATE projection.calls, projection.claims, host.inbox, host.watermarks");
    await database.admin.query("CHECKPOINT");
    bench.progress(
      `${name}: ${String(Math.round(perSecond))}/s, ${cpuMicros.toFixed(0)} µs of processor an event, Postgres ${serverMicros.toFixed(0)} µs`,
    );
    return { perSecond, cpuMicros, serverMicros };
  };

  const ours: Measured[] = [];
  const bare: Measured[] = [];
  const naive: Measured[] = [];
  const groups: string[] = [];
  const runs = [
    async (repetition: number): Promise<void> => {
      // A group of its own each time: the host's position is in the database, the group's is at the broker.
      await admin.deleteGroups(groups.splice(0)).catch(() => undefined);
      groups.push(`${prefixes.all}bench-calls`);
      ours.push(
        await run(
          `${String(repetition)} ours`,
          startProcess("host-process", { brokers, databaseUrl, topicPrefix: prefixes.all }),
          sizes.all,
          hostApplication,
        ),
      );
    },
    async (repetition: number): Promise<void> => {
      const topic = prefixes.all + benchType;
      await admin.deleteGroups([`${topic}.batch`]).catch(() => undefined);
      bare.push(
        await run(
          `${String(repetition)} bare`,
          startProcess("bare-consumer-process", { brokers, databaseUrl, topic, way: "batch" }),
          sizes.all,
        ),
      );
    },
    async (repetition: number): Promise<void> => {
      const topic = prefixes.few + benchType;
      await admin.deleteGroups([`${topic}.event`]).catch(() => undefined);
      naive.push(
        await run(
          `${String(repetition)} a transaction per event`,
          startProcess("bare-consumer-process", { brokers, databaseUrl, topic, way: "event" }),
          sizes.few,
        ),
      );
    },
  ];
  for (let repetition = 0; repetition < bench.sizes.repetitions; repetition += 1) {
    for (let turn = 0; turn < runs.length; turn += 1)
      await runs[(turn + repetition) % runs.length]?.(repetition + 1);
  }
  const note = `${String(sizes.all)} events of 900 bytes (${String(sizes.few)} for a transaction per event), 18 columns a row, ids in order of time, 6 partitions, 3 at once, each contestant a fresh process; rows counted in the table`;
  const names: Readonly<Record<keyof Measured, string>> = {
    perSecond: "host, topic to projection",
    cpuMicros: "host, processor time",
    serverMicros: "host, Postgres' processor time",
  };
  const row = (
    part: keyof Measured,
    other: string,
    against: Row["against"],
    theirs: readonly Measured[],
    atLeast?: number,
  ): Row =>
    toRow(
      {
        name: names[part],
        unit: part === "perSecond" ? "events/s" : "µs/event",
        against,
        other,
        ...(atLeast !== undefined && { target: { better: "higher", ratio: atLeast } as const }),
        command: bench.command,
        note,
      },
      ours.map((one) => one[part]),
      theirs.map((one) => one[part]),
    );
  const limit = "kafkajs eachBatch, one insert, no inbox";
  return [
    row("perSecond", limit, "limit", bare, 0.7),
    row("perSecond", "one transaction per event", "peer", naive, 10),
    row("cpuMicros", limit, "limit", bare),
    row("serverMicros", limit, "limit", bare),
  ];
}

/** Events per second from the first one in hand to the last one committed. */
async function measure(database: BenchDatabase, process: BenchProcess, events: number): Promise<number> {
  const untilMs = preciseNowMs() + stallDeadlineMs;
  for (;;) {
    const progress = (await process.ask("progress")) as ConsumerProgress;
    if (progress.events >= events) {
      const counted = await database.admin.query<{ rows: number }>(
        "SELECT count(*)::int AS rows FROM projection.calls",
      );
      const rows = counted.rows[0]?.rows ?? 0;
      if (rows > events) throw new Error(`${String(rows)} rows of ${String(events)} events`);
      if (rows === events) return (events / (preciseNowMs() - progress.firstAtMs)) * 1000;
    }
    if (preciseNowMs() > untilMs)
      throw new Error(`only ${String(progress.events)} of ${String(events)} events after two minutes`);
    await wait(pollMs);
  }
}

async function deleteTopic(admin: Admin, topic: string): Promise<void> {
  await admin.deleteTopics({ topics: [topic] });
}
