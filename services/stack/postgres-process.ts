import { chmod, chown, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Machine } from "./machine.ts";
import { namesIn, run } from "./machine.ts";
import type { LocalPart } from "./parts.ts";
import { portOf } from "./parts.ts";
import type { Ports } from "./ports.ts";
import { copyBinaries, findPostgres } from "./postgres-binaries.ts";
import type { PostgresBinaries, PostgresOrigin } from "./postgres-binaries.ts";
import type { RunAs } from "./postgres-user.ts";
import { canReach } from "./postgres-user.ts";
import { probePostgres } from "./probes.ts";
import type { StackSecrets } from "./state.ts";

export type PostgresSettings = Readonly<Record<string, string | number | boolean>>;

const SETTINGS: PostgresSettings = {
  listen_addresses: "127.0.0.1",
  // No socket: nobody reaches this server but by its port and password.
  unix_socket_directories: "",
  // Room for every pool of `fabric serve`, the registry and test files side by side.
  max_connections: 200,
  shared_buffers: "128MB",
  password_encryption: "scram-sha-256",
  timezone: "UTC",
  log_timezone: "UTC",
};

/** `-c name=value` pairs, ours first, so that the caller's win. */
export const settingsArgs = (settings: PostgresSettings): string[] =>
  Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${String(value)}`]);

export const postgresUrlOf = (ports: Ports, secrets: StackSecrets): string =>
  `postgres://fabric:${secrets.postgresPassword}@127.0.0.1:${String(portOf(ports, "postgres"))}/fabric`;

export interface PostgresContext {
  /** Made, and owned by the user that runs the server. */
  readonly dir: string;
  readonly user: RunAs;
  readonly machine: Machine;
  readonly packageDir: string;
  readonly secrets: StackSecrets;
  readonly settings: PostgresSettings;
  readonly origin?: PostgresOrigin;
  onVersion(version: string): void;
}

/** PostgreSQL, with the stack's superuser `fabric`, its database `fabric`, and the registry's role and database. */
export const postgresPart = (context: PostgresContext): LocalPart => {
  const { dir, user, machine, secrets } = context;
  const dataDir = join(dir, "data");
  // A user without a home folder must not be sent to root's.
  const env = { ...machine.env, HOME: dir, LC_ALL: "C" };
  const settings = { ...SETTINGS, ...context.settings };

  const findBinaries = async (): Promise<PostgresBinaries> => {
    const made = (await readFile(join(dataDir, "PG_VERSION"), "utf8").catch(() => "")).trim();
    const found = await findPostgres(machine, context.packageDir, {
      ...(made !== "" && { major: Number(made) }),
      ...(context.origin && { origin: context.origin }),
    });
    return (await canReach(user, join(found.binDir, "postgres"))) ? found : copyBinaries(found, dir);
  };

  const runAs = async (
    what: string,
    program: string,
    args: readonly string[],
    input?: string,
  ): Promise<void> => {
    const done = await run(program, args, { ...user, env, cwd: dir, ...(input !== undefined && { input }) });
    const failed = done.exitCode !== 0 || /^.*(?:ERROR|FATAL|PANIC):.*$/m.test(done.output);
    if (failed) throw new Fault("STACK_FAILED", `${what} failed: ${done.output.trim().slice(-800)}`);
  };

  const initialise = async (binaries: PostgresBinaries): Promise<void> => {
    // The initdb of a start that was killed may still be writing: its folder is not ours.
    for (const name of await namesIn(dir)) {
      if (name.startsWith("data.next-")) await rm(join(dir, name), { recursive: true, force: true });
    }
    const next = join(dir, `data.next-${String(process.pid)}`);
    const passwordFile = join(dir, "password");
    await writeFile(passwordFile, secrets.postgresPassword, { mode: 0o600 });
    await chmod(passwordFile, 0o600);
    if (user.uid !== undefined && user.gid !== undefined) await chown(passwordFile, user.uid, user.gid);
    try {
      const initdb = join(binaries.binDir, "initdb");
      const access = ["--username=fabric", `--pwfile=${passwordFile}`, "--auth=scram-sha-256"];
      await runAs("initdb", initdb, ["-D", next, ...access, "--encoding=UTF8", "--locale=C"]);
    } finally {
      await rm(passwordFile, { force: true });
    }
    // Single-user mode needs no client and no port. One statement a line.
    await runAs(
      "making the databases",
      join(binaries.binDir, "postgres"),
      ["--single", "-D", next, "postgres"],
      [
        `CREATE ROLE registry LOGIN PASSWORD '${secrets.registryPassword}'`,
        "CREATE DATABASE registry OWNER registry",
        "CREATE DATABASE fabric OWNER fabric",
        "",
      ].join("\n"),
    );
    await rename(next, dataDir);
  };

  return {
    name: "postgres",
    dir,
    portNames: ["postgres"],
    settings: () => JSON.stringify(settings),
    prepare: async (ports) => {
      const binaries = await findBinaries();
      context.onVersion(binaries.version);
      const isMade = await readFile(join(dataDir, "PG_VERSION"), "utf8").then(
        () => true,
        () => false,
      );
      if (!isMade) await initialise(binaries);
      // Our own server is dead here. Its file would stop the start when its pid now belongs to another process of the user.
      await rm(join(dataDir, "postmaster.pid"), { force: true });
      return {
        command: join(binaries.binDir, "postgres"),
        args: ["-D", dataDir, ...settingsArgs({ ...settings, port: portOf(ports, "postgres") })],
        env,
        cwd: dir,
        ...user,
      };
    },
    probe: (ports) => probePostgres("127.0.0.1", portOf(ports, "postgres")),
    // SIGTERM would wait for every client to leave.
    stopSignal: "SIGINT",
    stopDeadlineMs: 15_000,
    readyDeadlineMs: 60_000,
  };
};
