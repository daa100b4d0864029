import type { Actions, Common } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import { createLog } from "../platform/log.ts";
import { createMetrics } from "../platform/metrics.ts";
import type { StackHandle } from "../stack/stack.ts";
import { downStack, stackStatus, upStack } from "../stack/stack.ts";
import { localFiles } from "./place.ts";
import type { Place } from "./place.ts";
import { prepareLocal } from "./prepare-local.ts";
import type { RoleStarters } from "./serve.ts";
import { serveRoles, toRoles } from "./serve.ts";
import {
  listServiceProcesses,
  readLag,
  readReadiness,
  startServiceProcess,
  stopServiceProcesses,
} from "./service-processes.ts";
import type { Processor } from "../../processors/kit/processor.ts";

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
export function stackActions(
  place: Place,
  processors: readonly Processor[],
  starters: RoleStarters,
): Pick<Actions, "up" | "down" | "status"> {
  return {
    async up(common, { detach }) {
      const files = localFiles(place, common.stack);
      const handle = await bringUp(place, common, detach);
      try {
        const config = await prepareLocal(files, handle, common.screen.progress);
        if (detach) {
          const running = await listServiceProcesses(files);
          if (running.length === 0) await startServiceProcess(files, "fabric", []);
          return await status(place, common);
        }
        const around = {
          config,
          log: createLog({ service: "fabric", level: config.logLevel }),
          metrics: createMetrics({ processMetrics: true }),
        };
        await serveRoles(around, toRoles([], processors), starters, common.signal, (services) => {
          const addresses = services.flatMap(({ name, address }) =>
            address === undefined ? [] : [`${name} ${address}`],
          );
          common.screen.line(`ready: ${addresses.join(" · ")} (Ctrl-C stops everything)`);
        });
        return { json: { stopped: true }, text: "" };
      } finally {
        if (!detach) await handle.stop();
      }
    },
    async down(common, { wipe }) {
      const files = localFiles(place, common.stack);
      const services = await stopServiceProcesses(files);
      await downStack({ rootDir: place.rootDir, name: common.stack, wipe, log: common.screen.progress });
      const text = `stopped: ${String(services)} service processes, Kafka, registry, Postgres${wipe ? "; their data is gone" : ""}`;
      return { json: { services, wiped: wipe }, text };
    },
    status: (common) => status(place, common),
  };
}

async function status(place: Place, common: Common) {
  const files = localFiles(place, common.stack);
  const servers = await stackStatus({ rootDir: place.rootDir, name: common.stack });
  const services = await Promise.all(
    (await listServiceProcesses(files)).map(async (one) => {
      const [{ ready, body }, lag] = await Promise.all([readReadiness(one.port), readLag(one.port)]);
      return { ...one, ready, readiness: body, lag };
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
      `http://127.0.0.1:${String(one.port)}/readyz`,
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
        ? `stack ${common.stack} is not up; start it with \`fabric up\``
        : `${toTable(["PART", "STATE", "PID", "LAG", "WHERE"], rows)}\n\nway: ${servers.way} · versions: ${Object.entries(
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
