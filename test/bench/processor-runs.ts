import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Admin } from "kafkajs";
import type { EventType } from "../../schemas/catalog.ts";
import { eventTypes } from "../../schemas/catalog.ts";
import { toKey } from "../../schemas/envelope.ts";
import { loadCostFiles, processorsWith } from "../../services/app/load-processors.ts";
import { generateSessions } from "../../services/seed/session.ts";
import { memoryCodec } from "../harness/memory-codec.ts";
import type { BenchDatabase } from "./bench-database.ts";
import { countRecords, createTopic, fillTopic, openKafka } from "./bench-topic.ts";
import { startProcess } from "./child-process.ts";
import { preciseNowMs } from "./consumer-progress.ts";
import type { Bench } from "./figure.ts";
import { cpuMsOf, rssMibOf, serverCpuMsOf } from "./process-use.ts";

/** What one run from empty tables to the last committed event showed. */
export interface ProcessorRun {
  readonly events: number;
  readonly seconds: number;
  readonly perSecond: number;
  /** Share of one core that the process used. */
  readonly cpuShare: number;
  /** Processor time of the process and of its server processes for each event, in microseconds. */
  readonly cpuMicros: number;
  readonly serverMicros: number;
  /** Memory at half of the events, and at the end. */
  readonly halfMib: number;
  readonly endMib: number;
}

/** Full topics, and what runs over them. */
export interface ProcessorBench {
  readonly names: readonly string[];
  readonly events: number;
  run(name: string): Promise<ProcessorRun>;
  /** The same topics through the bare consumer. */
  runBare(name: string): Promise<ProcessorRun>;
}

const stallDeadlineMs = 300_000;
const pollMs = 50;
/** Messages that are held for a topic before they are sent. */
const lot = 5_000;
/** Events of a seeded session, about. */
const eventsPerSession = 103;

/** Fills topics with `bench.sizes.rows` events of agents' months, one tenant with nine tenths of them. */
export async function openProcessorBench(bench: Bench): Promise<ProcessorBench> {
  const { kafkaBrokers: brokers } = await bench.stack();
  const database = await bench.database("processors");
  await database.admin.query(`CREATE SCHEMA bare;
    CREATE TABLE bare.events (event_id uuid PRIMARY KEY, type text, tenant_id text, correlation_id text,
      recorded_at timestamptz);
    GRANT USAGE ON SCHEMA bare TO fabric_host; GRANT SELECT, INSERT ON bare.events TO fabric_host`);
  const kafka = openKafka(brokers);
  const admin = kafka.admin();
  await admin.connect();
  bench.onEnd(() => admin.disconnect());
  const topicPrefix = `${database.name}.`;
  await fillAll(bench, admin, topicPrefix);

  const pricesDir = join(bench.projectDir, "deploy", "prices");
  const budgetsFile = join(bench.projectDir, "deploy", "budgets.yaml");
  const all = processorsWith(await loadCostFiles(pricesDir, budgetsFile));
  const records = new Map<EventType, number>();
  for (const type of eventTypes) records.set(type, await countRecords(admin, topicPrefix + type));
  const topicsOf = (name: string): readonly EventType[] => all.find((one) => one.name === name)?.topics ?? [];
  const eventsOf = (name: string): number =>
    topicsOf(name).reduce((sum, type) => sum + (records.get(type) ?? 0), 0);
  const databaseUrl = database.roleUrl("fabric_host");
  let runs = 0;

  async function measure(
    processName: string,
    settings: object,
    applicationName: string,
    events: number,
    countDone: () => Promise<number>,
  ): Promise<ProcessorRun> {
    const child = await startProcess(processName, { brokers, databaseUrl, ...settings });
    bench.onEnd(() => child.stop());
    let firstMs = 0;
    let cpuBeforeMs = 0;
    let halfMib = Number.NaN;
    let movedMs = preciseNowMs();
    let before = 0;
    for (;;) {
      const done = await Promise.race([countDone(), child.broken]);
      const nowMs = preciseNowMs();
      if (done > before) movedMs = nowMs;
      before = done;
      // From the first committed batch on: what joining a group takes is no speed.
      if (done > 0 && firstMs === 0) {
        firstMs = nowMs;
        cpuBeforeMs = cpuMsOf(child.pid);
      }
      if (Number.isNaN(halfMib) && done >= events / 2) halfMib = rssMibOf(child.pid);
      if (done >= events) break;
      if (nowMs - movedMs > stallDeadlineMs)
        throw new Error(`${processName} stands still at ${String(done)} of ${String(events)} events`);
      await wait(pollMs);
    }
    const elapsedMs = Math.max(1, preciseNowMs() - firstMs);
    const cpuMs = cpuMsOf(child.pid);
    const serverMs = await serverCpuMsOf(database.admin, applicationName);
    const endMib = rssMibOf(child.pid);
    await child.stop();
    return {
      events,
      seconds: elapsedMs / 1000,
      perSecond: (events / elapsedMs) * 1000,
      cpuShare: (cpuMs - cpuBeforeMs) / elapsedMs,
      cpuMicros: (cpuMs * 1000) / events,
      serverMicros: (serverMs * 1000) / events,
      halfMib,
      endMib,
    };
  }

  return {
    names: all.map((one) => one.name),
    events: [...records.values()].reduce((sum, one) => sum + one, 0),
    async run(name) {
      runs += 1;
      const group = `${topicPrefix}${String(runs)}.`;
      const run = await measure(
        "processor-process",
        { topicPrefix, groupPrefix: group, processor: name, pricesDir, budgetsFile },
        "fabric-bench-processor",
        eventsOf(name),
        () => countWatermarks(database, name),
      );
      await empty(database, [name, "host", "outbox"]);
      await admin.deleteGroups([`${group}${name}`]).catch(() => undefined);
      bench.progress(`${name}: ${toText(run)}`);
      return run;
    },
    async runBare(name) {
      runs += 1;
      const group = `${topicPrefix}${String(runs)}.bare`;
      const events = eventsOf(name);
      const topics = topicsOf(name).map((type) => topicPrefix + type);
      const run = await measure("bare-topics-process", { topics, group }, "fabric-bench-bare", events, () =>
        countRows(database),
      );
      await empty(database, ["bare"]);
      await admin.deleteGroups([group]).catch(() => undefined);
      bench.progress(`${name}, bare: ${toText(run)}`);
      return run;
    },
  };
}

