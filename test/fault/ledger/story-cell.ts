import type { StackEndpoints } from "../../../services/stack/stack.ts";
import { eventually } from "../../harness/eventually.ts";
import type { CellRound } from "./cell-report.ts";
import { saveCell, toCellVerdict } from "./cell-report.ts";
import { recovery } from "./link-cell.ts";
import type { CellResult } from "./link-cell.ts";
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
  const pipeline = await openPipeline({ stack, ...options });
  const { traffic, watch } = pipeline;
  try {
    traffic.start();
    const rounds: CellRound[] = [];
    for (let round = 0; round < (story.rounds ?? 1); round += 1) {
      const before = watch.seen.size;
      await eventually(
        () => watch.seen.size,
        (now) => now >= before + 30,
        {
          deadlineMs: 120_000,
          what: "traffic before the fault",
        },
      );
      await traffic.burst(burstEvents);
      const inFlight = traffic.pending(watch.seen);
      const committedAtBegin = traffic.events;
      const hits = await story.disturb(pipeline);
      await traffic.burst(lastEvents);
      const endMs = performance.now();
      const pending = traffic.pending(watch.seen);
      const committedDuring = traffic.events - committedAtBegin;
      const recovered = await recovery(watch, pending, endMs, stuckMs);
      rounds.push({ inFlight, committedDuring, pendingAtEnd: pending.length, hits, ...recovered });
    }
    const verdict = await pipeline.finish(stuckMs);
    const { name, link, fault } = story;
    await saveCell({ name, link, fault, rounds, verdict: toCellVerdict(verdict) });
    return { rounds, verdict };
  } finally {
    await pipeline.close();
  }
}
