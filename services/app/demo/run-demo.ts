import { Fault } from "../../../schemas/faults.ts";
import type { Common } from "../../cli/actions.ts";
import type { Report } from "../../cli/report.ts";
import { toTable } from "../../cli/report.ts";
import { style } from "../../cli/screen.ts";
import type { Place } from "../place.ts";
import { localFiles } from "../place.ts";
import { prepareLocal } from "../prepare-local.ts";
import { listServiceProcesses, startServiceProcess, stopServiceProcesses } from "../service-processes.ts";
import { bringUp } from "../stack-actions.ts";
import { untilAborted } from "../until-aborted.ts";
import { serviceDatabase } from "../wiring.ts";
import { approvePlan } from "./approve-plan.ts";
import { crashInTheMiddle } from "./crash.ts";
import { judgeCalls } from "./judge-calls.ts";
import { refuseNewerSchema } from "./newer-schema.ts";
import { repeatDelivery } from "./repeat-delivery.ts";
import { replaySessions } from "./replay-sessions.ts";
import { sealTrail } from "./seal-trail.ts";
import { stopStorm } from "./stop-storm.ts";
import type { Claim } from "./world.ts";
import { createWorld } from "./world.ts";

const steps = [
  replaySessions,
  judgeCalls,
  approvePlan,
  stopStorm,
  repeatDelivery,
  refuseNewerSchema,
  crashInTheMiddle,
  sealTrail,
];

/** Each service is a process of its own here, so that one can be killed without the others. */
const services: readonly (readonly [name: string, roles: readonly string[]])[] = [
  ["relay", ["relay"]],
  ["processor-audit", ["processor", "audit"]],
  ["processor-breaker", ["processor", "breaker"]],
  ["sealer", ["sealer"]],
  ["gate", ["gate"]],
];

/** The story: real parts up, recorded payloads in, faults planted, every claim measured. Exit 0 only if all held. */
export async function runDemo(place: Place, common: Common, once: boolean): Promise<Report> {
  const { screen } = common;
  const files = localFiles(place, common.stack);
  const already = await listServiceProcesses(files);
  if (already.length > 0) {
    throw new Fault(
      "USAGE",
      "services of this stack run already; run `fabric down` first, or tell the story on another stack: `fabric demo --stack story`",
    );
  }
  const claims: Claim[] = [];
  const handle = await bringUp(place, common, false);
  try {
    const config = await prepareLocal(files, handle, screen.progress);
    const addresses: string[][] = [
      ["Kafka", handle.kafkaBrokers.join(",")],
      ["registry", handle.registryUrl],
      ["Postgres", handle.postgresUrl.replace(/:[^:@/]+@/, ":[masked]@")],
      ["gate", config.gate.url ?? ""],
    ];
    for (const [name, roles] of services) {
      const started = await startServiceProcess(files, name, roles);
      screen.progress(`${name}: ready (process ${String(started.pid)})`);
    }
    const sql = serviceDatabase(config, "admin", { maxConnections: 2 });
    try {
      const world = await createWorld(place, files, common, config, sql, claims);
      for (const [index, step] of steps.entries()) {
        screen.line(`\n${style(screen, "bold", `Step ${String(index + 1)} of ${String(steps.length)}`)}`);
        await step(world);
      }
    } finally {
      await sql.end();
    }
    const failed = claims.filter((one) => !one.held).length;
    const summary = [
      "",
      toTable(
        ["CLAIMED", "MEASURED", ""],
        claims.map((one) => [one.claim, one.measured, one.held ? "held" : "FAILED"]),
      ),
      "",
      failed === 0
        ? `All ${String(claims.length)} claims held.`
        : `${String(failed)} of ${String(claims.length)} claims FAILED.`,
      "",
      ...(once
        ? ["Everything was stopped again. To look around: make up ARGS=--detach, then npx fabric --help"]
        : [toTable(["RUNS AT", "ADDRESS"], addresses), "", ...tryNext(files.envFile)]),
    ].join("\n");
    if (!once && !common.signal.aborted) {
      screen.line(summary);
      screen.line("\nEverything stays up until Ctrl-C.");
      await untilAborted(common.signal);
    }
    return { json: { claims, failed }, text: once ? summary : "", exit: failed === 0 ? 0 : 1 };
  } finally {
    await stopServiceProcesses(files);
    await handle.stop();
  }
}

function tryNext(envFile: string): string[] {
  return [
    "Try next, from another terminal:",
    `  psql "$(sed -n 's/^FABRIC_DATABASE_URL_ADMIN=//p' ${envFile})"`,
    "    SELECT event_type, count(*) FROM analytics.audit_trail GROUP BY 1 ORDER BY 2 DESC;",
    "    SELECT tool, reason_code, count(*) FROM analytics.decisions WHERE decision = 'deny' GROUP BY 1, 2;",
    "  npx fabric tail agent.tool.denied --from-beginning --limit 5",
    "  npx fabric audit who call_demo_force_push",
    "  npx fabric audit verify",
    "  npx fabric policy explain call_demo_force_push",
    "  npx fabric trace call_demo_plan_2",
    "  npx fabric takeover list",
    "  npx fabric cost report --by model",
  ];
}
