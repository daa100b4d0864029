import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { StackHandle } from "../../services/stack/stack.ts";
import { downStack, stackStatus, upStack } from "../../services/stack/stack.ts";
import { avro } from "./avro.ts";
import { createBenchDatabase } from "./bench-database.ts";
import type { Bench, Figure, Row, Sizes } from "./figure.ts";
import { gate } from "./gate.ts";
import { goal } from "./goal.ts";
import { hooks } from "./hooks.ts";
import { host } from "./host.ts";
import { latency } from "./latency.ts";
import { memory } from "./memory.ts";
import { policy } from "./policy.ts";
import { processors } from "./processors.ts";
import { questions } from "./questions.ts";
import { redrive } from "./redrive.ts";
import { relay } from "./relay.ts";
import { replay } from "./replay.ts";
import { renderTable, saveReport } from "./report.ts";
import { storm } from "./storm.ts";

const figures: Readonly<Record<string, Figure>> = {
  avro,
  relay,
  latency,
  host,
  gate,
  hooks,
  policy,
  processors,
  goal,
  questions,
  replay,
  storm,
  redrive,
  memory,
};

/** The checkout: `test/bench` and its Java peer are no part of the compiled product. */
function findProjectDir(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "Makefile"))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error("benchmarks run in a checkout, with `make bench`");
    folder = parent;
  }
  return folder;
}

const endDeadlineMs = 15_000;
/** Set by Ctrl-C: what fails from then on fails because its servers are gone. */
let leaving = false;

function sizeOf(name: (typeof sizeNames)[number], byDefault: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return byDefault;
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new Error(`${name} is a positive number, not ${text}`);
  return value;
}

/** Settings of the environment; bash keeps SECONDS for itself, hence DURATION, which is in seconds. */
const sizeNames = ["ROWS", "REPS", "DURATION", "MINUTES"] as const;

function readSizes(): Sizes {
  return {
    rows: sizeOf("ROWS", 200_000),
    repetitions: sizeOf("REPS", 3),
    seconds: sizeOf("DURATION", 10),
    minutes: sizeOf("MINUTES", 5),
  };
}

function commandOf(name: string): string {
  const set = sizeNames.flatMap((size) => {
    const value = process.env[size];
    return value === undefined || value === "" ? [] : [`${size}=${value}`];
  });
  return [...set, `make bench NAME=${name}`].join(" ");
}

async function run(names: readonly string[]): Promise<void> {
  const projectDir = findProjectDir();
  const sizes = readSizes();
  const startedMs = performance.now();
  const ends: (() => Promise<unknown>)[] = [];
  const starting = new AbortController();
  let handle: Promise<StackHandle> | undefined;
  let databases = 0;

  const progress = (line: string): void => {
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    process.stderr.write(`${seconds.padStart(7)} s  ${line}\n`);
  };
  async function endAll(): Promise<void> {
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
      // Whatever hangs must not keep the servers up.
      await Promise.race([end(), wait(endDeadlineMs, undefined, { ref: false })]).catch((error: unknown) => {
        progress(`ending: ${String(error)}`);
      });
    }
    await handle?.then(
      (up) => up.stop(),
      () => undefined,
    );
  }
  const leave = (): void => {
    if (leaving) return;
    leaving = true;
    progress("broken off: everything that was started ends now");
    starting.abort();
    void endAll().then(() => process.exit(130));
  };
  process.on("SIGINT", leave);
  process.on("SIGTERM", leave);

  async function startStack(): Promise<StackHandle> {
    const place = { rootDir: projectDir, name: "bench" };
    // Empty servers: what a run that was killed left (topics, replication slots) must not weigh on this one.
    if ((await stackStatus(place)).users === 0) await downStack({ ...place, wipe: true });
    return upStack({
      ...place,
      detach: false,
      signal: starting.signal,
      // Debezium reads the write-ahead log; the setting is the same for every contestant.
      postgres: { wal_level: "logical" },
      kafka: { jvmFlags: ["-Xmx1g"] },
      log: progress,
    });
  }
  const stack = (): Promise<StackHandle> => (handle ??= startStack());
  const benchOf = (name: string): Bench => ({
    projectDir,
    sizes,
    command: commandOf(name),
    progress: (line) => progress(`${name}: ${line}`),
    stack,
    async database(purpose) {
      const { postgresUrl } = await stack();
      databases += 1;
      const database = await createBenchDatabase(
        postgresUrl,
        projectDir,
        `bench_${String(process.pid)}_${String(databases)}_${purpose}`,
      );
      ends.push(() => database.drop());
      return database;
    },
    onEnd: (end) => ends.push(end),
  });

  const rows: Row[] = [];
  try {
    for (const name of names) {
      const figure = figures[name];
      if (figure === undefined) continue;
      const measured = await figure(benchOf(name));
      progress(`${name}: report in ${await saveReport(projectDir, name, measured)}`);
      rows.push(...measured);
    }
  } finally {
    await endAll();
  }
  process.stdout.write(`\n${renderTable(rows)}\n`);
}

const asked = process.argv.slice(2);
const unknown = asked.find((name) => figures[name] === undefined);
if (unknown !== undefined) {
  console.error(`there is no benchmark \`${unknown}\`: take one of ${Object.keys(figures).join(", ")}`);
  process.exitCode = 2;
} else {
  run(asked.length > 0 ? asked : Object.keys(figures)).catch((error: unknown) => {
    if (leaving) return;
    console.error(error);
    process.exitCode = 1;
  });
}
