import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import type { Processor } from "../../processors/kit/processor.ts";
import type { EventType } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { toKey } from "../../schemas/envelope.ts";
import { createActions } from "../../services/app/actions.ts";
import { createPeopleKey, openPeopleKey } from "../../services/app/people-key.ts";
import { loadProcessorVersion } from "../../services/app/load-version.ts";
import { runShadow } from "../../services/app/run-shadow.ts";
import type { RunPlace } from "../../services/app/shadow-job.ts";
import { factsOf, loadProcessorOfRun, processesOfRuns } from "../../services/app/shadow-process.ts";
import { registerSchemas } from "../../services/contracts/register.ts";
import type { Host } from "../../services/host/host.ts";
import type { HostOptions } from "../../services/host/host.ts";
import { issueLocalToken } from "../../services/platform/auth.ts";
import { createAuthKeysFile, loadAuthKeysFile } from "../../services/platform/auth-keys.ts";
import { EventCodec } from "../../services/platform/avro.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openRegistry } from "../../services/platform/registry.ts";
import { createKekFile } from "../../services/vault/kek-file.ts";
import type { CommandResult, TypedCommand } from "./command-line.ts";
import { typeCommand } from "./command-line.ts";
import { eventually } from "./eventually.ts";
import type { HostRig } from "./host-rig.ts";
import { openHostRig } from "./host-rig.ts";
import { projectDir } from "./stack.ts";

const passphrase = "correct horse battery";

/** The command line of an operator over topics and a database of its own. */
export interface ReplayRig {
  readonly host: HostRig;
  /** What `fabric.env` and the keys are in. */
  readonly root: string;
  readonly tokenFile: string;
  readonly agentTokenFile: string;
  /** Publishes with the ids of the registry. */
  publish(events: readonly Envelope[]): Promise<void>;
  startLive(processors: readonly Processor[], options?: Partial<HostOptions>): Host;
  /** Until the live processor stands at the ends of its topics. */
  settled(processor: Processor): Promise<void>;
  fabric(
    argv: readonly string[],
    options?: { readonly runs?: RunPlace } & Pick<TypedCommand, "signal">,
  ): Promise<CommandResult>;
  close(): Promise<void>;
}

/** Runs in this process: quick, and a version may be an object of the test. */
export function runsHere(versions: Readonly<Record<string, Processor>> = {}): RunPlace {
  const log = createLog({ service: "replay-test", level: "silent" });
  const find = async (question: Parameters<RunPlace["facts"]>[0]): Promise<Processor> => {
    const { versionFile } = question;
    const given = versionFile === null ? undefined : versions[versionFile.split("/").at(-1) ?? ""];
    if (given !== undefined) return given;
    return versionFile === null
      ? loadProcessorOfRun(question)
      : loadProcessorVersion(versionFile, question.processor, undefined);
  };
  return {
    facts: async (question) => factsOf(await find(question)),
    translate: () => Promise.reject(new Error("this test translates nothing")),
    start: async (job) => runShadow(job, await find(job), log),
  };
}

export const runsInProcesses = (): RunPlace =>
  processesOfRuns({ packageDir: projectDir, rootDir: projectDir });

export async function openReplayRig(types: readonly EventType[], partitions = 2): Promise<ReplayRig> {
  const { kafkaBrokers, registryUrl } = inject("stack");
  const host = await openHostRig();
  const root = await mkdtemp(join(tmpdir(), "replay-rig-"));
  const dir = join(root, ".fabric", "local", "services");
  await mkdir(dir, { recursive: true });
  const keysFile = join(dir, "token-keys.json");
  const kekFile = join(dir, "kek.json");
  const tokenFile = join(dir, "sre.token");
  const agentTokenFile = join(dir, "agent.token");
  await createAuthKeysFile(keysFile);
  await createKekFile(kekFile);
  // The machine's own key vouches for agents alone; a second one vouches for people, as an operator's does.
  await createPeopleKey(keysFile, passphrase);
  const people = await openPeopleKey(keysFile, passphrase);
  const token = {
    subject: "olga",
    lifetimeSeconds: 3_600,
    clock: systemClock,
  };
  await writeFile(
    tokenFile,
    await issueLocalToken({ ...token, tenantId: "fabric", roles: ["sre"], privateKey: people }),
  );
  await writeFile(
    agentTokenFile,
    await issueLocalToken({
      ...token,
      tenantId: "acme",
      roles: ["runtime"],
      privateKey: (await loadAuthKeysFile(keysFile)).signing,
    }),
  );
  await writeFile(
    join(dir, "fabric.env"),
    [
      `FABRIC_ENVIRONMENT=test`,
      `FABRIC_KAFKA_BROKERS=${kafkaBrokers.join(",")}`,
      `FABRIC_TOPIC_PREFIX=${host.prefix}`,
      `FABRIC_REGISTRY_URL=${registryUrl}`,
      `FABRIC_AUTH_KEYS_FILE=${keysFile}`,
      `FABRIC_KEK_FILE=${kekFile}`,
      `FABRIC_DATABASE_URL_ADMIN=${host.database.url}`,
      `FABRIC_DATABASE_URL_AUDITOR=${host.database.roleUrl("fabric_auditor")}`,
      "",
    ].join("\n"),
  );
  const registry = openRegistry({ url: registryUrl });
  const contracts = openDatabase({
    url: host.database.roleUrl("fabric_contracts"),
    applicationName: "replay-rig",
    maxConnections: 1,
  });
  const registered = await registerSchemas({
    registry,
    database: contracts,
    topicPrefix: host.prefix,
    types,
  });
  await contracts.end();
  const codec = new EventCodec({
    source: registry,
    schemaIds: new Map(registered.registrations.map(({ type, schemaId }) => [type, schemaId])),
  });
  await host.createTopics(types, partitions);
  const { Kafka, logLevel } = await import("kafkajs");
  const kafka = new Kafka({ clientId: "replay-rig", brokers: [...kafkaBrokers], logLevel: logLevel.NOTHING });
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();

  const rig: ReplayRig = {
    host,
    root,
    tokenFile,
    agentTokenFile,
    async publish(events) {
      const topicMessages = [...new Set(events.map(({ type }) => type))].map((type) => ({
        topic: host.topicOf(type),
        messages: events
          .filter((event) => event.type === type)
          .map((event) => ({
            key: toKey(event),
            value: codec.encode(event).bytes,
            timestamp: String(event.recorded_at),
          })),
      }));
      await producer.sendBatch({ topicMessages });
    },
    startLive: (processors, options = {}) => host.start(processors, { codec, ...options }),
    async settled(processor) {
      await eventually(
        async () => {
          const at = await host.watermarks(processor.name);
          for (const type of processor.topics) {
            for (const end of await host.admin.fetchTopicOffsets(host.topicOf(type))) {
              if (String(at.get(`${type}/${String(end.partition)}`) ?? -1n) !== end.high) return false;
            }
          }
          return true;
        },
        Boolean,
        { deadlineMs: 60_000, pollMs: 100, what: `${processor.name} at the end of its topics` },
      );
    },
    fabric: (argv, { runs = runsHere(), ...typed } = {}) =>
      typeCommand(argv, createActions({ packageDir: projectDir, rootDir: root }, runs), typed),
    async close() {
      const { rows } = await host.sql.query<{ name: string }>("SELECT name FROM replay.shadows");
      for (const { name } of rows) await rig.fabric(["replay", "drop", name, "--token-file", tokenFile]);
      await producer.disconnect();
      registry.close();
      await host.close();
      await rm(root, { recursive: true });
    },
  };
  return rig;
}
