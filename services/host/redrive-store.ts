import { Fault } from "../../schemas/faults.ts";
import type { LogRecord, TopicPartition } from "../platform/kafka-consumer.ts";
import type { Tx } from "../platform/postgres.ts";
import { servedTenantSql } from "../platform/served-tenant.ts";
import type { TenantKeys } from "../platform/vault-seal.ts";
import { openPayloads } from "../platform/vault-seal.ts";
import { liveSchemas, quotedHostSchema } from "./host-schema.ts";
import type { HostStore, HostTx } from "./host-store.ts";
import type { Letter } from "./letter.ts";
import type { PostgresHostStoreOptions } from "./postgres-host-store.ts";
import { hostTxOf } from "./postgres-host-store.ts";

/** Letters of one processor that a person sends through it again. */
export interface Redrive {
  readonly id: string;
  readonly requestedBy: string;
  readonly perSecond: number;
}

/** A letter that waits for a redrive, with the bytes that were set aside; a fault when they cannot be had. */
export interface WaitingLetter {
  readonly id: string;
  readonly tenantId: string;
  readonly attempts: number;
  readonly redrives: number;
  readonly record: LogRecord;
  readonly unreadable: Fault | null;
}

/** Letters of one partition, in its order. */
export interface WaitingLetters extends TopicPartition {
  readonly letters: readonly WaitingLetter[];
}

/** What became of letters in one transaction. */
export interface RedriveCount {
  readonly processed: number;
  readonly duplicates: number;
  readonly failed: number;
  readonly skipped: number;
}

/** What a redrive does besides the work of the processor, in the same transaction. */
export interface RedriveTx {
  /**
   * Locks letters that still wait; none once a person stopped the redrive. `isServed`: their tenant is served and not frozen. `isRepeat`: another letter about the
   * same event went through.
   */
  take(
    letters: readonly { readonly id: string; readonly tenantId: string }[],
  ): Promise<ReadonlyMap<string, { readonly isServed: boolean; readonly isRepeat: boolean }>>;
  /** Takes back the claims that the burials of these letters made; a claim of somebody else stays. */
  releaseClaims(letterIds: readonly string[]): Promise<void>;
  /** Marks letters as gone through. */
  settle(letterIds: readonly string[]): Promise<void>;
  /** Letters wait for nobody any more; no try is counted. */
  putBack(letterIds: readonly string[]): Promise<void>;
  /** Counts for whoever watches, and says when the next letter is due. */
  count(count: RedriveCount): Promise<void>;
}

/** Redrives of one processor. */
export interface RedriveStore {
  /** The oldest that is open and nobody else works on, ours for a while; `dueInMs`: its rate lets us go on then. */
  lease(owner: string): Promise<(Redrive & { readonly dueInMs: number }) | null>;
  next(redrive: Redrive, maxLetters: number): Promise<WaitingLetters | null>;
  finish(redrive: Redrive): Promise<void>;
  /** Says why it does not go on right now. */
  delay(redrive: Redrive, waitMs: number, why: string): Promise<void>;
  putBack(redrive: Redrive, letterIds: readonly string[]): Promise<void>;
  /** Transactions of one redrive: a letter that is buried again is the same letter. */
  transactions(redrive: Redrive): {
    readonly store: Pick<HostStore, "prepareLetters" | "transaction">;
    of(tx: HostTx): RedriveTx;
  };
}

/** Longer than a batch takes, and short enough that a dead host holds nobody up. */
const leaseMs = 30_000;
/** Payload bytes of one batch: memory is bounded, however many letters wait. */
const batchMaxBytes = 8 * 1024 * 1024;

