import type { Bench, Row } from "./figure.ts";
import { toRow } from "./figure.ts";
import type { ProcessorRun } from "./processor-runs.ts";
import { openProcessorBench } from "./processor-runs.ts";

/** Each projection from empty tables to the end of its topics, in minutes, beside the bare consumer over the same ones. */
export async function rebuild(bench: Bench): Promise<Row[]> {
  const runner = await openProcessorBench(bench);
  const rows: Row[] = [];
  for (const name of runner.names) {
    const ours: ProcessorRun[] = [];
    const bare: ProcessorRun[] = [];
    for (let repetition = 0; repetition < bench.sizes.repetitions; repetition += 1) {
      ours.push(await runner.run(name));
      bare.push(await runner.runBare(name));
    }
    rows.push(
      toRow(
        {
          name: `rebuild of ${name}`,
          unit: "minutes",
          against: "limit",
          other: "bare eachBatch over the same topics, one insert of 5 columns, no inbox",
          command: bench.command,
          note: `${String(ours[0]?.events ?? 0)} of ${String(runner.events)} events are in its topics; one process`,
        },
        ours.map((one) => one.seconds / 60),
        bare.map((one) => one.seconds / 60),
      ),
    );
  }
  return rows;
}
