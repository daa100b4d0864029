import { setTimeout as wait } from "node:timers/promises";
import { join } from "node:path";
import { toKey } from "../../schemas/envelope.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { compareTables } from "../../services/replay/compare-tables.ts";
import { placeRun } from "../../services/replay/positions.ts";
import { dropRun, makeRunSchemas, openRunRole } from "../../services/replay/run-schemas.ts";
import { toRunNames } from "../../services/replay/shadow.ts";
import { benchCodec } from "./backlog.ts";
import { benchEvent, benchType } from "./bench-events.ts";
import { createTopic, fillTopic, openKafka } from "./bench-topic.ts";
import { startProcess } from "./child-process.ts";
import { preciseNowMs } from "./consumer-progress.ts";
import type { Bench, Row } from "./figure.ts";
import { toRow } from "./figure.ts";
import type { ReplaySettings } from "./replay-process.ts";

const pollMs = 20;
const stallDeadlineMs = 60_000;
/** In lots: a topic's worth of messages need not be in memory at once. */
const lot = 20_000;
const longMs = 3_600_000;

/** A shadow's rate beside that of a live host on the same topic, and what the comparison of both costs. */
export async function replay(bench: Bench): Promise<Row[]> {
  const { kafkaBrokers: brokers } = await bench.stack();
  const database = await bench.database("replay");
  const kafka = openKafka(brokers);
  const admin = kafka.admin();
  await admin.connect();
  bench.onEnd(() => admin.disconnect());
  const prefix = `${database.name}.`;
  const topic = prefix + benchType;
  await createTopic(admin, topic);
  bench.onEnd(() => admin.deleteTopics({ topics: [topic] }));
  const events = bench.sizes.rows;
  const codec = benchCodec();
  for (let from = 0; from < events; from += lot) {
    const messages = Array.from({ length: Math.min(lot, events - from) }, (_, index) => {
      const event = benchEvent(from + index);
      return { key: toKey(event), value: codec.encode(event).bytes };
    });
    await fillTopic(kafka, topic, messages);
  }
  bench.progress(`${events.toLocaleString("en-US")} events are in the topic`);

  const sql = openDatabase({
    url: database.url,
    applicationName: "fabric-bench-replay",
    maxConnections: 2,
    statementTimeoutMs: longMs,
  });
  bench.onEnd(() => sql.end());
  const ends = await admin.fetchTopicOffsets(topic);
  const ranges = ends.map(({ partition, high }) => ({ topic, partition, from: 0n, to: BigInt(high) }));
  const names = toRunNames("bench", "candidate", database.name);

  async function untilRead(hostSchema: string): Promise<number> {
    let last = { atMs: preciseNowMs(), read: 0 };
    let first: { readonly atMs: number; readonly read: number } | null = null;
    for (;;) {
      const { rows } = await sql.query<{ n: bigint }>(
        `SELECT coalesce(sum(next_offset), 0)::bigint AS n FROM "${hostSchema}".watermarks WHERE processor = 'audit'`,
      );
      const read = Number(rows[0]?.n ?? 0n);
      const atMs = preciseNowMs();
      if (read > 0) first ??= { atMs, read };
      if (first !== null && read === events) return ((events - first.read) / (atMs - first.atMs)) * 1000;
      if (read > last.read) last = { atMs, read };
      if (atMs > last.atMs + stallDeadlineMs)
        throw new Error(`stands still at ${String(read)} of ${String(events)} events`);
      await wait(pollMs);
    }
  }

  async function runLive(): Promise<number> {
    await sql.query("ALTER TABLE audit.trail DISABLE TRIGGER USER");
    await sql.query("TRUNCATE audit.trail, host.inbox, host.watermarks");
    await sql.query("ALTER TABLE audit.trail ENABLE TRIGGER USER");
    await sql.query("CHECKPOINT");
    const settings: ReplaySettings = {
      way: "live",
      brokers,
      databaseUrl: database.roleUrl("fabric_host"),
      topicPrefix: prefix,
    };
    const child = await startProcess("replay-process", settings);
    const rate = await untilRead("host");
    await child.stop();
    return rate;
  }

  async function runShadow(repetition: number): Promise<number> {
    await sql.transaction((tx) => dropRun(tx, names));
    await makeRunSchemas({
      adminUrl: database.url,
      migrationsDir: join(bench.projectDir, "deploy", "migrations"),
      processor: "audit",
      processorDir: null,
      names,
    });
    await placeRun(sql, names.host, "audit", ranges);
    await sql.query("CHECKPOINT");
    const address = new URL(database.url);
    address.username = names.role;
    address.password = await openRunRole(sql, { names });
    const settings: ReplaySettings = {
      way: "shadow",
      job: {
        processor: "audit",
        versionFile: null,
        pricesDir: "",
        budgetsFile: "",
        databaseUrl: address.href,
        names,
        kafka: { brokers: [...brokers], tls: false, sasl: null },
        registry: { url: "http://127.0.0.1:1", username: null, password: null },
        topicPrefix: prefix,
        groupId: `${prefix}shadow-${String(repetition)}`,
        environment: "bench",
      },
      ranges: ranges.map((one) => ({ ...one, from: String(one.from), to: String(one.to) })),
    };
    const child = await startProcess("replay-process", settings);
    const rate = await untilRead(names.host);
    await child.stop();
    return rate;
  }
  bench.onEnd(() => sql.transaction((tx) => dropRun(tx, names)));

  const live: number[] = [];
  const shadow: number[] = [];
  const compared: number[] = [];
  for (let repetition = 1; repetition <= bench.sizes.repetitions; repetition += 1) {
    const turns = [
      async () => live.push(await runLive()),
      async () => shadow.push(await runShadow(repetition)),
    ];
    for (const turn of repetition % 2 === 0 ? [...turns].reverse() : turns) await turn();
    await sql.query("ANALYZE audit.trail");
    await sql.query(`ANALYZE "${names.projection}".trail`);
    const startedMs = preciseNowMs();
    const [trail] = await sql.transaction((tx) =>
      compareTables(tx, { live: "audit", shadow: names.projection }, [{ table: "trail" }], 5),
    );
    const seconds = (preciseNowMs() - startedMs) / 1000;
    if (trail === undefined || trail.onlyLive + trail.onlyShadow + trail.changed > 0)
      throw new Error(`shadow and live projection differ: ${JSON.stringify(trail?.samples)}`);
    compared.push(events / seconds);
    bench.progress(
      `${String(repetition)}: live ${String(Math.round(live.at(-1) ?? 0))}/s, shadow ${String(Math.round(shadow.at(-1) ?? 0))}/s, compared in ${seconds.toFixed(1)} s, this process ${String(Math.round(process.memoryUsage().rss / 1_048_576))} MiB`,
    );
  }
  const note = `${String(events)} events of 900 bytes into the audit trail (50 columns, 7 indexes), 6 partitions, each a fresh process`;
  const shared = { unit: "events/s", against: "peer" as const, command: bench.command, note };
  return [
    toRow(
      {
        name: "replay, topic to shadow",
        other: "live host, same topic",
        target: { better: "higher", ratio: 0.8 },
        ...shared,
      },
      shadow,
      live,
    ),
    toRow(
      { name: "comparison, rows of each side", other: "replay, topic to shadow", ...shared },
      compared,
      shadow,
    ),
  ];
}