export function createRedriveStore(
  options: PostgresHostStoreOptions & { readonly keys: TenantKeys },
): RedriveStore {
  const { database, keys } = options;
  const processor = options.processor.name;
  const host = quotedHostSchema(options.schemaOf ?? liveSchemas);
  const toHostTx = hostTxOf(options);
  const waiting = "redrive_id = $1 AND redriven_at IS NULL AND archived_at IS NULL";

  const putBack = async (tx: Tx, redrive: Redrive, letterIds: readonly string[]): Promise<void> => {
    await tx.query({
      name: "host-redrive-put-back",
      text: `UPDATE ${host}.letters SET redrive_id = NULL WHERE ${waiting} AND id = ANY ($2::uuid[])`,
      values: [redrive.id, letterIds],
    });
  };
  const count = async (tx: Tx, redrive: Redrive, done: RedriveCount): Promise<void> => {
    await tx.query({
      name: "host-redrive-count",
      text: `UPDATE ${host}.redrives SET processed = processed + $2, duplicates = duplicates + $3, failed = failed + $4,
          skipped = skipped + $5, waits_for = NULL,
          next_at = greatest(next_at, clock_timestamp()) + $6 * interval '1 second' / per_second
        WHERE id = $1`,
      values: [
        redrive.id,
        done.processed,
        done.duplicates,
        done.failed,
        done.skipped,
        done.processed + done.duplicates + done.failed + done.skipped,
      ],
    });
  };

  const toRedriveTx = (tx: Tx, redrive: Redrive): RedriveTx => ({
    async take(letters) {
      // Held to the commit: whoever stops it waits for this batch, and after that nothing is taken.
      const open = await tx.query({
        name: "host-redrive-hold",
        text: `SELECT FROM ${host}.redrives WHERE id = $1 AND stopped_at IS NULL FOR NO KEY UPDATE`,
        values: [redrive.id],
      });
      if (open.rowCount === 0) return new Map();
      const found = await tx.query<{ id: string; is_served: boolean; is_repeat: boolean }>({
        name: "host-redrive-take",
        text: `WITH locked AS (
            SELECT id, event_id FROM ${host}.letters WHERE ${waiting} AND id = ANY ($2::uuid[]) ORDER BY id FOR UPDATE)
          SELECT l.id, ${servedTenantSql("w.tenant_id")} AS is_served, l.event_id IS NOT NULL AND EXISTS (
              SELECT FROM ${host}.letters AS o WHERE o.processor = $4 AND o.event_id = l.event_id
                AND o.id <> l.id AND o.redriven_at IS NOT NULL) AS is_repeat
          FROM locked AS l JOIN unnest($2::uuid[], $3::text[]) AS w(id, tenant_id) ON w.id = l.id`,
        values: [redrive.id, letters.map(({ id }) => id), letters.map(({ tenantId }) => tenantId), processor],
      });
      return new Map(found.rows.map((row) => [row.id, { isServed: row.is_served, isRepeat: row.is_repeat }]));
    },
    async releaseClaims(letterIds) {
      // INVARIANT: what was processed meanwhile, under a claim of its own, is not processed again
      // (test/integration/letters-redrive.test.ts "takes back no claim but the burial's own").
      await tx.query({
        name: "host-redrive-release",
        text: `DELETE FROM ${host}.inbox AS i USING ${host}.letters AS l
          WHERE l.id = ANY ($1::uuid[]) AND l.kind = 'dead' AND i.event_id = l.event_id AND i.processor = $2
            AND i.claimed_at <= coalesce(l.failed_again_at, l.buried_at)`,
        values: [letterIds, processor],
      });
    },
    async settle(letterIds) {
      await tx.query({
        name: "host-redrive-settle",
        text: `UPDATE ${host}.letters SET redriven_at = clock_timestamp(), redriven_by = $3, attempts = attempts + 1,
            redrives = redrives + 1
          WHERE ${waiting} AND id = ANY ($2::uuid[])`,
        values: [redrive.id, letterIds, redrive.requestedBy],
      });
    },
    putBack: (letterIds) => putBack(tx, redrive, letterIds),
    count: (done) => count(tx, redrive, done),
  });

  /** The same letter again, with what it failed of now; its bytes stay where they are. */
  const returnLetters = async (tx: Tx, redrive: Redrive, letters: readonly Letter[]): Promise<void> => {
    await tx.query({
      name: "host-redrive-return",
      text: `UPDATE ${host}.letters AS l SET kind = r.kind, fault_kind = r.fault_kind, code = r.code, detail = r.detail,
          processor_version = r.version, attempts = r.attempts, redrives = l.redrives + 1, tenant_id = r.tenant_id,
          event_id = coalesce(r.event_id, l.event_id), redrive_id = NULL, failed_again_at = clock_timestamp()
        FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::text[],
          $10::uuid[]) AS r(id, kind, fault_kind, code, detail, version, attempts, tenant_id, event_id)
        WHERE l.id = r.id AND l.redrive_id = $1 AND l.redriven_at IS NULL AND l.archived_at IS NULL`,
      values: [
        redrive.id,
        letters.map(({ id }) => id),
        letters.map(({ kind }) => kind),
        letters.map(({ fault }) => fault.kind),
        letters.map(({ fault }) => fault.code),
        letters.map(({ detail }) => detail.replaceAll("\u0000", "\uFFFD")),
        letters.map(({ processorVersion }) => processorVersion),
        letters.map(({ attempts }) => attempts),
        letters.map(({ tenantId }) => tenantId),
        letters.map(({ eventUuid }) => eventUuid),
      ],
    });
  };

  return {
    async lease(owner) {
      const found = await database.query<{
        id: string;
        requested_by: string;
        per_second: number;
        due_in_ms: number;
      }>({
        name: "host-redrive-lease",
        text: `UPDATE ${host}.redrives SET leased_by = $2, leased_until = clock_timestamp() + $3 * interval '1 millisecond'
          WHERE id = (
            SELECT id FROM ${host}.redrives WHERE processor = $1 AND finished_at IS NULL
              AND stopped_at IS NULL AND (leased_by = $2 OR leased_until < clock_timestamp())
            ORDER BY requested_at LIMIT 1 FOR UPDATE SKIP LOCKED)
          RETURNING id, requested_by, per_second,
            greatest(0, extract(epoch FROM next_at - clock_timestamp()) * 1000)::float8 AS due_in_ms`,
        values: [processor, owner, leaseMs],
      });
      const [row] = found.rows;
      return row === undefined
        ? null
        : {
            id: row.id,
            requestedBy: row.requested_by,
            perSecond: row.per_second,
            dueInMs: Math.ceil(row.due_in_ms),
          };
    },
    async next(redrive, maxLetters) {
      const rows = await loadWaiting(database, host, redrive.id, maxLetters);
      const [first] = rows;
      if (first === undefined) return null;
      const bytes = await openPayloads(
        database,
        keys,
        rows.map((row) => row.payload_ref),
      );
      return {
        topic: first.topic,
        partition: first.partition,
        letters: rows.map((row) => toWaiting(row, bytes.get(row.payload_ref))),
      };
    },
    async finish(redrive) {
      await database.query({
        name: "host-redrive-finish",
        text: `UPDATE ${host}.redrives SET finished_at = clock_timestamp(), waits_for = NULL WHERE id = $1
          AND NOT EXISTS (SELECT FROM ${host}.letters WHERE ${waiting})`,
        values: [redrive.id],
      });
    },
    async delay(redrive, waitMs, why) {
      await database.query({
        name: "host-redrive-delay",
        text: `UPDATE ${host}.redrives SET waits_for = $3, next_at = clock_timestamp() + $2 * interval '1 millisecond'
          WHERE id = $1`,
        values: [redrive.id, waitMs, why],
      });
    },
    putBack: (redrive, letterIds) =>
      database.transaction(async (tx) => {
        await putBack(tx, redrive, letterIds);
        await count(tx, redrive, { processed: 0, duplicates: 0, failed: 0, skipped: letterIds.length });
      }),
    transactions(redrive) {
      const opened = new WeakMap<HostTx, RedriveTx>();
      return {
        store: {
          // Bytes are in the vault since the first burial: no key is needed.
          prepareLetters: () => Promise.resolve(),
          transaction: (work) =>
            database.transaction((tx) => {
              const own: HostTx = {
                ...toHostTx(tx),
                bury: (letters) => returnLetters(tx, redrive, letters),
              };
              opened.set(own, toRedriveTx(tx, redrive));
              return work(own);
            }),
        },
        of(tx) {
          const found = opened.get(tx);
          if (found === undefined)
            throw new Fault("INTERNAL", "a redrive's step ran outside its transaction");
          return found;
        },
      };
    },
  };
}