function toText(run: ProcessorRun): string {
  return `${String(run.events)} events, ${run.perSecond.toFixed(0)}/s, ${(run.cpuShare * 100).toFixed(0)} % of a core, ${run.cpuMicros.toFixed(0)} µs an event, Postgres ${run.serverMicros.toFixed(0)} µs, ${run.halfMib.toFixed(0)} → ${run.endMib.toFixed(0)} MiB`;
}

async function fillAll(bench: Bench, admin: Admin, topicPrefix: string): Promise<void> {
  const { kafkaBrokers: brokers } = await bench.stack();
  const kafka = openKafka(brokers);
  for (const type of eventTypes) await createTopic(admin, topicPrefix + type);
  bench.onEnd(() => admin.deleteTopics({ topics: eventTypes.map((type) => topicPrefix + type) }));
  const codec = memoryCodec();
  const waiting = new Map<EventType, { key: string; value: Buffer }[]>();
  const send = async (type: EventType): Promise<void> => {
    const messages = waiting.get(type) ?? [];
    waiting.delete(type);
    await fillTopic(kafka, topicPrefix + type, messages);
  };
  let events = 0;
  const sessions = Math.max(1, Math.round(bench.sizes.rows / eventsPerSession));
  const plan = { seed: 1, sessions, startMs: Date.UTC(2026, 8, 1), days: 90, tenantPrefix: "bench" };
  for (const session of generateSessions(plan)) {
    for (const event of session) {
      const held = waiting.get(event.type) ?? [];
      held.push({ key: toKey(event), value: codec.encode(event).bytes });
      waiting.set(event.type, held);
      if (held.length >= lot) await send(event.type);
    }
    events += session.length;
  }
  for (const type of [...waiting.keys()]) await send(type);
  bench.progress(`${events.toLocaleString("en-US")} events are in ${String(eventTypes.length)} topics`);
}

async function countWatermarks(database: BenchDatabase, processor: string): Promise<number> {
  const { rows } = await database.admin.query<{ done: string | null }>(
    "SELECT sum(next_offset)::text AS done FROM host.watermarks WHERE processor = $1",
    [processor],
  );
  return Number(rows[0]?.done ?? 0);
}

async function countRows(database: BenchDatabase): Promise<number> {
  const { rows } = await database.admin.query<{ done: string }>(
    "SELECT count(*)::text AS done FROM bare.events",
  );
  return Number(rows[0]?.done ?? 0);
}

/** Empties every table of some schemas, the append-only ones too: the next run begins with nothing. */
async function empty(database: BenchDatabase, schemas: readonly string[]): Promise<void> {
  const { rows } = await database.admin.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
      WHERE schemaname = ANY ($1) AND (schemaname <> 'outbox' OR tablename = 'events')
        AND (schemaname <> 'host' OR tablename IN ('inbox', 'watermarks', 'letters'))`,
    [schemas],
  );
  await database.admin.query("SET session_replication_role = replica");
  await database.admin.query(`TRUNCATE ${rows.map(({ name }) => name).join(", ")} CASCADE`);
  await database.admin.query("SET session_replication_role = origin");
  await database.admin.query("CHECKPOINT");
}
