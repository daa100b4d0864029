import { draft, toEnvelope } from "../../schemas/envelope.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { Clock } from "../platform/clock.ts";
import { derivedUuid } from "../platform/ids.ts";
import type { Log } from "../platform/log.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import type { BlockContent, BlockRange, SealedRow } from "./block.ts";
import { blockVersion, noDigest, toBlockDigest, toRowMarks, toRowsDigest } from "./block.ts";
import type { OpenSpan } from "./plan-ranges.ts";
import { planSpans } from "./plan-ranges.ts";
import type { SealKey } from "./seal-key.ts";

/** 'seal' in ASCII: the cluster's one lease on sealing, held by a transaction and freed by its end or its death. */
const sealLock = 1_936_023_916;
/** Offsets of one run: its rows and marks are held in memory once. */
const maxOffsetsPerRun = 20_000;

export interface SealerOptions {
  /** As role fabric_sealer. */
  readonly database: Database;
  readonly encoder: EventEncoder;
  readonly key: SealKey;
  readonly clock: Clock;
  readonly environment: string;
  readonly log: Log;
  /** Name of the processor that writes the trail, as in `host.watermarks`. */
  readonly processorName?: string;
  readonly everyMs?: number;
}

/** What one run did. `busy`: another member holds the lease. */
export interface SealRun {
  readonly state: "sealed" | "nothing" | "busy";
  readonly blocks: number;
  readonly rows: number;
}

/** Closes blocks over what the trail holds. Run it as often as you like, in as many processes as you like. */
export interface Sealer {
  sealOnce(): Promise<SealRun>;
  start(): void;
  stop(): Promise<void>;
}

/** One member of the cluster that closes blocks; whoever gets the lease does the run. */
export function createSealer(options: SealerOptions): Sealer {
  const { database, log } = options;
  const everyMs = options.everyMs ?? 5_000;
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let running: Promise<unknown> = Promise.resolve();

  async function sealOnce(): Promise<SealRun> {
    const run = await database.transaction((tx) => seal(tx, options));
    if (run.blocks > 0) notifyOutbox(database);
    return run;
  }

  async function drain(): Promise<void> {
    for (;;) {
      const run = await sealOnce();
      if (run.state !== "sealed" || stopped) return;
    }
  }
  function schedule(): void {
    if (stopped) return;
    timer = setTimeout(() => {
      running = drain()
        .catch((error: unknown) => log.warn({ err: error }, "the audit trail was not sealed, trying again"))
        .finally(schedule);
    }, everyMs);
  }

  return {
    sealOnce,
    start: schedule,
    async stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      await running;
    },
  };
}

async function seal(tx: Tx, options: SealerOptions): Promise<SealRun> {
  const lease = await tx.query<{ mine: boolean }>("SELECT pg_try_advisory_xact_lock($1) AS mine", [sealLock]);
  if (lease.rows[0]?.mine !== true) return { state: "busy", blocks: 0, rows: 0 };
  // INVARIANT: the watermarks are read before the rows. A row below its partition's watermark was committed with it, so
  // the later snapshot holds it; one above is left to the next run (test/property/host-audit.test.ts).
  const spans = planSpans(await loadOpenSpans(tx, options.processorName ?? "audit"), maxOffsetsPerRun);
  if (spans.length === 0) return { state: "nothing", blocks: 0, rows: 0 };
  const rows = await loadRows(tx, spans);
  const byTenant = new Map<string, TrailRow[]>();
  for (const row of rows) {
    const of = byTenant.get(row.tenant_id);
    if (of === undefined) byTenant.set(row.tenant_id, [row]);
    else of.push(row);
  }
  const heads = await loadHeads(tx, [...byTenant.keys()]);
  const closedAtMs = options.clock.nowMs();
  const events: Envelope[] = [];
  for (const [tenantId, own] of byTenant) {
    const head = heads.get(tenantId);
    const block = toBlock(tenantId, own, spans, head, closedAtMs);
    const digest = toBlockDigest(block);
    const signature = options.key.sign(digest);
    await insertBlock(tx, block, digest, signature, options.key.keyId);
    events.push(toSealedEvent(block, digest, signature, options));
  }
  await moveFrontiers(tx, spans);
  await appendOutbox(tx, toOutboxRows(options.encoder, events));
  return { state: "sealed", blocks: events.length, rows: rows.length };
}

interface TrailRow {
  readonly tenant_id: string;
  readonly topic: string;
  readonly partition: number;
  readonly kafka_offset: bigint;
  readonly row_digest: Buffer;
}
interface Head {
  readonly block_number: bigint;
  readonly block_digest: Buffer;
}

/** A partition that was never sealed begins at its first row; from then on only the frontier counts. */
async function loadOpenSpans(tx: Tx, processorName: string): Promise<readonly OpenSpan[]> {
  const found = await tx.query<{ topic: string; partition: number; start: bigint; end: bigint }>({
    name: "audit-open-spans",
    text: `SELECT w.topic, w.partition, w.next_offset AS "end",
        coalesce(f.sealed_to, (SELECT min(t.kafka_offset) FROM audit.trail t
          WHERE t.topic = w.topic AND t.partition = w.partition), w.next_offset) AS start
      FROM host.watermarks w LEFT JOIN audit.frontiers f USING (topic, partition)
      WHERE w.processor = $1 AND w.next_offset > coalesce(f.sealed_to, 0)`,
    values: [processorName],
  });
  return found.rows.map((row) => ({
    topic: row.topic,
    partition: row.partition,
    from: row.start,
    to: row.end,
  }));
}

