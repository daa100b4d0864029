import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Java } from "./java.ts";
import type { Machine } from "./machine.ts";
import type { LocalPart } from "./parts.ts";
import { portOf } from "./parts.ts";
import type { Ports } from "./ports.ts";
import { probeRegistry } from "./probes.ts";

export const registryUrlOf = (ports: Ports): string =>
  `http://127.0.0.1:${String(portOf(ports, "registry"))}/apis/ccompat/v7`;

/** Quick start over top speed: one collector thread, the first compiler only. */
const JVM_FLAGS = [
  "-Xms64m",
  "-Xmx384m",
  "-XX:+UseSerialGC",
  "-XX:TieredStopAtLevel=1",
  "-Xshare:auto",
  "-XX:-UsePerfData",
];

export interface RegistryContext {
  readonly stackDir: string;
  readonly machine: Machine;
  readonly databasePassword: string;
  readonly version: string;
  findJava(): Promise<Java>;
  /** Folder with `quarkus-run.jar`. */
  fetchApp(): Promise<string>;
}

/** Apicurio Registry on the stack's own PostgreSQL: in memory it would forget ids and compatibility at each restart. */
export const registryPart = (context: RegistryContext): LocalPart => {
  const dir = join(context.stackDir, "registry");
  const tmpDir = join(dir, "tmp");
  const settingsOf = (ports: Ports): Record<string, string> => ({
    "quarkus.http.host": "127.0.0.1",
    "quarkus.http.port": String(portOf(ports, "registry")),
    // Its health and metrics port would be 9000 on every interface; any free one will do, nobody asks it.
    "quarkus.management.host": "127.0.0.1",
    "quarkus.management.port": "0",
    "apicurio.storage.kind": "sql",
    "apicurio.storage.sql.kind": "postgresql",
    "apicurio.storage.snapshot.location": tmpDir,
    "apicurio.datasource.url": `jdbc:postgresql://127.0.0.1:${String(portOf(ports, "postgres"))}/registry`,
    "apicurio.datasource.username": "registry",
    "apicurio.datasource.jdbc.initial-size": "2",
    "apicurio.datasource.jdbc.min-size": "2",
    "apicurio.datasource.jdbc.max-size": "20",
    // A test's subjects go away with the test.
    "apicurio.rest.deletion.artifact.enabled": "true",
    "apicurio.rest.deletion.artifact-version.enabled": "true",
    "apicurio.rest.deletion.group.enabled": "true",
    "apicurio.ccompat.max-subjects": "100000",
  });
  return {
    name: "registry",
    dir,
    portNames: ["registry"],
    settings: (ports) => JSON.stringify([context.version, JVM_FLAGS, settingsOf(ports)]),
    prepare: async (ports) => {
      const [java, app] = await Promise.all([context.findJava(), context.fetchApp()]);
      await mkdir(tmpDir, { recursive: true });
      const settings = Object.entries(settingsOf(ports)).map(([key, value]) => `-D${key}=${value}`);
      return {
        command: java.program,
        args: [...JVM_FLAGS, `-Djava.io.tmpdir=${tmpDir}`, ...settings, "-jar", join(app, "quarkus-run.jar")],
        // The password goes by environment: arguments are readable by every user of the machine.
        env: { ...context.machine.env, APICURIO_DATASOURCE_PASSWORD: context.databasePassword },
        cwd: dir,
      };
    },
    probe: (ports) => probeRegistry(registryUrlOf(ports)),
    stopSignal: "SIGTERM",
    stopDeadlineMs: 10_000,
    readyDeadlineMs: 120_000,
  };
};
