import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fetchOnce } from "../../services/stack/downloads.ts";
import type { Java } from "../../services/stack/java.ts";
import { findJava } from "../../services/stack/java.ts";
import { findProgram, run, thisMachine } from "../../services/stack/machine.ts";
import type { BenchDatabase } from "./bench-database.ts";
import type { Bench } from "./figure.ts";

/** Debezium 3 is compiled for it. */
const javaMajor = 17;

/** Where the peer's marker rows go while it learns its position. */
export const markerType = "bench.marker";

/** How Debezium is set up. `default` is what a first reader of its manual gets. */
export type DebeziumSetup = "default" | "tuned";

const engineTuning: Readonly<Record<DebeziumSetup, Readonly<Record<string, string>>>> = {
  default: {},
  // The queue has to hold more than one batch; it is Debezium's own ratio of 4.
  tuned: { "max.batch.size": "8192", "max.queue.size": "32768", "poll.interval.ms": "10" },
};
const producerTuning: Readonly<Record<DebeziumSetup, Readonly<Record<string, string>>>> = {
  default: {},
  // The fastest Java producer of the baselines; each batch is flushed, so that waiting for more is no use.
  tuned: { "batch.size": "131072", "linger.ms": "0" },
};

/** The peer, fetched and compiled. */
export interface Debezium {
  readonly java: Java;
  readonly classPath: string;
  readonly folder: string;
}

/** A running engine. */
export interface DebeziumRun {
  readonly pid: number;
  /** Rejects when it ends by itself. */
  readonly broken: Promise<never>;
  stop(): Promise<void>;
}

/** Fetches Debezium with Maven, once, and compiles the one class around it. */
export async function prepareDebezium(bench: Bench): Promise<Debezium> {
  const machine = thisMachine();
  const sources = join(bench.projectDir, "test", "bench", "debezium");
  const java = await findJava(machine, javaMajor, "Debezium, the peer of this benchmark,");
  const jars = await fetchOnce(join(bench.projectDir, ".fabric", "downloads", "debezium"), async (into) => {
    const maven = await findProgram(machine, "mvn");
    if (maven === undefined) throw new Error("maven fetches Debezium: apt-get install maven");
    bench.progress("Debezium: downloading");
    let files = 0;
    const fetched = await run(
      maven,
      ["-B", "-f", join(sources, "pom.xml"), "dependency:copy-dependencies", `-DoutputDirectory=${into}`],
      {
        env: { ...machine.env, JAVA_HOME: java.home },
        onLine: (line) => {
          if (!/^.*Downloaded from .*\.jar/.test(line)) return;
          files += 1;
          bench.progress(`Debezium: ${String(files)} files`);
        },
      },
    );
    if (fetched.exitCode !== 0)
      throw new Error(`maven could not fetch Debezium: ${fetched.output.slice(-800)}`);
  });
  const folder = join(bench.projectDir, ".fabric", "bench", `debezium-${String(process.pid)}`);
  const classes = join(folder, "classes");
  await mkdir(classes, { recursive: true });
  bench.onEnd(() => rm(folder, { recursive: true, force: true }));
  const compiled = await run(join(java.home, "bin", "javac"), [
    "-cp",
    join(jars, "*"),
    "-d",
    classes,
    join(sources, "DebeziumRelay.java"),
  ]);
  if (compiled.exitCode !== 0) {
    throw new Error(
      `javac failed (a JDK is needed, not a JRE: apt-get install openjdk-21-jdk-headless): ${compiled.output.slice(-800)}`,
    );
  }
  return { java, classPath: `${classes}:${join(jars, "*")}`, folder };
}

/** One engine on one outbox, with a replication slot of its own. */
export interface DebeziumInstance {
  /** Makes slot, publication and stored position: what is committed from now on is the backlog of the next start. */
  prime(): Promise<void>;
  start(): Promise<DebeziumRun>;
  /** Gives the slot back: an unread one keeps the write-ahead log for ever. */
  remove(): Promise<void>;
}