interface LetterRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly topic: string;
  readonly partition: number;
  readonly kafka_offset: bigint;
  readonly record_timestamp: Date;
  readonly record_key: Buffer | null;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly payload_ref: string;
  readonly attempts: number;
  readonly redrives: number;
}

/** Letters of the first partition that has some, by offset; one of each offset, so that an offset names a letter. */
async function loadWaiting(
  tx: Tx,
  host: string,
  redriveId: string,
  maxLetters: number,
): Promise<readonly LetterRow[]> {
  const waiting = "redrive_id = $1 AND redriven_at IS NULL AND archived_at IS NULL";
  const places = await tx.query<{ topic: string; partition: number }>({
    name: "host-redrive-place",
    text: `SELECT topic, partition FROM ${host}.letters WHERE ${waiting} ORDER BY topic, partition LIMIT 1`,
    values: [redriveId],
  });
  const [place] = places.rows;
  if (place === undefined) return [];
  // By itself, and with values: read in the order of its index, and no further than asked for.
  const found = await tx.query<LetterRow>({
    name: "host-redrive-next",
    text: `WITH head AS (
        SELECT DISTINCT ON (kafka_offset) * FROM ${host}.letters
        WHERE ${waiting} AND topic = $2 AND partition = $3 ORDER BY kafka_offset LIMIT $4
      ), sized AS (
        SELECT s.*, sum(coalesce(e.size_bytes, 0)) OVER (ORDER BY s.kafka_offset ROWS UNBOUNDED PRECEDING)
          - coalesce(e.size_bytes, 0) AS bytes_before
        FROM head AS s LEFT JOIN vault.evidence AS e ON e.evidence_id =
          CASE WHEN s.payload_ref ~ '^vault://[a-z0-9-]{1,64}/[0-9a-f-]{36}$' THEN right(s.payload_ref, 36)::uuid END
      )
      SELECT id, tenant_id, topic, partition, kafka_offset, record_timestamp, record_key, headers, payload_ref, attempts,
        redrives FROM sized WHERE bytes_before < $5 ORDER BY kafka_offset`,
    values: [redriveId, place.topic, place.partition, maxLetters, batchMaxBytes],
  });
  return found.rows;
}

function toWaiting(row: LetterRow, bytes: Buffer | Fault | undefined): WaitingLetter {
  const isBytes = Buffer.isBuffer(bytes);
  return {
    id: row.id,
    tenantId: row.tenant_id,
    attempts: row.attempts,
    redrives: row.redrives,
    unreadable: isBytes
      ? null
      : (bytes ?? new Fault("EVIDENCE_CORRUPT", `nothing is stored under ${row.payload_ref}`)),
    record: {
      offset: row.kafka_offset,
      key: row.record_key,
      value: isBytes ? bytes : Buffer.alloc(0),
      headers: Object.fromEntries(
        Object.entries(row.headers).map(([name, value]) => [
          name,
          Array.isArray(value) ? value.map(fromBase64) : fromBase64(value as string),
        ]),
      ),
      timestampMs: row.record_timestamp.getTime(),
    },
  };
}

const fromBase64 = (text: string): Buffer => Buffer.from(text, "base64");
