import type { EventDecoder } from "../../../services/host/records.ts";
import type { Database } from "../../../services/platform/postgres.ts";
import { eventually } from "../../harness/eventually.ts";
import type { ReadRecord } from "../../harness/topic-reader.ts";
import { trafficType } from "./traffic.ts";

/** The generator's log against the topic and the projection. All but `committed` and the repeats have to be zero. */
export interface Verdict {
  readonly committed: number;
  /** Committed, and nowhere: neither on the topic nor still on its way. */
  readonly lostOnTopic: number;
  /** At least once: a repeat on the topic is no fault. */
  readonly repeatedOnTopic: number;
  readonly outOfOrderOnTopic: number;
  readonly lostInProjection: number;
  readonly doubledInProjection: number;
  readonly outOfOrderInProjection: number;
  /** Not through by the deadline, and still on its way. */
  readonly stuck: number;
  /** Set aside by the host, or parked by the relay. */
  readonly setAside: number;
}

/** What a verdict without a fault looks like. */
export const cleanVerdict = (committed: number, repeatedOnTopic: number): Verdict => ({
  committed,
  lostOnTopic: 0,
  repeatedOnTopic,
  outOfOrderOnTopic: 0,
  lostInProjection: 0,
  doubledInProjection: 0,
  outOfOrderInProjection: 0,
  stuck: 0,
  setAside: 0,
});

export interface CompareOptions {
  readonly committed: ReadonlyMap<string, readonly bigint[]>;
  readonly sql: Database;
  readonly decoder: EventDecoder;
  readonly readTopic: () => Promise<readonly ReadRecord[]>;
  readonly deadlineMs: number;
}

/** Waits until everything has come through or the deadline says that it is stuck, and compares. */
export async function compareLedger(options: CompareOptions): Promise<Verdict> {
  const { committed, sql, decoder, deadlineMs } = options;
  const count = async (text: string): Promise<number> =>
    (await sql.query<{ n: number }>(text)).rows[0]?.n ?? 0;
  let isStuck = false;
  const waitFor = async (what: string, read: () => Promise<boolean>): Promise<void> => {
    await eventually(read, Boolean, { deadlineMs, what, pollMs: 50 }).catch(() => {
      isStuck = true;
    });
  };
  await waitFor(
    "an empty outbox",
    async () => (await count("SELECT count(*)::int AS n FROM outbox.events")) === 0,
  );
  const records = await options.readTopic();
  await waitFor(
    "watermarks at the log's ends",
    async () =>
      (await count(
        `SELECT coalesce(sum(next_offset), 0)::int AS n FROM host.watermarks
          WHERE processor = 'ledger' AND topic LIKE '%${trafficType}'`,
      )) >= records.length,
  );
  const onTopic = new Map<string, bigint[]>();
  for (const record of records) {
    const { envelope } = await decoder.decode(record.value);
    if (envelope.type !== trafficType) continue;
    add(onTopic, envelope.correlation_id, envelope.redacted_summary.output_tokens ?? 0n);
  }
  const inProjection = new Map<string, bigint[]>();
  const { rows } = await sql.query<{ key: string; n: bigint }>("SELECT key, n FROM ledger.rows ORDER BY id");
  for (const { key, n } of rows) add(inProjection, key, n);
  const topic = judge(committed, onTopic);
  const projection = judge(committed, inProjection);
  return {
    committed: [...committed.values()].reduce((sum, numbers) => sum + numbers.length, 0),
    lostOnTopic: isStuck ? 0 : topic.lost,
    repeatedOnTopic: topic.repeated,
    outOfOrderOnTopic: topic.outOfOrder,
    lostInProjection: isStuck ? 0 : projection.lost,
    doubledInProjection: projection.repeated,
    outOfOrderInProjection: projection.outOfOrder,
    stuck: isStuck ? projection.lost : 0,
    setAside:
      (await count("SELECT count(*)::int AS n FROM host.letters")) +
      (await count("SELECT count(*)::int AS n FROM outbox.parked")),
  };
}

function add(map: Map<string, bigint[]>, key: string, n: bigint): void {
  const numbers = map.get(key);
  if (numbers === undefined) map.set(key, [n]);
  else numbers.push(n);
}

/** Per key: what is missing, what is there again, and first occurrences that came after a later one. */
export function judge(
  committed: ReadonlyMap<string, readonly bigint[]>,
  found: ReadonlyMap<string, readonly bigint[]>,
): { lost: number; repeated: number; outOfOrder: number } {
  let lost = 0;
  let repeated = 0;
  let outOfOrder = 0;
  for (const [key, numbers] of committed) {
    const seen = found.get(key) ?? [];
    const first = new Set(seen);
    lost += numbers.filter((n) => !first.has(n)).length;
    repeated += seen.length - first.size;
    let highest = -1n;
    for (const n of first) {
      if (n < highest) outOfOrder += 1;
      else highest = n;
    }
  }
  return { lost, repeated, outOfOrder };
}
