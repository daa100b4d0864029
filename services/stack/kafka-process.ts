import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Java } from "./java.ts";
import type { Machine } from "./machine.ts";
import { run } from "./machine.ts";
import type { LocalPart } from "./parts.ts";
import { portOf } from "./parts.ts";
import type { Ports } from "./ports.ts";
import { probeKafka } from "./probes.ts";
import { writeAtomically } from "./state.ts";

export type Properties = Readonly<Record<string, string | number | boolean>>;

/** Settings of the one broker; the reasons are beside the numbers. */
const BROKER: Properties = {
  "process.roles": "broker,controller",
  "node.id": 1,
  "controller.listener.names": "CONTROLLER",
  "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
  // A topic with a typing mistake must not come into being.
  "auto.create.topics.enable": false,
  // A lone consumer need not wait for others.
  "group.initial.rebalance.delay.ms": 0,
  "group.min.session.timeout.ms": 1_000,
  // One node holds every replica.
  "default.replication.factor": 1,
  "offsets.topic.replication.factor": 1,
  "transaction.state.log.replication.factor": 1,
  "transaction.state.log.min.isr": 1,
  "share.coordinator.state.topic.replication.factor": 1,
  "share.coordinator.state.topic.min.isr": 1,
  // 50 partitions each, the default, is seconds of start and hundreds of files for one machine.
  "offsets.topic.num.partitions": 4,
  "transaction.state.log.num.partitions": 4,
  "share.coordinator.state.topic.num.partitions": 1,
  "log.retention.check.interval.ms": 60_000,
  "log.segment.delete.delay.ms": 1_000,
  // The default takes 128 MiB of the heap.
  "log.cleaner.dedupe.buffer.size": 16_777_216,
  // A broker killed with SIGKILL may register again after this long; the default is 9 s.
  "broker.session.timeout.ms": 3_000,
  "broker.heartbeat.interval.ms": 500,
};

/** `key=value` lines, sorted, with the escapes of Java's properties format. */
export const renderProperties = (properties: Properties): string =>
  Object.entries(properties)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, value]) => `${key}=${String(value).replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n`)
    .join("");

export const brokerProperties = (dataDir: string, ports: Ports, overrides: Properties): Properties => {
  const broker = portOf(ports, "kafka");
  const controller = portOf(ports, "kafkaController");
  return {
    ...BROKER,
    "log.dirs": dataDir,
    listeners: `PLAINTEXT://127.0.0.1:${String(broker)},CONTROLLER://127.0.0.1:${String(controller)}`,
    "advertised.listeners": `PLAINTEXT://127.0.0.1:${String(broker)}`,
    "controller.quorum.voters": `1@127.0.0.1:${String(controller)}`,
    ...overrides,
  };
};

export interface KafkaOptions {
  /** Broker settings that win over ours. */
  readonly overrides?: Properties;
  /** JVM flags in place of ours, e.g. `-Xmx2g`. */
  readonly jvmFlags?: readonly string[];
}

const JVM_FLAGS = ["-Xms128m", "-Xmx512m", "-XX:+UseSerialGC"];

export interface KafkaContext {
  readonly stackDir: string;
  readonly machine: Machine;
  readonly clusterId: string;
  readonly version: string;
  readonly options: KafkaOptions;
  findJava(): Promise<Java>;
  /** Folder with the broker's jars. */
  fetchJars(): Promise<string>;
}

/** One Apache Kafka node, broker and controller in one JVM. */
export const kafkaPart = (context: KafkaContext): LocalPart => {
  const dir = join(context.stackDir, "kafka");
  const dataDir = join(dir, "data");
  const propertiesFile = join(dir, "server.properties");
  const tmpDir = join(dir, "tmp");
  const overrides = context.options.overrides ?? {};
  const jvmFlags = context.options.jvmFlags ?? JVM_FLAGS;
  const commonFlags = ["-XX:-UsePerfData", "-Xshare:auto", `-Djava.io.tmpdir=${tmpDir}`];

  const format = async (java: Java, jars: string): Promise<void> => {
    // A format cut short leaves no meta.properties with this cluster's id, and is done again.
    const meta = await readFile(join(dataDir, "meta.properties"), "utf8").catch(() => "");
    if (meta.includes(`cluster.id=${context.clusterId}`)) return;
    await rm(dataDir, { recursive: true, force: true });
    const tool = ["-cp", join(jars, "*"), "kafka.tools.StorageTool"];
    const formatted = await run(
      java.program,
      [
        ...commonFlags,
        "-XX:TieredStopAtLevel=1",
        ...tool,
        "format",
        "-t",
        context.clusterId,
        "-c",
        propertiesFile,
      ],
      { env: context.machine.env },
    );
    if (formatted.exitCode !== 0) {
      throw new Fault(
        "STACK_FAILED",
        `kafka storage was not formatted: ${formatted.output.trim().slice(-800)}`,
      );
    }
  };

  return {
    name: "kafka",
    dir,
    portNames: ["kafka", "kafkaController"],
    settings: () => JSON.stringify([context.version, overrides, jvmFlags, BROKER]),
    prepare: async (ports) => {
      const [java, jars] = await Promise.all([context.findJava(), context.fetchJars()]);
      await mkdir(tmpDir, { recursive: true });
      await writeAtomically(propertiesFile, renderProperties(brokerProperties(dataDir, ports, overrides)));
      await format(java, jars);
      return {
        command: java.program,
        args: [
          ...jvmFlags,
          ...commonFlags,
          "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
          "-Dorg.slf4j.simpleLogger.showDateTime=true",
          "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
          "-cp",
          join(jars, "*"),
          "kafka.Kafka",
          propertiesFile,
        ],
        env: context.machine.env,
        cwd: dir,
      };
    },
    probe: (ports) => probeKafka("127.0.0.1", portOf(ports, "kafka"), context.clusterId),
    stopSignal: "SIGTERM",
    stopDeadlineMs: 15_000,
    readyDeadlineMs: 90_000,
  };
};
