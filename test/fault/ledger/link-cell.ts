import { setTimeout as wait } from "node:timers/promises";
import type { StackEndpoints } from "../../../services/stack/stack.ts";
import { eventually } from "../../harness/eventually.ts";
import type { LinkFault } from "../../harness/fault-link.ts";
import type { CellRound } from "./cell-report.ts";
import { saveCell, toCellVerdict } from "./cell-report.ts";
import type { Peer } from "./peer.ts";
import { openPeer } from "./peer.ts";
import type { LinkName, Pipeline, PipelineOptions } from "./pipeline.ts";
import { openPipeline } from "./pipeline.ts";
import type { ProjectionWatch } from "./projection-watch.ts";
import type { Verdict } from "./verdict.ts";

export interface LinkCell {
  readonly name: string;
  readonly link: LinkName;
  readonly fault: LinkFault;
}
export interface CellResult {
  readonly rounds: readonly CellRound[];
  readonly verdict: Verdict;
}

/** Faults of one cell, one after the other on the same pipeline; `REPS=…` of the make target. */
export const rounds = Number(process.env["FABRIC_TEST_FAULT_REPS"] ?? 3);
/** How long a fault lasts at least. */
const faultMs = 3_000;
/** Committed at once just before the fault, so that it meets something. */
const burstEvents = 90;
/** The same just before its end: recovery is told of something. */
const lastEvents = 9;
/** What has not come through by then is stuck. */
const defaultStuckMs = 45_000;
/** What the peer has not done by then it is not waited for. */
export const peerStuckMs = 45_000;

/** Runs a cell: traffic before, during and after each fault, then the ledger. */
export async function runLinkCell(
  cell: LinkCell,
  stack: StackEndpoints,
  options: Partial<PipelineOptions> = {},
  settings: { readonly rounds?: number; readonly stuckMs?: number; readonly hasPeer?: boolean } = {},
): Promise<CellResult> {
  const { stuckMs = defaultStuckMs, hasPeer = true } = settings;
  let peer: Peer | null = null;
  const pipeline = await openPipeline({
    stack,
    ...options,
    traffic: {
      ...options.traffic,
      onCommitted: (events) => peer?.publish(events, pipeline.encoder()),
    },
  });
  try {
    if (hasPeer) peer = await openPeer(stack, pipeline.prefix);
    pipeline.traffic.start();
    const done: CellRound[] = [];
    for (let round = 0; round < (settings.rounds ?? rounds); round += 1) {
      const isPeerGone = done.some(({ peerAllMs }) => peerAllMs === null);
      done.push(await runRound(cell, pipeline, isPeerGone ? null : peer, stuckMs));
      if (done.at(-1)?.allMs === null) break;
    }
    const verdict = await pipeline.finish(stuckMs);
    await saveCell({
      name: cell.name,
      link: cell.link,
      fault: cell.fault.kind,
      rounds: done,
      verdict: toCellVerdict(verdict),
      ...(peer === null ? {} : { peerDoubled: await peer.doubled() }),
      ...(verdict.stuck === 0 ? {} : { said: pipeline.said() }),
    });
    return { rounds: done, verdict };
  } finally {
    await Promise.all([peer?.close(), pipeline.close()]);
  }
}

async function runRound(
  { link, fault }: LinkCell,
  pipeline: Pipeline,
  peer: Peer | null,
  stuckMs: number,
): Promise<CellRound> {
  const { traffic, watch } = pipeline;
  const before = watch.seen.size;
  await eventually(
    () => watch.seen.size,
    (now) => now >= before + 30,
    {
      deadlineMs: stuckMs,
      what: "traffic before the fault",
    },
  );
  if (peer !== null)
    await eventually(() => peer.watch.seen.size, Boolean, { deadlineMs: stuckMs, what: "the peer's start" });
  const begin = () => Promise.all([pipeline.links[link].begin(fault), peer?.links[link].begin(fault)]);
  if (link === "registry") {
    // It is asked about what nobody has met only: events that come in its absence.
    await begin();
    await pipeline.renewSchema();
    await traffic.burst(burstEvents);
  } else {
    await traffic.burst(burstEvents);
    await begin();
  }
  const inFlight = traffic.pending(watch.seen);
  const committedAtBegin = traffic.events;
  await wait(faultMs);
  await eventually(() => pipeline.links[link].hits().connections, Boolean, {
    deadlineMs: 30_000,
    what: "a connection that meets the fault",
  });
  await traffic.burst(lastEvents);
  const pending = traffic.pending(watch.seen);
  const committedDuring = traffic.events - committedAtBegin;
  const [hits] = await Promise.all([pipeline.links[link].end(), peer?.links[link].end()]);
  const endMs = performance.now();
  const [ours, theirs] = await Promise.all([
    recovery(watch, pending, endMs, stuckMs),
    peer === null
      ? { firstMs: null, allMs: null }
      : recovery(peer.watch, traffic.pending(peer.watch.seen), endMs, peerStuckMs),
  ]);
  return {
    inFlight,
    committedDuring,
    pendingAtEnd: pending.length,
    hits: { connections: hits.connections, chunks: hits.chunks, bytes: hits.bytes },
    ...ours,
    peerFirstMs: theirs.firstMs,
    peerAllMs: theirs.allMs,
  };
}

/** When the first and when the last of these events was there, from `sinceMs` on; null by the deadline. */
export async function recovery(
  watch: Pick<ProjectionWatch, "seen">,
  pending: readonly string[],
  sinceMs: number,
  deadlineMs: number,
): Promise<{ firstMs: number | null; allMs: number | null }> {
  await eventually(() => pending.every((id) => watch.seen.has(id)), Boolean, {
    deadlineMs,
    what: "everything that was pending",
  }).catch(() => undefined);
  const times = pending.map((id) => watch.seen.get(id));
  const known = times.filter((one) => one !== undefined);
  const after = (ms: number): number => Math.max(0, ms - sinceMs);
  return {
    firstMs: known.length === 0 ? null : after(Math.min(...known)),
    allMs: known.length < times.length ? null : after(Math.max(...known, sinceMs)),
  };
}
