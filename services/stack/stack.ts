import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { chooseWay } from "./choose-way.ts";
import { configuredHandle } from "./configured-stack.ts";
import { askDocker, dockerDown, dockerProbe, dockerUp } from "./docker.ts";
import { countLeases, dropLease, takeLease } from "./leases.ts";
import { fileExists, thisMachine } from "./machine.ts";
import { partControls } from "./part-controls.ts";
import { partNames } from "./parts.ts";
import type { PartName } from "./parts.ts";
import { ensurePart, pidOf, stopPart } from "./run-part.ts";
import type { PartStatus, StackHandle, StackPlace, StackStatus, UpOptions } from "./stack-handle.ts";
import { loadState, saveState } from "./state.ts";
import type { StackState } from "./state.ts";
import { endpointsOf, freshState, nameOf, openWorkshop, silent, stackDirOf, withStack } from "./workshop.ts";
import type { Workshop } from "./workshop.ts";

/** The room's face: callers import from this file alone. */
export type { StackEndpoints, StackHandle, StackStatus, UpOptions } from "./stack-handle.ts";

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
