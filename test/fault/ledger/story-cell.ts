import type { StackEndpoints } from "../../../services/stack/stack.ts";
import { eventually } from "../../harness/eventually.ts";
import type { CellRound } from "./cell-report.ts";
import { saveCell, toCellVerdict } from "./cell-report.ts";
import { peerStuckMs, recovery } from "./link-cell.ts";
import type { CellResult } from "./link-cell.ts";
import type { Peer } from "./peer.ts";
import { openPeer } from "./peer.ts";
import type { Pipeline, PipelineOptions } from "./pipeline.ts";
import { openPipeline } from "./pipeline.ts";

export interface Story {
  readonly name: string;
  readonly link: string;
  readonly fault: string;
  /** Does the harm and undoes it; says how often it bit. */
  readonly disturb: (pipeline: Pipeline) => Promise<Readonly<Record<string, number>>>;
  readonly rounds?: number;
  readonly stuckMs?: number;
  /** The harm meets a bare consumer too. */
  readonly hasPeer?: boolean;
}

const burstEvents = 90;
const lastEvents = 9;

/** Runs a cell whose fault is no link's: traffic before, during and after, then the ledger. */
export async function runStory(
  story: Story,
  stack: StackEndpoints,
  options: Partial<PipelineOptions> = {},
): Promise<CellResult> {
  const { stuckMs = 120_000 } = story;
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
    if (story.hasPeer === true) peer = await openPeer(stack, pipeline.prefix);
    pipeline.traffic.start();
    const rounds: CellRound[] = [];
    for (let round = 0; round < (story.rounds ?? 1); round += 1) {
      const isPeerGone = rounds.some(({ peerAllMs }) => peerAllMs === null);
      rounds.push(await runRound(story, pipeline, isPeerGone ? null : peer, stuckMs));
      if (rounds.at(-1)?.allMs === null) break;
    }
    const verdict = await pipeline.finish(stuckMs);
    const { name, link, fault } = story;
    await saveCell({
      name,
      link,
      fault,
      rounds,
      verdict: toCellVerdict(verdict),
      ...(peer === null ? {} : { peerDoubled: await peer.doubled() }),
      ...(verdict.stuck === 0 ? {} : { said: pipeline.said() }),
    });
    return { rounds, verdict };
  } finally {
    await Promise.all([peer?.close(), pipeline.close()]);
  }
}

async function runRound(
  { disturb }: Story,
  pipeline: Pipeline,
  peer: Peer | null,
  stuckMs: number,
): Promise<CellRound> {
  const { traffic, watch } = pipeline;
  const before = watch.seen.size;
  await eventually(
    () => watch.seen.size,
    (now) => now >= before + 30,
    { deadlineMs: 120_000, what: "traffic before the fault" },
  );
  if (peer !== null)
    await eventually(() => peer.watch.seen.size, Boolean, { deadlineMs: stuckMs, what: "the peer's start" });
  await traffic.burst(burstEvents);
  const inFlight = traffic.pending(watch.seen);
  const committedAtBegin = traffic.events;
  const refusedAtBegin = traffic.refused;
  const hits = await disturb(pipeline);
  const endMs = performance.now();
  await traffic.burst(lastEvents);
  const pending = traffic.pending(watch.seen);
  const committedDuring = traffic.events - committedAtBegin;
  const refusedDuring = traffic.refused - refusedAtBegin;
  const [ours, theirs] = await Promise.all([
    recovery(watch, pending, endMs, stuckMs),
    peer === null ? null : recovery(peer.watch, traffic.pending(peer.watch.seen), endMs, peerStuckMs),
  ]);
  return {
    inFlight,
    committedDuring,
    refusedDuring,
    pendingAtEnd: pending.length,
    hits,
    ...ours,
    ...(theirs === null ? {} : { peerFirstMs: theirs.firstMs, peerAllMs: theirs.allMs }),
  };
}