export async function createDebezium(
  bench: Bench,
  debezium: Debezium,
  database: BenchDatabase,
  options: {
    readonly setup: DebeziumSetup;
    readonly brokers: readonly string[];
    readonly topicPrefix: string;
  },
): Promise<DebeziumInstance> {
  const slot = `${database.name}_${options.setup}`.toLowerCase();
  const folder = join(debezium.folder, slot);
  await mkdir(folder, { recursive: true });
  const address = new URL(database.url);
  const engine = {
    name: slot,
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
    "offset.storage.file.filename": join(folder, "offsets"),
    "topic.prefix": slot,
    "database.hostname": address.hostname,
    "database.port": address.port,
    "database.user": decodeURIComponent(address.username),
    "database.password": decodeURIComponent(address.password),
    "database.dbname": database.name,
    "plugin.name": "pgoutput",
    "slot.name": slot,
    "publication.name": slot,
    "publication.autocreate.mode": "filtered",
    "table.include.list": "outbox.events",
    "snapshot.mode": "no_data",
    "tombstones.on.delete": "false",
    transforms: "outbox",
    "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
    "transforms.outbox.route.topic.replacement": `${options.topicPrefix}\${routedByValue}`,
    ...engineTuning[options.setup],
  };
  const producer = {
    "bootstrap.servers": options.brokers.join(","),
    acks: "all",
    "compression.type": "none",
    ...producerTuning[options.setup],
  };
  const producerFile = join(folder, "producer.properties");
  await writeFile(producerFile, toProperties(producer));
  const logFile = join(folder, "log");

  let child: ChildProcess | undefined;
  bench.onEnd(async () => {
    if (child !== undefined && child.exitCode === null) child.kill("SIGKILL");
    await Promise.resolve();
  });

  async function launch(expected: number, more: Readonly<Record<string, string>>): Promise<ChildProcess> {
    const engineFile = join(folder, "engine.properties");
    await writeFile(engineFile, toProperties({ ...engine, ...more }));
    const args = [
      "-Xmx1g",
      "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
      "-cp",
      debezium.classPath,
      "DebeziumRelay",
      engineFile,
      producerFile,
      String(expected),
    ];
    const started = spawn(debezium.java.program, args, { stdio: ["pipe", "pipe", "pipe"] });
    const log = createWriteStream(logFile, { flags: "a" });
    started.stdout.pipe(log, { end: false });
    started.stderr.pipe(log, { end: false });
    started.stdin.on("error", () => undefined);
    child = started;
    return started;
  }
  async function failed(what: string): Promise<Error> {
    const text = await readFile(logFile, "utf8").catch(() => "");
    return new Error(`Debezium (${options.setup}) ${what}: ${text.trim().slice(-1500)}`);
  }

  return {
    async prime() {
      const started = await launch(1, { "offset.flush.interval.ms": "0" });
      let exitCode: number | null = null;
      const ended = once(started, "exit").then(([code]) => (exitCode = code as number | null));
      const untilMs = performance.now() + 60_000;
      while (started.exitCode === null && started.signalCode === null && performance.now() < untilMs) {
        await database.admin.query(
          `INSERT INTO outbox.events (id, aggregatetype, aggregateid, type, payload, lane, tenant_id, headers)
           VALUES (gen_random_uuid(), $1, 'marker', $1, '\\x00', 0, 'acme', '{}')`,
          [markerType],
        );
        await Promise.race([ended, wait(200)]);
      }
      if (started.exitCode === null) started.kill("SIGKILL");
      await ended;
      if (exitCode !== 0) throw await failed("found no position");
      await database.admin.query("TRUNCATE outbox.events");
    },
    async start() {
      const started = await launch(Number.MAX_SAFE_INTEGER, {});
      const ended = once(started, "exit");
      let stopping = false;
      const broken = ended.then(async () => {
        if (stopping) return new Promise<never>(() => undefined);
        throw await failed("ended by itself");
      });
      broken.catch(() => undefined);
      return {
        pid: started.pid ?? 0,
        broken,
        async stop() {
          stopping = true;
          started.stdin?.end();
          const timer = setTimeout(() => started.kill("SIGKILL"), 15_000);
          await ended;
          clearTimeout(timer);
        },
      };
    },
    async remove() {
      const dropped =
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1";
      for (let attempt = 1; ; attempt += 1) {
        try {
          await database.admin.query(dropped, [slot]);
          break;
        } catch (error) {
          // The server needs a moment to see that the engine is gone.
          if (attempt === 50) throw error;
          await wait(100);
        }
      }
      await database.admin.query(`DROP PUBLICATION IF EXISTS "${slot}"`);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function toProperties(entries: Readonly<Record<string, string>>): string {
  return Object.entries(entries)
    .map(([key, value]) => `${key}=${value.replaceAll("\\", "\\\\")}\n`)
    .join("");
}
