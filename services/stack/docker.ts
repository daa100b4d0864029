import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Fault } from "../../schemas/faults.ts";
import type { StackVersions } from "./downloads.ts";
import type { Properties } from "./kafka-process.ts";
import type { Machine } from "./machine.ts";
import { findProgram, run } from "./machine.ts";
import type { Log, PartName } from "./parts.ts";
import { portOf } from "./parts.ts";
import { pickPort } from "./ports.ts";
import type { PortName } from "./ports.ts";
import type { PostgresSettings } from "./postgres-process.ts";
import { settingsArgs } from "./postgres-process.ts";
import { probeKafka, probePostgres, probeRegistry } from "./probes.ts";
import { registryUrlOf } from "./registry-process.ts";
import type { StackSecrets, StackState } from "./state.ts";
import { writeAtomically } from "./state.ts";

const ASK_TIMEOUT_MS = 3_000;
const READY_DEADLINE_MS = 180_000;

/** The version of the engine that answers, with its compose; undefined when there is none. */
export const askDocker = async (machine: Machine): Promise<string | undefined> => {
  const docker = await findProgram(machine, "docker");
  if (docker === undefined) return undefined;
  const info = await run(docker, ["info", "--format", "{{.ServerVersion}}"], {
    env: machine.env,
    timeoutMs: ASK_TIMEOUT_MS,
  });
  const version = info.output.trim();
  if (info.exitCode !== 0 || !/^\d[\w.+-]*$/.test(version)) return undefined;
  const compose = await run(docker, ["compose", "version"], { env: machine.env, timeoutMs: ASK_TIMEOUT_MS });
  return compose.exitCode === 0 ? version : undefined;
};

export interface DockerContext {
  readonly name: string;
  readonly stackDir: string;
  readonly packageDir: string;
  readonly machine: Machine;
  readonly state: StackState;
  readonly secrets: StackSecrets;
  readonly versions: StackVersions;
  readonly kafkaOverrides: Properties;
  readonly postgresSettings: PostgresSettings;
  readonly log: Log;
}

/** A second compose file with what the caller changes; JSON is YAML. */
export const renderOverride = (kafka: Properties, postgres: PostgresSettings): string => {
  const environment = Object.fromEntries(
    Object.entries(kafka).map(([key, value]) => [
      `KAFKA_${key.toUpperCase().replaceAll(".", "_")}`,
      String(value),
    ]),
  );
  const command = ["postgres", ...settingsArgs({ max_connections: 200, ...postgres })];
  return `${JSON.stringify({ services: { kafka: { environment }, postgres: { command } } }, null, 2)}\n`;
};

const compose = async (context: DockerContext, ...args: string[]): Promise<string> => {
  const port = (name: PortName): string => String(portOf(context.state.ports, name));
  const files = [
    "-f",
    join(context.packageDir, "deploy", "compose.yaml"),
    "-f",
    join(context.stackDir, "compose.override.yaml"),
  ];
  const done = await run("docker", ["compose", "-p", `fabric-${context.name}`, ...files, ...args], {
    env: {
      ...context.machine.env,
      FABRIC_KAFKA_PORT: port("kafka"),
      FABRIC_REGISTRY_PORT: port("registry"),
      FABRIC_POSTGRES_PORT: port("postgres"),
      FABRIC_KAFKA_VERSION: context.versions.kafka,
      FABRIC_APICURIO_VERSION: context.versions.apicurio,
      FABRIC_POSTGRES_PASSWORD: context.secrets.postgresPassword,
      FABRIC_REGISTRY_PASSWORD: context.secrets.registryPassword,
    },
    onLine: (line) => {
      if (args[0] === "up") context.log(`docker: ${line.trim()}`);
    },
  });
  if (done.exitCode !== 0)
    throw new Fault("STACK_FAILED", `docker compose ${args.join(" ")}: ${done.output.trim().slice(-800)}`);
  return done.output;
};

export const dockerProbe = (state: StackState, part: PartName): Promise<boolean> => {
  if (part === "kafka") return probeKafka("127.0.0.1", portOf(state.ports, "kafka"));
  if (part === "postgres") return probePostgres("127.0.0.1", portOf(state.ports, "postgres"));
  return probeRegistry(registryUrlOf(state.ports));
};

const waitUntilServing = async (context: DockerContext, parts: readonly PartName[]): Promise<void> => {
  const until = Date.now() + READY_DEADLINE_MS;
  for (const part of parts) {
    while (!(await dockerProbe(context.state, part))) {
      if (Date.now() > until)
        throw new Fault(
          "STACK_FAILED",
          `${part} does not serve, see docker compose -p fabric-${context.name} logs ${part}`,
        );
      await wait(200);
    }
  }
};

/** Brings the three containers up; those that run with the same settings stay as they are. */
export const dockerUp = async (context: DockerContext, save: () => Promise<void>): Promise<void> => {
  await writeAtomically(
    join(context.stackDir, "compose.override.yaml"),
    renderOverride(context.kafkaOverrides, context.postgresSettings),
  );
  const running = await isServing(context);
  if (!running) {
    // A port that one of our own containers holds is not free, and is the right one.
    const isOurs =
      context.state.ports.registry !== undefined && (await compose(context, "ps", "-q")).trim() !== "";
    const taken = new Set<number>();
    for (const name of ["kafka", "registry", "postgres"] as const) {
      const kept = context.state.ports[name];
      const port = isOurs && kept !== undefined ? kept : await pickPort(context.stackDir, name, kept, taken);
      context.state.ports[name] = port;
      taken.add(port);
    }
    await save();
  }
  await compose(context, "up", "-d", "--wait");
  await waitUntilServing(context, ["kafka", "postgres", "registry"]);
};

const isServing = async (context: DockerContext): Promise<boolean> => {
  if (context.state.ports.registry === undefined) return false;
  const answers = await Promise.all(
    (["kafka", "postgres", "registry"] as const).map((part) => dockerProbe(context.state, part)),
  );
  return answers.every(Boolean);
};

export const dockerStart = async (context: DockerContext, part: PartName): Promise<void> => {
  await compose(context, "start", part);
  await waitUntilServing(context, [part]);
};

export const dockerStop = (context: DockerContext, part: PartName): Promise<string> =>
  compose(context, "stop", part);

export const dockerKill = (context: DockerContext, part: PartName, signal: NodeJS.Signals): Promise<string> =>
  compose(context, "kill", "-s", signal, part);

export const dockerDown = (context: DockerContext, wipe: boolean): Promise<string> =>
  compose(context, "down", "--remove-orphans", ...(wipe ? ["--volumes"] : []));
