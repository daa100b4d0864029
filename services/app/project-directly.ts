import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { Database } from "../platform/postgres.ts";
import { openDatabase } from "../platform/postgres.ts";

/** Partitions from here on are of events that never were on the bus: no topic of the catalogue has as many. */
const firstSeededPartition = 10_000;
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
 * counted twice: the host's inbox is what prevents that, and it is not here. `url` is of the role `fabric_host`. Histories
 * that share a database need different numbers, as if they were partitions.
 */
export function openDirectProjector(
  url: string,
  processors: readonly Processor[],
  historyNumber = 0,
): DirectProjector {
  const partition = firstSeededPartition + historyNumber;
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
    await Promise.all(
      lanes.map(({ processor, database }) => applyBatch(processor, database, batch, partition)),
    );
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
  partition: number,
): Promise<void> {
  const changes = batch.flatMap(({ event, offset }) =>
    processor.topics.includes(event.type)
      ? processor.project(event, {
          topic: event.type,
          partition,
          offset,
          timestampMs: event.recorded_at,
        })
      : [],
  );
  if (changes.length > 0) await database.transaction((tx) => processor.apply(tx, changes));
}
