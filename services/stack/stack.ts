import { mkdir, readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import { chooseWay } from "./choose-way.ts";
import type { NamedEndpoints, Way } from "./choose-way.ts";
import {
  askDocker,
  dockerDown,
  dockerKill,
  dockerProbe,
  dockerStart,
  dockerStop,
  dockerUp,
} from "./docker.ts";
import type { DockerContext } from "./docker.ts";
import type { KafkaOptions } from "./kafka-process.ts";
import { countLeases, dropLease, takeLease } from "./leases.ts";
import { loadVersions, toLocalParts } from "./local-parts.ts";
import type { LocalParts } from "./local-parts.ts";
import { fileExists, findPackageDir, thisMachine } from "./machine.ts";
import type { Machine } from "./machine.ts";
import { partNames, portOf } from "./parts.ts";
import type { Log, PartName } from "./parts.ts";
import type { PostgresOrigin } from "./postgres-binaries.ts";
import type { PostgresSettings } from "./postgres-process.ts";
import { postgresUrlOf } from "./postgres-process.ts";
import { probeTcp } from "./probes.ts";
import { signalRecorded, waitForEnd } from "./process-record.ts";
import { registryUrlOf } from "./registry-process.ts";
import { ensurePart, pidOf, recordFileOf, stopPart } from "./run-part.ts";
import type { PartHost } from "./run-part.ts";
import { loadOrMakeSecrets, loadState, saveState, withLock } from "./state.ts";
import type { StackSecrets, StackState } from "./state.ts";

export interface StackPlace {
  /** The project folder; everything is kept below its `.fabric/`. */
  readonly rootDir: string;
  /** Stacks of different names run side by side. Default `local`. */
  readonly name?: string;
  readonly log?: Log;
  readonly machine?: Machine;
}

export interface UpOptions extends StackPlace {
  /** True: the stack stays until `downStack`. False: it ends with its last user. */
  readonly detach: boolean;
  readonly endpoints?: NamedEndpoints;
  readonly way?: "docker" | "local";
  readonly kafka?: KafkaOptions;
  /** Server settings, e.g. `{ wal_level: "logical" }`. */
  readonly postgres?: PostgresSettings;
  /** Whose PostgreSQL runs as a local process. Default: the system's, else npm's. */
  readonly postgresFrom?: PostgresOrigin;
  /** Ends a start that takes too long for the caller. */
  readonly signal?: AbortSignal;
}

/** Where a stack answers. */
export interface StackEndpoints {
  readonly kafkaBrokers: string[];
  /** The Confluent-compatible address, `…/apis/ccompat/v7`. */
  readonly registryUrl: string;
  /** As superuser, for a stack that we started. */
  readonly postgresUrl: string;
}

export interface StackHandle extends StackEndpoints {
  readonly way: Way;
  /** Why this way. */
  readonly reason: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly pids: Partial<Record<PartName, number>>;
  /** Gives the stack up: it ends unless others use it, or somebody asked for it to stay. */
  stop(): Promise<void>;
  /** Ends one server in good order. */
  stopPart(part: PartName): Promise<void>;
  /** Starts one server that was stopped or killed, on the same ports. */
  start(part: PartName): Promise<void>;
  restart(part: PartName): Promise<void>;
  /** Sends a signal to one server (default SIGKILL) and, when it is deadly, waits for its end. */
  kill(part: PartName, signal?: NodeJS.Signals): Promise<void>;
}

export interface PartStatus {
  readonly name: PartName;
  readonly healthy: boolean;
  readonly pid?: number;
}

export interface StackStatus extends Partial<StackEndpoints> {
  readonly way: Way | "none";
  readonly detached: boolean;
  readonly users: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly parts: readonly PartStatus[];
}

/** Another process may be in its first download. */
const LOCK_DEADLINE_MS = 30 * 60_000;

const stackDirOf = (place: StackPlace): string => join(resolve(place.rootDir), ".fabric", nameOf(place));

const nameOf = (place: StackPlace): string => {
  const name = place.name ?? "local";
  if (!/^[a-z0-9][a-z0-9-]*$/.test(name) || name === "downloads") {
    throw new Fault("USAGE", `a stack's name is of a-z, 0-9 and "-", and not "downloads": ${name}`);
  }
  return name;
};

const silent: Log = () => undefined;

/** Everything one call works with, loaded under the lock. */
interface Workshop {
  readonly stackDir: string;
  readonly state: StackState;
  readonly secrets: StackSecrets;
  readonly host: PartHost;
  docker(): Promise<DockerContext>;
  local(): Promise<LocalParts>;
}

const openWorkshop = async (
  options: StackPlace & Partial<UpOptions>,
  state: StackState,
): Promise<Workshop> => {
  const stackDir = stackDirOf(options);
  const machine = options.machine ?? thisMachine();
  const log = options.log ?? silent;
  const secrets = await loadOrMakeSecrets(stackDir);
  const packageDir = await findPackageDir();
  const host: PartHost = {
    stackDir,
    state,
    log,
    isShared: (await countLeases(stackDir)) > 0,
    save: () => saveState(stackDir, state),
    ...(options.signal && { signal: options.signal }),
  };
  return {
    stackDir,
    state,
    secrets,
    host,
    local: () =>
      toLocalParts({
        stackDir,
        downloadsDir: join(resolve(options.rootDir), ".fabric", "downloads"),
        packageDir,
        machine,
        state,
        secrets,
        kafka: options.kafka ?? {},
        postgres: options.postgres ?? {},
        ...(options.postgresFrom && { postgresFrom: options.postgresFrom }),
        log,
      }),
    docker: async () => ({
      name: nameOf(options),
      stackDir,
      packageDir,
      machine,
      state,
      secrets,
      versions: await loadVersions(packageDir),
      kafkaOverrides: options.kafka?.overrides ?? {},
      postgresSettings: options.postgres ?? {},
      log,
    }),
  };
};

const endpointsOf = (state: StackState, secrets: StackSecrets): StackEndpoints => ({
  kafkaBrokers: [`127.0.0.1:${String(portOf(state.ports, "kafka"))}`],
  registryUrl: registryUrlOf(state.ports),
  postgresUrl: postgresUrlOf(state.ports, secrets),
});

/** Starts what does not run yet; when a part fails, only what ran before goes on running. True when nothing ran before. */
const upLocal = async ({ host, local }: Workshop): Promise<boolean> => {
  const parts = await local();
  const warm = new Set<PartName>();
  const ensure = async (name: PartName): Promise<void> => {
    if (!(await ensurePart(host, parts[name]))) warm.add(name);
  };
  const results = await Promise.allSettled([
    ensure("kafka"),
    ensure("postgres").then(() => ensure("registry")),
  ]);
  const failed = results.find((result) => result.status === "rejected");
  if (failed) {
    const unfinished = partNames.filter((name) => !warm.has(name));
    await Promise.all(unfinished.map((name) => stopPart(host, parts[name])));
    throw failed.reason;
  }
  return warm.size === 0;
};

const checkConfigured = async (endpoints: StackEndpoints): Promise<void> => {
  const registry = new URL(endpoints.registryUrl);
  const postgres = new URL(endpoints.postgresUrl);
  const webPort = registry.protocol === "https:" ? 443 : 80;
  const targets = [
    ...endpoints.kafkaBrokers.map(
      (broker) => ({ code: "BROKER_UNAVAILABLE", url: new URL(`kafka://${broker}`), port: 9092 }) as const,
    ),
    { code: "REGISTRY_UNAVAILABLE", url: registry, port: webPort } as const,
    { code: "DATABASE_UNAVAILABLE", url: postgres, port: 5432 } as const,
  ];
  const open = await Promise.all(
    targets.map(({ url, port }) => probeTcp(url.hostname, Number(url.port) || port)),
  );
  const brokers = endpoints.kafkaBrokers.length;
  targets.forEach(({ code, url }, index) => {
    // One broker of several is enough to begin with.
    if (open[index] || (index < brokers && open.slice(0, brokers).includes(true))) return;
    throw new Fault(code, `nothing accepts connections on ${url.host}, which the configuration names`);
  });
};

const configuredHandle = async (endpoints: StackEndpoints, reason: string): Promise<StackHandle> => {
  await checkConfigured(endpoints);
  const notOurs = (): Promise<never> =>
    Promise.reject(new Fault("USAGE", "servers that the configuration names are not ours to stop or start"));
  return {
    ...endpoints,
    way: "configured",
    reason,
    versions: {},
    pids: {},
    stop: () => Promise.resolve(),
    stopPart: notOurs,
    start: notOurs,
    restart: notOurs,
    kill: notOurs,
  };
};

const freshState = (way: "docker" | "local"): StackState => ({
  format: 1,
  way,
  detached: false,
  ports: {},
  settings: {},
  versions: {},
});

/** Brings the stack up, or finds it up; two calls at once start it once. */
export const upStack = async (options: UpOptions): Promise<StackHandle> => {
  const stackDir = stackDirOf(options);
  const log = options.log ?? silent;
  const known = await loadState(stackDir);
  const chosen = await chooseWay({
    ...(options.endpoints && { endpoints: options.endpoints }),
    ...(options.way && { forced: options.way }),
    ...(known && { remembered: known.way }),
    askDocker: () => askDocker(options.machine ?? thisMachine()),
  });
  const { way, reason } = chosen;
  log(
    `stack ${nameOf(options)}: ${way === "docker" ? "Docker" : way === "local" ? "local processes" : "configured servers"} (${reason})`,
  );
  if (way === "configured") {
    const { kafkaBrokers = [], registryUrl = "", postgresUrl = "" } = options.endpoints ?? {};
    return configuredHandle({ kafkaBrokers: [...kafkaBrokers], registryUrl, postgresUrl }, reason);
  }
  await mkdir(stackDir, { recursive: true });
  return withStack(options, async () => {
    const loaded = await loadState(stackDir);
    if (loaded && loaded.way !== way) await endWay(options, loaded, false);
    const state = loaded?.way === way ? loaded : freshState(way);
    const workshop = await openWorkshop(options, state);
    await workshop.host.save();
    let isFirst = false;
    if (way === "local") isFirst = await upLocal(workshop);
    else await dockerUp(await workshop.docker(), workshop.host.save);
    state.detached = options.detach || (state.detached && !isFirst);
    await workshop.host.save();
    const lease = options.detach ? undefined : await takeLease(stackDir);
    const parts = way === "local" ? await workshop.local() : undefined;
    const pids: Partial<Record<PartName, number>> = {};
    for (const name of partNames) {
      const pid = parts && (await pidOf(parts[name]));
      if (pid !== undefined) pids[name] = pid;
    }
    return {
      ...endpointsOf(state, workshop.secrets),
      way,
      reason,
      versions: { ...state.versions },
      pids,
      stop: () => releaseStack(options, lease),
      ...partControls(options, pids),
    };
  });
};

const withStack = <T>(place: StackPlace, work: () => Promise<T>): Promise<T> =>
  withLock(join(stackDirOf(place), "lock"), LOCK_DEADLINE_MS, work, (holderPid) =>
    place.log?.(`stack ${nameOf(place)}: waiting for process ${String(holderPid)}, which works on it`),
  );

const reopen = async (options: UpOptions): Promise<Workshop> => {
  const state = await loadState(stackDirOf(options));
  if (!state) throw new Fault("STACK_FAILED", "the stack was taken down: bring it up again");
  return openWorkshop(options, state);
};

const partControls = (
  options: UpOptions,
  pids: Partial<Record<PartName, number>>,
): Pick<StackHandle, "stopPart" | "start" | "restart" | "kill"> => {
  const start = async (workshop: Workshop, part: PartName): Promise<void> => {
    if (workshop.state.way === "docker") {
      await dockerStart(await workshop.docker(), part);
      return;
    }
    const parts = await workshop.local();
    await ensurePart(workshop.host, parts[part]);
    const pid = await pidOf(parts[part]);
    if (pid !== undefined) pids[part] = pid;
  };
  const stop = async (workshop: Workshop, part: PartName): Promise<void> => {
    if (workshop.state.way === "docker") await dockerStop(await workshop.docker(), part);
    else await stopPart(workshop.host, (await workshop.local())[part]);
  };
  return {
    start: (part) => withStack(options, async () => start(await reopen(options), part)),
    stopPart: (part) => withStack(options, async () => stop(await reopen(options), part)),
    restart: (part) =>
      withStack(options, async () => {
        const workshop = await reopen(options);
        await stop(workshop, part);
        await start(workshop, part);
      }),
    kill: async (part, signal = "SIGKILL") => {
      const workshop = await reopen(options);
      if (workshop.state.way === "docker") {
        await dockerKill(await workshop.docker(), part, signal);
        return;
      }
      const signalled = await signalRecorded(recordFileOf((await workshop.local())[part]), signal);
      if (signalled && signal === "SIGKILL") await waitForEnd(signalled, 10_000);
    },
  };
};

const endWay = async (place: StackPlace, state: StackState, wipe: boolean): Promise<void> => {
  const workshop = await openWorkshop(place, state);
  if (state.way === "docker") {
    if (state.ports.registry !== undefined) await dockerDown(await workshop.docker(), wipe);
    return;
  }
  const parts = await workshop.local();
  await stopPart(workshop.host, parts.registry);
  await Promise.all([stopPart(workshop.host, parts.kafka), stopPart(workshop.host, parts.postgres)]);
  if (wipe) await rm(parts.postgres.dir, { recursive: true, force: true });
};

const releaseStack = async (options: UpOptions, lease: string | undefined): Promise<void> => {
  const stackDir = stackDirOf(options);
  if (lease === undefined || !(await fileExists(lease))) return;
  await withStack(options, async () => {
    await dropLease(lease);
    const state = await loadState(stackDir);
    if (!state || state.detached || (await countLeases(stackDir)) > 0) return;
    await endWay(options, state, false);
  });
};

/** Ends every process of the stack, whoever started or uses it; with `wipe` its data goes too. Ending twice does no harm. */
export const downStack = async (place: StackPlace & { readonly wipe?: boolean }): Promise<void> => {
  const stackDir = stackDirOf(place);
  if (!(await fileExists(stackDir))) return;
  const wipe = place.wipe ?? false;
  await withStack(place, async () => {
    // Processes are found by their own records, also when the stack's file is damaged.
    const state = (await loadState(stackDir)) ?? freshState("local");
    await endWay(place, state, wipe);
    state.detached = false;
    await saveState(stackDir, state);
    if (!wipe) return;
    for (const name of await readdir(stackDir)) {
      if (name !== "lock") await rm(join(stackDir, name), { recursive: true, force: true });
    }
  });
  if (wipe) await rm(stackDir, { recursive: true, force: true });
};

/** What runs now, by probes; it starts nothing. */
export const stackStatus = async (place: StackPlace): Promise<StackStatus> => {
  const stackDir = stackDirOf(place);
  const state = await loadState(stackDir);
  if (!state) return { way: "none", detached: false, users: 0, versions: {}, parts: [] };
  const workshop = await openWorkshop(place, state);
  const locals = state.way === "local" ? await workshop.local() : undefined;
  const hasPorts =
    state.ports.kafka !== undefined &&
    state.ports.postgres !== undefined &&
    state.ports.registry !== undefined;
  const parts = await Promise.all(
    partNames.map(async (name): Promise<PartStatus> => {
      if (!hasPorts) return { name, healthy: false };
      if (!locals) return { name, healthy: await dockerProbe(state, name) };
      const pid = await pidOf(locals[name]);
      return pid === undefined
        ? { name, healthy: false }
        : { name, pid, healthy: await locals[name].probe(state.ports) };
    }),
  );
  return {
    way: state.way,
    detached: state.detached,
    users: await countLeases(stackDir),
    versions: state.versions,
    parts,
    ...(hasPorts && endpointsOf(state, workshop.secrets)),
  };
};
