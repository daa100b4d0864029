import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { setTimeout as wait } from "node:timers/promises";
import type { RelaySteps } from "../../../services/outbox/relay-steps.ts";

/** Counts the outbox rows that a relay read and that something still holds. */
export interface RowsInMemory {
  readonly watch: (steps: RelaySteps) => RelaySteps;
  /** After a collection of what nobody holds. */
  count(): Promise<number>;
}

export function watchRowsInMemory(): RowsInMemory {
  const read: WeakRef<object>[] = [];
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  return {
    watch: (steps) => ({
      ...steps,
      read: async (request) => {
        const events = await steps.read(request);
        for (const event of events) read.push(new WeakRef(event));
        return events;
      },
    }),
    async count() {
      // A WeakRef that was looked at lives until the turn ends.
      await wait(0);
      collect();
      await wait(0);
      collect();
      return read.filter((one) => one.deref() !== undefined).length;
    },
  };
}
