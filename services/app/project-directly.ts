import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { Database } from "../platform/postgres.ts";
import { openDatabase } from "../platform/postgres.ts";

/** Partition of events that never were on the bus: no topic of the catalogue has as many. */
const seededPartition = 9_999;
/** Events per transaction; beyond this the statements get longer and no faster. */
const batchEvents = 2_000;

/** Puts events into projections without the bus: each processor's own code, no inbox, no offsets, no emissions. */
export interface DirectProjector {
  add(events: readonly Envelope[]): Promise<void>;
  /** Writes what is still held, and closes the connections. */
  end(): Promise<void>;
}

/**
 * For databases of a bench or a test. Whatever a processor would emit is left out, and an event that is added twice is
 * counted twice: the host's inbox is what prevents that, and it is not here. `url` is of the role `fabric_host`.
 */
export function openDirectProjector(url: string, processors: readonly Processor[]): DirectProjector {
  const lanes = processors.map((processor) => ({
    processor,
    database: openDatabase({
      url,
      applicationName: `fabric-seed-${processor.name}`,
      searchPath: [processor.name],
      maxConnections: 1,
      statementTimeoutMs: 600_000,
    }),
  }));
  const offsets = new Map<string, bigint>();
  let held: { readonly event: Envelope; readonly offset: bigint }[] = [];

  async function flush(): Promise<void> {
    const batch = held;
    held = [];
    await Promise.all(lanes.map(({ processor, database }) => applyBatch(processor, database, batch)));
  }
  return {
    async add(events) {
      for (const event of events) {
        const offset = offsets.get(event.type) ?? 0n;
        offsets.set(event.type, offset + 1n);
        held.push({ event, offset });
      }
      if (held.length >= batchEvents) await flush();
    },
    async end() {
      await flush();
      await Promise.all(lanes.map(({ database }) => database.end()));
    },
  };
}

async function applyBatch(
  processor: Processor,
  database: Database,
  batch: readonly { readonly event: Envelope; readonly offset: bigint }[],
): Promise<void> {
  const changes = batch.flatMap(({ event, offset }) =>
    processor.topics.includes(event.type)
      ? processor.project(event, {
          topic: event.type,
          partition: seededPartition,
          offset,
          timestampMs: event.recorded_at,
        })
      : [],
  );
  if (changes.length > 0) await database.transaction((tx) => processor.apply(tx, changes));
}
