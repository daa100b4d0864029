import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import type { StackHandle } from "../stack/stack.ts";
import { downStack, stackStatus, upStack } from "../stack/stack.ts";
import { localFiles } from "./place.ts";
import type { LocalFiles, Place } from "./place.ts";
import { readSetting } from "./local-settings.ts";
import { prepareLocal } from "./prepare-local.ts";
import { untilAborted } from "./until-aborted.ts";
import type { ServiceProcess } from "./service-processes.ts";
import {
  listServiceProcesses,
  readLag,
  readReadiness,
  startServiceProcess,
  stopServiceProcesses,
} from "./service-processes.ts";

/** Starts the servers and makes them ready; the caller gives the handle up. */
export async function bringUp(place: Place, common: Common, detach: boolean): Promise<StackHandle> {
  return upStack({
    rootDir: place.rootDir,
    name: common.stack,
    detach,
    signal: common.signal,
    log: common.screen.progress,
  });
}

/** `fabric up`, `down` and `status`. */
export function stackActions(place: Place): Pick<Actions, "up" | "down" | "status"> {
  return {
    async up(common, { detach }) {
      const files = localFiles(place, common.stack);
      if (!detach) refuseSecond(await listServiceProcesses(files));
      const handle = await bringUp(place, common, detach);
      try {
        await prepareLocal(files, handle, common.screen.progress);
        await ensureServices(files, common);
        const report = await status(place, common);
        if (detach) return report;
        common.screen.line(`${report.text}\n\nready; Ctrl-C stops everything`);
        await untilAborted(common.signal);
        return { json: { stopped: true }, text: "" };
      } finally {
        if (!detach) {
          await stopServiceProcesses(files);
          await handle.stop();
        }
      }
    },
    async down(common, { wipe }) {
      const files = localFiles(place, common.stack);
      const before = await stackStatus({ rootDir: place.rootDir, name: common.stack });
      const services = await stopServiceProcesses(files);
      await downStack({ rootDir: place.rootDir, name: common.stack, wipe, log: common.screen.progress });
      const servers = before.parts.filter((part) => part.healthy).map((part) => part.name);
      const stopped = [...(services === 0 ? [] : [`${String(services)} service processes`]), ...servers];
      const text = `${stopped.length === 0 ? "nothing was running" : `stopped: ${stopped.join(", ")}`}${wipe ? "; the stack's data is gone" : ""}`;
      return { json: { services, wiped: wipe }, text };
    },
    status: (common) => status(place, common),
  };
}

/** The name under which all services run in one process. */
const allServices = "fabric";

function refuseSecond(running: readonly ServiceProcess[]): void {
  const [first] = running;
  if (first === undefined) return;
  throw new Fault(
    "USAGE",
    `services of this stack run already (process ${String(first.pid)}); run \`fabric down\` first, or \`fabric up --detach\` to go on with this build`,
  );
}

/** Starts the services, or starts them again when they run an older build than this one. */
async function ensureServices(files: LocalFiles, common: Common): Promise<void> {
  const running = await listServiceProcesses(files);
  const builtMs = (await stat(fileURLToPath(new URL("./command-line.js", import.meta.url)))).mtimeMs;
  if (running.length > 0 && running.every((one) => one.startedMs > builtMs)) return;
  if (running.length > 0) {
    common.screen.progress("services: an older build runs; starting this one");
    await stopServiceProcesses(files);
  }
  const started = await startServiceProcess(files, allServices, [], {}, common.signal);
  common.screen.progress(`services: ready (process ${String(started.pid)})`);
}

async function status(place: Place, common: Common) {
  const files = localFiles(place, common.stack);
  const servers = await stackStatus({ rootDir: place.rootDir, name: common.stack });
  const gateUrl = await readSetting(files, "FABRIC_GATE_URL");
  const services = await Promise.all(
    (await listServiceProcesses(files)).map(async (one) => {
      const [{ ready, body }, lag] = await Promise.all([readReadiness(one.port), readLag(one.port)]);
      const runsGate = one.roles.length === 0 || one.roles.includes("gate");
      return { ...one, ready, readiness: body, lag, gateUrl: runsGate ? gateUrl : null };
    }),
  );
  const rows = [
    ...servers.parts.map((part) => [
      part.name,
      part.healthy ? "up" : "down",
      String(part.pid ?? "-"),
      "",
      part.name === "kafka"
        ? (servers.kafkaBrokers?.join(",") ?? "-")
        : part.name === "registry"
          ? (servers.registryUrl ?? "-")
          : withoutPassword(servers.postgresUrl),
    ]),
    ...services.map((one) => [
      one.name,
      one.ready ? "up" : "not ready",
      String(one.pid),
      one.lag,
      one.gateUrl ?? `http://127.0.0.1:${String(one.port)}/readyz`,
    ]),
  ];
  const healthy =
    servers.parts.length > 0 &&
    servers.parts.every((part) => part.healthy) &&
    services.every((one) => one.ready);
  return {
    json: { ...servers, postgresUrl: withoutPassword(servers.postgresUrl), services, healthy },
    text:
      servers.parts.length === 0 && services.length === 0
        ? `stack ${common.stack} is not up; start it with \`fabric up --detach\``
        : `${toTable(["PART", "STATE", "PID", "LAG", "WHERE"], rows, common.screen.columns)}\n\nservers: ${servers.way === "docker" ? "on Docker" : "local processes"} · versions: ${Object.entries(
            servers.versions,
          )
            .map(([name, version]) => `${name} ${version}`)
            .join(", ")}`,
    exit: healthy ? (0 as const) : (1 as const),
  };
}

function withoutPassword(url: string | undefined): string {
  return url?.replace(/:[^:@/]+@/, ":[masked]@") ?? "-";
}
