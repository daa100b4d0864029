import { describe, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import type { FaultCode } from "../../schemas/faults.ts";
import { createMetrics } from "../platform/metrics.ts";
import type { Step, Work } from "./batch-steps.ts";
import { createHostMetrics } from "./host-metrics.ts";
import type { HostStore, HostTx, Position } from "./host-store.ts";
import type { ReadRecord } from "./records.ts";
import { StepFault } from "./run-slice.ts";
import { createSliceRunner, noFailures } from "./slice-runner.ts";

const start: Position = {
  topic: "t",
  partition: 0,
  nextOffset: 0n,
  epoch: 1n,
  topicId: null,
  stoppedCause: null,
};
const records: readonly ReadRecord[] = [0n, 1n, 2n, 3n].map((offset) => ({
  kind: "refused",
  record: { offset, key: null, value: Buffer.from("x"), headers: {}, timestampMs: 0 },
  fault: new Fault("NOT_AVRO"),
}));

const store: HostStore = {
  prepareLetters: () => Promise.resolve(),
  transaction: (work) => work({} as HostTx),
  takePositions: () => Promise.resolve([]),
  stopForGap: () => Promise.resolve(false),
  runningIn: () => Promise.resolve([]),
};

/** Runs the records over and over, as the host does; the one at offset 1 always fails with `code`. */
async function runFor(rounds: number, code: FaultCode): Promise<{ position: bigint; buried: bigint[] }> {
  const buried: bigint[] = [];
  let position = start;
  const steps: readonly Step[] = [
    {
      name: "apply",
      run: (work) =>
        work.records.some(({ record }) => record.offset === 1n)
          ? Promise.reject(new Fault(code, "planted"))
          : Promise.resolve(),
    },
    { name: "commit", run: () => Promise.resolve() },
  ];
  const runner = createSliceRunner({
    store,
    steps,
    metrics: createHostMetrics(createMetrics(), "p"),
    eventOf: () => Promise.resolve(null),
    nowMs: () => 0,
    mayGoOn: () => true,
    toWork: (at, some, nextOffset) =>
      ({
        position: at,
        records: some,
        nextOffset,
        letterContext: {
          processor: { name: "p", version: "1" },
          source: start,
          type: "agent.session.ended",
          environment: "test",
          nowMs: 0,
        },
        claimed: [],
        duplicates: 0,
        letters: [],
        emitted: 0,
        held: 0,
      }) as Partial<Work> as Work,
    afterSlice(work) {
      position = { ...work.position, nextOffset: work.nextOffset };
      buried.push(...work.letters.map(({ record }) => record.offset));
    },
  });
  const count = noFailures(0n);
  for (let round = 0; round < rounds && position.nextOffset < 4n; round += 1) {
    const rest = records.filter(({ record }) => record.offset >= position.nextOffset);
    await runner.run(position, rest, 4n, count).catch((error: unknown) => {
      if (!(error instanceof StepFault)) throw error;
    });
  }
  return { position: position.nextOffset, buried };
}

describe("slice runner", () => {
  it("buries a record that stays transient while its neighbours go through", async () => {
    expect(await runFor(20, "DATABASE_CONFLICT")).toEqual({ position: 4n, buried: [1n] });
  });

  // What is missing is no record's fault: whoever starts the dependency or deploys the step finds every record there.
  it.each([
    "SCHEMA_NOT_REGISTERED",
    "REGISTRY_UNAVAILABLE",
    "BROKER_UNAVAILABLE",
    "DATABASE_UNAVAILABLE",
    "TOPIC_MISSING",
  ] as const)("waits at a record for %s, however its neighbours fare", async (code) => {
    expect(await runFor(50, code)).toEqual({ position: 1n, buried: [] });
  });
});
