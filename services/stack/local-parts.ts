import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fetchKafkaJars, fetchRegistryApp, versionsOfPom } from "./downloads.ts";
import type { DownloadContext, StackVersions } from "./downloads.ts";
import { findJava } from "./java.ts";
import type { Java } from "./java.ts";
import { kafkaPart } from "./kafka-process.ts";
import type { KafkaOptions } from "./kafka-process.ts";
import type { Machine } from "./machine.ts";
import type { LocalPart, Log, PartName } from "./parts.ts";
import { postgresPart } from "./postgres-process.ts";
import type { PostgresOrigin } from "./postgres-binaries.ts";
import type { PostgresSettings } from "./postgres-process.ts";
import { chooseUser, makePostgresDir } from "./postgres-user.ts";
import { registryPart } from "./registry-process.ts";
import type { StackSecrets, StackState } from "./state.ts";

/** Kafka 4 runs on 17, the registry's own build asks for 21. */
const KAFKA_JAVA = 17;
const REGISTRY_JAVA = 21;

export type LocalParts = Readonly<Record<PartName, LocalPart>>;

export interface LocalContext {
  readonly stackDir: string;
  readonly downloadsDir: string;
  readonly packageDir: string;
  readonly machine: Machine;
  readonly state: StackState;
  readonly secrets: StackSecrets;
  readonly kafka: KafkaOptions;
  readonly postgres: PostgresSettings;
  readonly postgresFrom?: PostgresOrigin;
  readonly log: Log;
}

export const pomFileOf = (packageDir: string): string => join(packageDir, "deploy", "local", "pom.xml");

export const loadVersions = async (packageDir: string): Promise<StackVersions> =>
  versionsOfPom(await readFile(pomFileOf(packageDir), "utf8"));

/** The three servers as processes of this machine; nothing is started, fetched or made but PostgreSQL's folder. */
export const toLocalParts = async (context: LocalContext): Promise<LocalParts> => {
  const { machine, state, stackDir } = context;
  const versions = await loadVersions(context.packageDir);
  const kafkaJava = once(() => findJava(machine, KAFKA_JAVA, "Apache Kafka"));
  const registryJava = once(() => findJava(machine, REGISTRY_JAVA, "Apicurio Registry"));
  const downloads: DownloadContext = {
    downloadsDir: context.downloadsDir,
    pomFile: pomFileOf(context.packageDir),
    versions,
    machine,
    log: context.log,
    findJava: kafkaJava,
  };
  const named = async (name: string, java: Promise<Java>): Promise<Java> => {
    const found = await java;
    state.versions[name] = String(found.major);
    return found;
  };
  state.versions["kafka"] = versions.kafka;
  state.versions["registry"] = versions.apicurio;
  const user = await chooseUser(machine);
  state.postgresDir = await makePostgresDir(user, stackDir);
  return {
    kafka: kafkaPart({
      stackDir,
      machine,
      clusterId: context.secrets.kafkaClusterId,
      version: versions.kafka,
      options: context.kafka,
      findJava: () => named("kafkaJava", kafkaJava()),
      fetchJars: () => fetchKafkaJars(downloads),
    }),
    postgres: postgresPart({
      dir: state.postgresDir,
      user,
      machine,
      packageDir: context.packageDir,
      secrets: context.secrets,
      settings: context.postgres,
      ...(context.postgresFrom && { origin: context.postgresFrom }),
      onVersion: (version) => {
        state.versions["postgres"] = version;
      },
    }),
    registry: registryPart({
      stackDir,
      machine,
      databasePassword: context.secrets.registryPassword,
      version: versions.apicurio,
      findJava: () => named("registryJava", registryJava()),
      fetchApp: () => fetchRegistryApp(downloads),
    }),
  };
};

const once = <T>(work: () => Promise<T>): (() => Promise<T>) => {
  let started: Promise<T> | undefined;
  return () => (started ??= work());
};
