import { setTimeout as wait } from "node:timers/promises";
import { eventually } from "../../harness/eventually.ts";
import type { FaultLink, LinkFault } from "../../harness/fault-link.ts";
import { startFaultLink } from "../../harness/fault-link.ts";
import type { GateRig } from "../../harness/gate-rig.ts";
import { createGateRig } from "../../harness/gate-rig.ts";
import type { CellReport, CellRound } from "./cell-report.ts";
import { saveCell } from "./cell-report.ts";
import { GateTraffic } from "./gate-traffic.ts";
import type { GateTrafficOptions } from "./gate-traffic.ts";
import { recovery, rounds } from "./link-cell.ts";
import { overLink } from "./pipeline.ts";
import { askResource, startSampleEffects } from "./sample-effects.ts";

export interface GateCell {
  readonly name: string;
  /** `callers`: agents to the gate; `resource`: agents to what carries out; or the gate to its database. */
  readonly link: "callers" | "resource" | "gate-postgres";
  readonly fault: LinkFault;
}
export interface GateCellResult {
  readonly rounds: readonly CellRound[];
  readonly verdict: CellReport["verdict"];
}

const faultMs = 3_000;
const burstIntents = 24;
const lastIntents = 6;
const stuckMs = 90_000;

/** Runs a cell of the gate: every intent is decided, takes its right, and is carried out once, whatever the link does. */
export async function runGateCell(
  cell: GateCell,
  settings: { readonly onUnknown?: GateTrafficOptions["onUnknown"]; readonly rounds?: number } = {},
): Promise<GateCellResult> {
  const rig = await createGateRig();
  const links: FaultLink[] = [];
  const link = async (target: { host: string; port: number }): Promise<FaultLink> => {
    const made = await startFaultLink(target);
    links.push(made);
    return made;
  };
  try {
    const gateUser = new URL(rig.test.roleUrl("fabric_gate"));
    const toDatabase = await link({ host: gateUser.hostname, port: Number(gateUser.port) });
    // As `fabric serve` connects it, but for the budget: a busy machine is no fault.
    const { url } = await rig.gate({ database: rig.database(overLink(gateUser.href, toDatabase)) });
    const port = Number(new URL(url).port);
    const toGate = await link({ host: "127.0.0.1", port });
    const resourceToGate = await link({ host: "127.0.0.1", port });
    const resourceToken = await rig.token({ roles: ["resource"], subject: "files" });
    const effects = await startSampleEffects({
      gateUrl: () => `http://127.0.0.1:${String(resourceToGate.port)}`,
      resourceToken,
    });
    const toResource = await link({ host: "127.0.0.1", port: effects.port });
    const traffic = new GateTraffic({
      gateUrl: () => `http://127.0.0.1:${String(toGate.port)}`,
      runtimeToken: await rig.token(),
      resourceToken,
      callers: 6,
      intentsPerSecond: 40,
      resource: askResource(`http://127.0.0.1:${String(toResource.port)}`),
      onUnknown: settings.onUnknown ?? "same-key",
    });
    const disturbed = {
      callers: [toGate, resourceToGate],
      resource: [toResource],
      "gate-postgres": [toDatabase],
    }[cell.link];
    traffic.start();
    const done: CellRound[] = [];
    for (let round = 0; round < (settings.rounds ?? rounds); round += 1)
      done.push(await runRound(cell.fault, traffic, disturbed));
    const isThrough = await traffic.stop(stuckMs);
    const verdict = await judgeGate(rig, traffic, effects.done, isThrough);
    await effects.close();
    await saveCell({ name: cell.name, link: cell.link, fault: cell.fault.kind, rounds: done, verdict });
    return { rounds: done, verdict };
  } finally {
    await Promise.all(links.map((one) => one.close()));
    await rig.close();
  }
}

async function runRound(
  fault: LinkFault,
  traffic: GateTraffic,
  links: readonly FaultLink[],
): Promise<CellRound> {
  const before = traffic.ended.size;
  await eventually(
    () => traffic.ended.size,
    (now) => now >= before + 20,
    {
      deadlineMs: stuckMs,
      what: "intents before the fault",
    },
  );
  traffic.burst(burstIntents);
  await Promise.all(links.map((one) => one.begin(fault)));
  const inFlight = traffic.pending();
  const begunAtBegin = traffic.begun.size;
  await wait(faultMs);
  // A caller that gets no answer does not come to its resource, so one of the links may see nothing.
  await eventually(() => links.some((one) => one.hits().connections > 0), Boolean, {
    deadlineMs: 30_000,
    what: "connections that meet the fault",
  });
  traffic.burst(lastIntents);
  const pending = traffic.pending();
  const committedDuring = traffic.begun.size - begunAtBegin;
  const all = await Promise.all(links.map((one) => one.end()));
  const endMs = performance.now();
  return {
    inFlight,
    committedDuring,
    pendingAtEnd: pending.length,
    hits: {
      connections: all.reduce((sum, one) => sum + one.connections, 0),
      chunks: all.reduce((sum, one) => sum + one.chunks, 0),
      bytes: all.reduce((sum, one) => sum + one.bytes, 0),
    },
    ...(await recovery({ seen: traffic.ended }, pending, endMs, stuckMs)),
  };
}

/** What callers were told and what resources did, against the gate's tables and its outbox. */
async function judgeGate(
  rig: GateRig,
  traffic: GateTraffic,
  done: ReadonlyMap<string, number>,
  isThrough: boolean,
): Promise<CellReport["verdict"]> {
  const rights = await rig.admin.query<{ id: string; calls_used: number; uses: string }>(
    `SELECT c.capability_id::text AS id, c.calls_used,
            (SELECT count(*) FROM gate.capability_spends s WHERE s.capability_id = c.capability_id) AS uses
     FROM gate.capabilities c`,
  );
  const used = new Map(rights.rows.map((row) => [row.id, Number(row.uses)]));
  const types = new Map<string, string[]>();
  for (const event of await rig.events()) {
    if (event.capability_id === null) continue;
    const id = event.capability_id.replace(/^cap_/, "");
    types.set(id, [...(types.get(id) ?? []), event.type]);
  }
  const told = ["agent.tool.authorized", "agent.capability.issued", "agent.capability.spent"];
  let lost = 0;
  let doubled = 0;
  let outOfOrder = 0;
  for (const intent of traffic.ended.keys()) {
    const times = done.get(intent) ?? 0;
    if (times === 0) lost += 1;
    doubled += Math.max(0, times - 1);
  }
  for (const right of traffic.allowed.values()) {
    const id = right.replace(/^cap_/, "");
    const seen = types.get(id) ?? [];
    // An effect without its evidence is a loss, evidence told twice a double.
    for (const type of told) {
      const count = seen.filter((one) => one === type).length;
      if (count === 0 && (isThrough || type !== "agent.capability.spent")) lost += 1;
      doubled += Math.max(0, count - 1);
    }
    if (
      seen.join() !== told.filter((type) => seen.includes(type)).join() &&
      new Set(seen).size === seen.length
    )
      outOfOrder += 1;
    doubled += Math.max(0, (used.get(id) ?? 0) - 1);
  }
  // Rights that no caller was told of are decisions that were made twice for one call.
  const toldRights = new Set([...traffic.allowed.values()].map((id) => id.replace(/^cap_/, "")));
  if (isThrough) doubled += rights.rows.filter(({ id }) => !toldRights.has(id)).length;
  return {
    committed: traffic.begun.size,
    lost,
    doubled,
    outOfOrder,
    stuck: isThrough ? 0 : traffic.pending().length,
    setAside: 0,
    repeatedOnTopic: 0,
  };
}
