import { join, resolve } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { DockerContext } from "./docker.ts";
import { countLeases } from "./leases.ts";
import { loadVersions, toLocalParts } from "./local-parts.ts";
import type { LocalParts } from "./local-parts.ts";
import { findPackageDir, thisMachine } from "./machine.ts";
import { portOf } from "./parts.ts";
import type { Log } from "./parts.ts";
import { postgresUrlOf } from "./postgres-process.ts";
import { registryUrlOf } from "./registry-process.ts";
import type { PartHost } from "./run-part.ts";
import type { StackEndpoints, StackPlace, UpOptions } from "./stack-handle.ts";
import { loadOrMakeSecrets, saveState, withLock } from "./state.ts";
import type { StackSecrets, StackState } from "./state.ts";

/** Another process may be in its first download. */
const LOCK_DEADLINE_MS = 30 * 60_000;

export const stackDirOf = (place: StackPlace): string =>
  join(resolve(place.rootDir), ".fabric", nameOf(place));

export const nameOf = (place: StackPlace): string => {
  const name = place.name ?? "local";
  if (!/^[a-z0-9][a-z0-9-]*$/.test(name) || name === "downloads") {
    throw new Fault("USAGE", `a stack's name is of a-z, 0-9 and "-", and not "downloads": ${name}`);
  }
  return name;
};

export const silent: Log = () => undefined;

/** Everything one call works with, loaded under the lock. */
export interface Workshop {
  readonly stackDir: string;
  readonly state: StackState;
  readonly secrets: StackSecrets;
  readonly host: PartHost;
  docker(): Promise<DockerContext>;
  local(): Promise<LocalParts>;
}

export const openWorkshop = async (
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

export const endpointsOf = (state: StackState, secrets: StackSecrets): StackEndpoints => ({
  kafkaBrokers: [`127.0.0.1:${String(portOf(state.ports, "kafka"))}`],
  registryUrl: registryUrlOf(state.ports),
  postgresUrl: postgresUrlOf(state.ports, secrets),
});

export const freshState = (way: "docker" | "local"): StackState => ({
  format: 1,
  way,
  detached: false,
  ports: {},
  settings: {},
  versions: {},
});

export const withStack = <T>(place: StackPlace, work: () => Promise<T>): Promise<T> =>
  withLock(join(stackDirOf(place), "lock"), LOCK_DEADLINE_MS, work, (holderPid) =>
    place.log?.(`stack ${nameOf(place)}: waiting for process ${String(holderPid)}, which works on it`),
  );
