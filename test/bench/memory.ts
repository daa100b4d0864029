import { setTimeout as wait } from "node:timers/promises";
import type { EventType } from "../../schemas/catalog.ts";
import { eventTypes } from "../../schemas/catalog.ts";
import { notifyOutbox, outboxStatement } from "../../services/platform/outbox.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import { benchCodec, benchRows } from "./backlog.ts";
import { createProjection } from "./bench-projection.ts";
import { createTopic, openKafka } from "./bench-topic.ts";
import type { BenchProcess } from "./child-process.ts";
import { startProcess } from "./child-process.ts";
import type { Bench, Row } from "./figure.ts";
import { median } from "./figure.ts";
import { allowedText, openGate } from "./gate-under-test.ts";
import { openLoopHttp } from "./http-load.ts";
import { openLoop } from "./open-loop.ts";
import { rssMibOf } from "./process-use.ts";

/** A tenth of what the machine can do: what is measured is what is kept, not how fast it goes. */
const decisionsPerSecond = 50;
const eventsPerSecond = 200;
const agents = 16;
const sampleMs = 1_000;
/** Start, middle and end are each the median over this share of the run. */
const windowShare = 0.1;
/** More growth than this from the middle to the end is a leak, or looks like one. */
const flatGrowth = 1.1;
/** A runtime fills its heap before it first cleans up: a shorter run says nothing of growth. */
const tellingMinutes = 3;

/** Types that the gate's decisions and our own writer put into the outbox. */
const carried = eventTypes.filter(
  (type: EventType) =>
    type.startsWith("agent.tool.") ||
    type.startsWith("agent.session.") ||
    type.startsWith("agent.capability."),
);

/** Resident memory of each service over a steady run: gate → outbox → relay → topic → host. */
export async function memory(bench: Bench): Promise<Row[]> {
  const { kafkaBrokers: brokers } = await bench.stack();
  const database = await bench.database("memory");
  await createProjection(database.admin);
  const topicPrefix = `${database.name}.`;
  const admin = openKafka(brokers).admin();
  await admin.connect();
  bench.onEnd(() => admin.disconnect());
  for (const type of carried) await createTopic(admin, topicPrefix + type);
  bench.onEnd(() => admin.deleteTopics({ topics: carried.map((type) => topicPrefix + type) }));

  const gate = await openGate(bench, database);
  const start = async (name: string, role: string): Promise<BenchProcess> => {
    const process = await startProcess(name, { brokers, databaseUrl: database.roleUrl(role), topicPrefix });
    bench.onEnd(() => process.stop());
    return process;
  };
  const services = {
    gate: gate.process,
    relay: await start("relay-process", "fabric_relay"),
    host: await start("host-process", "fabric_host"),
  };
  type Service = keyof typeof services;
  const names = Object.keys(services) as Service[];
  const samples = new Map<Service, number[]>(names.map((name) => [name, []]));

  const seconds = Math.ceil(bench.sizes.minutes * 60);
  const writer = openDatabase({
    url: database.roleUrl("fabric_host"),
    applicationName: "fabric-bench-writer",
    maxConnections: 4,
  });
  bench.onEnd(() => writer.end());
  const codec = benchCodec();
  let running = true;
  const sampling = (async (): Promise<void> => {
    for (let second = 1; running; second += 1) {
      await wait(sampleMs);
      for (const name of names) samples.get(name)?.push(rssMibOf(services[name].pid));
      if (second % 30 === 0) {
        const now = names
          .map((name) => `${name} ${(samples.get(name)?.at(-1) ?? 0).toFixed(0)} MiB`)
          .join(", ");
        bench.progress(`${String(second)} s of ${String(seconds)}: ${now}`);
      }
    }
  })();
  bench.progress(
    `${String(decisionsPerSecond)} decisions and ${String(eventsPerSecond)} further events a second for ${String(seconds)} s`,
  );
  await Promise.race([
    Promise.all([
      openLoopHttp(gate.target, decisionsPerSecond, seconds, agents, allowedText),
      openLoop(eventsPerSecond, seconds, async (index) => {
        await writer.query(outboxStatement(benchRows(codec, index, index + 1)));
        notifyOutbox(writer);
      }),
    ]),
    ...names.map((name) => services[name].broken),
  ]);
  running = false;
  await sampling;

  await eventually(
    () => database.admin.query<{ left: number }>("SELECT count(*)::int AS left FROM outbox.events"),
    ({ rows }) => rows[0]?.left === 0,
    { deadlineMs: 60_000, what: "an empty outbox at the end" },
  );
  const written = Math.round(eventsPerSecond * seconds);
  await eventually(
    () => database.admin.query<{ rows: number }>("SELECT count(*)::int AS rows FROM projection.calls"),
    ({ rows }) => rows[0]?.rows === written,
    { deadlineMs: 60_000, what: `${String(written)} rows in the projection` },
  );
  for (const name of names) await services[name].stop();

  return names.map((name) => {
    const series = samples.get(name) ?? [];
    const first = windowMedian(series, 0);
    const middle = windowMedian(series, 0.5 - windowShare / 2);
    const end = windowMedian(series, 1 - windowShare);
    const slope = slopePerMinute(series.slice(Math.floor(series.length / 2)));
    return {
      name: `memory, ${name}`,
      unit: "MiB at the end",
      ours: end,
      against: "budget",
      other: "itself at half time",
      theirs: middle,
      ratio: end / middle,
      ...(bench.sizes.minutes >= tellingMinutes && {
        target: { better: "lower", ratio: flatGrowth } as const,
      }),
      command: bench.command,
      note: `start ${first.toFixed(0)}, middle ${middle.toFixed(0)}, end ${end.toFixed(0)} MiB; second half ${slope >= 0 ? "+" : ""}${slope.toFixed(2)} MiB a minute; ${String(seconds)} s at ${String(decisionsPerSecond)} decisions/s and ${String(eventsPerSecond)} events/s`,
    };
  });
}

function windowMedian(series: readonly number[], from: number): number {
  const begin = Math.floor(series.length * from);
  return median(series.slice(begin, begin + Math.max(1, Math.ceil(series.length * windowShare))));
}

/** Least squares over samples a second apart. */
function slopePerMinute(series: readonly number[]): number {
  const middle = (series.length - 1) / 2;
  const mean = series.reduce((sum, value) => sum + value, 0) / series.length;
  let above = 0;
  let below = 0;
  series.forEach((value, at) => {
    above += (at - middle) * (value - mean);
    below += (at - middle) ** 2;
  });
  return (above / below) * 60 * (1000 / sampleMs);
}
