import type { Bench, Row } from "./figure.ts";
import { toRow } from "./figure.ts";
import type { ProcessorRun } from "./processor-runs.ts";
import { openProcessorBench } from "./processor-runs.ts";

/** More growth than this from half of the events to the end is a leak, or looks like one. */
const flatGrowth = 1.1;
/** A runtime fills its heap before it first cleans up: fewer events say nothing of growth. */
const tellingEvents = 500_000;

/** Each processor that ships, alone in one process: topic to committed projection, its share of a core, its memory. */
export async function processors(bench: Bench): Promise<Row[]> {
  const runner = await openProcessorBench(bench);
  const rows: Row[] = [];
  for (const name of runner.names) {
    const ours: ProcessorRun[] = [];
    const bare: ProcessorRun[] = [];
    for (let repetition = 0; repetition < bench.sizes.repetitions; repetition += 1) {
      const both = [
        async () => ours.push(await runner.run(name)),
        async () => bare.push(await runner.runBare(name)),
      ];
      if (repetition % 2 === 1) both.reverse();
      for (const one of both) await one();
    }
    const events = ours[0]?.events ?? 0;
    const shared = { command: bench.command };
    const note = `${String(events)} of ${String(runner.events)} events of agents' months are in its topics, one tenant with nine tenths; one process, 6 partitions a topic`;
    rows.push(
      toRow(
        {
          ...shared,
          name: `${name}, topic to projection`,
          unit: "events/s",
          against: "limit",
          other: "bare eachBatch over the same topics, one insert of 5 columns, no inbox",
          note,
        },
        ours.map((one) => one.perSecond),
        bare.map((one) => one.perSecond),
      ),
      toRow(
        {
          ...shared,
          name: `${name}, rebuilt from empty tables`,
          unit: "minutes",
          against: "limit",
          other: "the bare consumer",
          note,
        },
        ours.map((one) => one.seconds / 60),
        bare.map((one) => one.seconds / 60),
      ),
      toRow(
        {
          ...shared,
          name: `${name}, share of a core`,
          unit: "cores",
          against: "limit",
          other: "the bare consumer's",
          note: `${micros(ours, "cpuMicros")} µs of processor an event, Postgres ${micros(ours, "serverMicros")} µs`,
        },
        ours.map((one) => one.cpuShare),
        bare.map((one) => one.cpuShare),
      ),
      toRow(
        {
          ...shared,
          name: `${name}, memory`,
          unit: "MiB at the end",
          against: "budget",
          other: "itself at half of the events",
          ...(events >= tellingEvents && { target: { better: "lower", ratio: flatGrowth } as const }),
          note: `resident memory over ${String(events)} events`,
        },
        ours.map((one) => one.endMib),
        ours.map((one) => one.halfMib),
      ),
    );
  }
  return rows;
}

function micros(runs: readonly ProcessorRun[], part: "cpuMicros" | "serverMicros"): string {
  return runs.map((one) => one[part].toFixed(0)).join(", ");
}