async function loadRows(tx: Tx, spans: readonly OpenSpan[]): Promise<readonly TrailRow[]> {
  const found = await tx.query<TrailRow>({
    name: "audit-rows-to-seal",
    text: `SELECT t.tenant_id, t.topic, t.partition, t.kafka_offset, t.row_digest
      FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[]) AS s(topic, partition, first, past)
      JOIN audit.trail t ON t.topic = s.topic AND t.partition = s.partition
        AND t.kafka_offset >= s.first AND t.kafka_offset < s.past
      ORDER BY t.tenant_id, t.topic, t.partition, t.kafka_offset`,
    values: toSpanColumns(spans),
  });
  return found.rows;
}

async function loadHeads(tx: Tx, tenants: readonly string[]): Promise<ReadonlyMap<string, Head>> {
  const found = await tx.query<Head & { tenant_id: string }>({
    name: "audit-heads",
    text: `SELECT DISTINCT ON (tenant_id) tenant_id, block_number, block_digest FROM audit.blocks
      WHERE tenant_id = ANY ($1) ORDER BY tenant_id, block_number DESC`,
    values: [tenants],
  });
  return new Map(found.rows.map((row) => [row.tenant_id, row]));
}

function toBlock(
  tenantId: string,
  own: readonly TrailRow[],
  spans: readonly OpenSpan[],
  head: Head | undefined,
  closedAtMs: number,
): BlockContent {
  const rows: SealedRow[] = own.map((row) => ({
    topic: row.topic,
    partition: row.partition,
    offset: row.kafka_offset,
    digest: row.row_digest,
  }));
  const ranges: BlockRange[] = spans.flatMap((span) => {
    const inside = rows.filter((row) => row.topic === span.topic && row.partition === span.partition).length;
    return inside === 0 ? [] : [{ ...span, rows: inside }];
  });
  return {
    tenantId,
    number: (head?.block_number ?? 0n) + 1n,
    ranges,
    rowCount: rows.length,
    rowsDigest: toRowsDigest(rows),
    rowMarks: toRowMarks(rows),
    previousDigest: head?.block_digest ?? noDigest,
    closedAtMs,
  };
}

async function insertBlock(
  tx: Tx,
  block: BlockContent,
  digest: Buffer,
  signature: Buffer,
  keyId: string,
): Promise<void> {
  await tx.query({
    name: "audit-insert-block",
    text: `INSERT INTO audit.blocks (tenant_id, block_number, ranges, row_count, rows_digest, row_marks, previous_digest,
        block_digest, digest_version, key_id, signature, closed_at)
      VALUES ($1, $2, $3::jsonb, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    values: [
      block.tenantId,
      block.number,
      JSON.stringify(block.ranges.map((one) => ({ ...one, from: String(one.from), to: String(one.to) }))),
      block.rowCount,
      block.rowsDigest,
      block.rowMarks,
      block.previousDigest,
      digest,
      blockVersion,
      keyId,
      signature,
      new Date(block.closedAtMs),
    ],
  });
}

async function moveFrontiers(tx: Tx, spans: readonly OpenSpan[]): Promise<void> {
  const [topics, partitions, , ends] = toSpanColumns(spans);
  await tx.query({
    name: "audit-move-frontiers",
    text: `INSERT INTO audit.frontiers (topic, partition, sealed_to)
      SELECT * FROM unnest($1::text[], $2::int[], $3::bigint[])
      ON CONFLICT (topic, partition) DO UPDATE SET sealed_to = excluded.sealed_to`,
    values: [topics, partitions, ends],
  });
}

const toSpanColumns = (spans: readonly OpenSpan[]): unknown[][] => [
  spans.map(({ topic }) => topic),
  spans.map(({ partition }) => partition),
  spans.map(({ from }) => from),
  spans.map(({ to }) => to),
];

function toSealedEvent(
  block: BlockContent,
  digest: Buffer,
  signature: Buffer,
  { key, environment }: SealerOptions,
): Envelope<"fabric.audit.sealed"> {
  return toEnvelope(
    draft("fabric.audit.sealed", {
      block_number: block.number,
      row_count: block.rowCount,
      previous_digest: `sha256:${block.previousDigest.toString("hex")}`,
      block_digest: `sha256:${digest.toString("hex")}`,
      key_id: key.keyId,
      signature: signature.toString("base64url"),
    }),
    {
      eventId: `evt_${derivedUuid(`seal/${block.tenantId}/${block.number}/${digest.toString("hex")}`)}`,
      recordedAtMs: block.closedAtMs,
      tenantId: block.tenantId,
      environment,
      runtime: {
        kind: "fabric",
        adapter_version: "1",
        runtime_version: null,
        permission_mode: null,
        sandbox: null,
      },
      correlationId: `cor_${derivedUuid(`seals/${block.tenantId}`)}`,
      origin: "processor:audit",
    },
  );
}
