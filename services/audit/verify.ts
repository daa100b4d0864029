import type { KeyObject } from "node:crypto";
import type { Database } from "../platform/postgres.ts";
import type { BlockRange, SealedRow } from "./block.ts";
import { blockVersion, fromRowMarks, noDigest, toBlockDigest, toRowsDigest } from "./block.ts";
import { isSealedBy } from "./seal-key.ts";

/** A row's place in the log, and its event when it is still there. */
export interface RowPlace {
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  readonly eventId: string | null;
}

export type FindingKind =
  | "row_changed"
  | "row_removed"
  | "row_inserted"
  | "block_changed"
  | "block_removed"
  | "signature_broken"
  | "key_unknown"
  | "cut_off"
  | "head_differs"
  | "frontier_lowered";

/** One thing that is not as it was sealed. */
export interface Finding {
  readonly kind: FindingKind;
  readonly tenantId: string | null;
  readonly block: string | null;
  /** The first bad row, where one can be named. */
  readonly row: RowPlace | null;
  readonly detail: string;
}

/** What `fabric audit verify` answers. Exit code 0: everything that is sealed is as it was sealed. */
export interface VerifyReport {
  readonly ok: boolean;
  readonly exitCode: 0 | 1;
  readonly blocks: number;
  readonly sealedRows: number;
  readonly erasedRows: number;
  /** Rows that no block covers yet: too young, no fault. */
  readonly unsealedRows: number;
  /** Whether the last seals on the topic were compared: without them, cutting off whole blocks cannot be seen. */
  readonly headsChecked: boolean;
  readonly findings: readonly Finding[];
}

/** The last `fabric.audit.sealed` of a tenant. */
export interface SealedHead {
  readonly blockNumber: bigint;
  /** `sha256:` and hex. */
  readonly blockDigest: string;
}

export interface VerifyOptions {
  /** As role fabric_auditor. */
  readonly database: Pick<Database, "query">;
  /** Public keys by id. */
  readonly keys: ReadonlyMap<string, KeyObject>;
  /** Digests of a stored row, made anew from its columns (`digestsOfStoredRow` of the processor). */
  readonly digestsOf: (row: Readonly<Record<string, unknown>>) => {
    readonly content: Buffer;
    readonly row: Buffer;
  };
  /** Last seals by tenant, from the topic; null when no broker could be asked. */
  readonly heads: ReadonlyMap<string, SealedHead> | null;
  /** Only this tenant. */
  readonly tenantId?: string;
  readonly onProgress?: (blocks: number) => void;
}

/** Walks every block of every tenant and compares it with the rows that are there now. */
export async function verifyAudit(options: VerifyOptions): Promise<VerifyReport> {
  const walk = new Walk(options);
  return walk.run();
}

interface BlockRow {
  readonly block_number: bigint;
  readonly ranges: readonly { topic: string; partition: number; from: string; to: string; rows: number }[];
  readonly row_count: number;
  readonly rows_digest: Buffer;
  readonly row_marks: Buffer;
  readonly previous_digest: Buffer;
  readonly block_digest: Buffer;
  readonly digest_version: number;
  readonly key_id: string;
  readonly signature: Buffer;
  readonly closed_at: Date;
}
interface TrailRow extends Readonly<Record<string, unknown>> {
  readonly event_id: string;
  readonly topic: string;
  readonly partition: number;
  readonly kafka_offset: bigint;
  readonly content_digest: Buffer;
  readonly row_digest: Buffer;
  readonly erased_at: Date | null;
}

class Walk {
  readonly #options: VerifyOptions;
  readonly #findings: Finding[] = [];
  /** Ends of the blocks' ranges per partition, and which offsets each tenant's blocks cover. */
  readonly #ends = new Map<string, bigint>();
  readonly #covered = new Map<string, BlockRange[]>();
  #blocks = 0;
  #rows = 0;
  #erased = 0;

  constructor(options: VerifyOptions) {
    this.#options = options;
  }

  async run(): Promise<VerifyReport> {
    const { heads, tenantId } = this.#options;
    const tenants = new Set(tenantId === undefined ? await this.#tenants() : [tenantId]);
    if (tenantId === undefined) for (const tenant of heads?.keys() ?? []) tenants.add(tenant);
    for (const tenant of [...tenants].sort()) await this.#tenant(tenant);
    if (tenantId === undefined) await this.#frontiers();
    const unsealedRows = await this.#uncovered(tenants);
    return {
      ok: this.#findings.length === 0,
      exitCode: this.#findings.length === 0 ? 0 : 1,
      blocks: this.#blocks,
      sealedRows: this.#rows,
      erasedRows: this.#erased,
      unsealedRows,
      headsChecked: heads !== null,
      findings: this.#findings,
    };
  }

  async #tenants(): Promise<readonly string[]> {
    const found = await this.#options.database.query<{ tenant_id: string }>(
      "SELECT tenant_id FROM audit.blocks UNION SELECT tenant_id FROM audit.trail",
    );
    return found.rows.map((row) => row.tenant_id);
  }

  async #tenant(tenantId: string): Promise<void> {
    let previous: Buffer = noDigest;
    let number = 0n;
    for (;;) {
      // One block at a time: its rows are what memory holds.
      const found = await this.#options.database.query<BlockRow>(
        `SELECT block_number, ranges, row_count, rows_digest, row_marks, previous_digest, block_digest, digest_version,
            key_id, signature, closed_at
          FROM audit.blocks WHERE tenant_id = $1 AND block_number > $2 ORDER BY block_number LIMIT 1`,
        [tenantId, number],
      );
      const block = found.rows[0];
      if (block === undefined) break;
      if (block.block_number !== number + 1n) {
        this.#find("block_removed", tenantId, number + 1n, null, `block ${number + 1n} is gone`);
      } else if (!block.previous_digest.equals(previous)) {
        this.#find(
          "block_changed",
          tenantId,
          block.block_number,
          null,
          "it does not name the block before it",
        );
      }
      number = block.block_number;
      previous = block.block_digest;
      await this.#block(tenantId, block);
      this.#blocks += 1;
      this.#options.onProgress?.(this.#blocks);
    }
    this.#head(tenantId, number, previous);
  }

  async #block(tenantId: string, block: BlockRow): Promise<void> {
    const number = block.block_number;
    const ranges = block.ranges.map((one) => ({ ...one, from: BigInt(one.from), to: BigInt(one.to) }));
    const digest = toBlockDigest({
      tenantId,
      number,
      ranges,
      rowCount: block.row_count,
      rowsDigest: block.rows_digest,
      rowMarks: block.row_marks,
      previousDigest: block.previous_digest,
      closedAtMs: block.closed_at.getTime(),
    });
    if (block.digest_version !== blockVersion || !digest.equals(block.block_digest)) {
      this.#find("block_changed", tenantId, number, null, "its own fields do not give its digest");
    }
    const key = this.#options.keys.get(block.key_id);
    if (key === undefined)
      this.#find("key_unknown", tenantId, number, null, `no public key ${block.key_id} was given`);
    else if (!isSealedBy(key, block.block_digest, block.signature)) {
      this.#find("signature_broken", tenantId, number, null, `the signature is not of ${block.key_id}`);
    }
    for (const range of ranges) {
      const partition = `${range.topic}/${range.partition}`;
      const end = this.#ends.get(partition) ?? 0n;
      if (range.to > end) this.#ends.set(partition, range.to);
      this.#covered.set(tenantId, [...(this.#covered.get(tenantId) ?? []), range]);
    }
    await this.#blockRows(tenantId, block, ranges);
  }

  async #blockRows(tenantId: string, block: BlockRow, ranges: readonly BlockRange[]): Promise<void> {
    const rows = await this.#rowsIn(tenantId, ranges);
    const before = this.#findings.length;
    for (const row of rows) this.#row(tenantId, block, row);
    this.#rows += rows.length;
    const sealed: SealedRow[] = rows.map((row) => ({
      topic: row.topic,
      partition: row.partition,
      offset: row.kafka_offset,
      digest: row.row_digest,
    }));
    if (toRowsDigest(sealed).equals(block.rows_digest)) return;
    this.#difference(tenantId, block, ranges, rows);
    if (this.#findings.length === before) {
      this.#find("block_changed", tenantId, block.block_number, null, "its rows do not give its digest");
    }
  }

  #row(tenantId: string, block: BlockRow, row: TrailRow): void {
    const digests = this.#options.digestsOf(row);
    if (row.erased_at !== null) this.#erased += 1;
    else if (!digests.content.equals(row.content_digest)) {
      this.#find("row_changed", tenantId, block.block_number, row, "its content does not give its digest");
      return;
    }
    if (!digests.row.equals(row.row_digest)) {
      this.#find("row_changed", tenantId, block.block_number, row, "its fields do not give its digest");
    }
  }

  /** Names the first row that the block's marks and the table do not agree on. */
  #difference(
    tenantId: string,
    block: BlockRow,
    ranges: readonly BlockRange[],
    rows: readonly TrailRow[],
  ): void {
    const placeOf = (one: { topic: string; partition: number; offset: bigint }): string =>
      `${one.topic}/${one.partition}/${one.offset}`;
    const there = new Map(rows.map((row) => [placeOf({ ...row, offset: row.kafka_offset }), row]));
    for (const mark of fromRowMarks(ranges, block.row_marks)) {
      const row = there.get(placeOf(mark));
      there.delete(placeOf(mark));
      if (row === undefined) {
        const gone = {
          topic: mark.topic,
          partition: mark.partition,
          kafka_offset: mark.offset,
          event_id: null,
        };
        this.#find("row_removed", tenantId, block.block_number, gone, "the row was sealed and is gone");
      } else if (!row.row_digest.subarray(0, mark.half.length).equals(mark.half)) {
        this.#find(
          "row_changed",
          tenantId,
          block.block_number,
          row,
          "the row is not the one that was sealed",
        );
      }
    }
    for (const row of there.values()) {
      this.#find(
        "row_inserted",
        tenantId,
        block.block_number,
        row,
        "the row was not there when the block was closed",
      );
    }
  }

  #head(tenantId: string, number: bigint, digest: Buffer): void {
    const head = this.#options.heads?.get(tenantId);
    if (head === undefined) return;
    if (head.blockNumber > number) {
      const detail = `the topic knows ${head.blockNumber} blocks, the table ${number}`;
      this.#find("cut_off", tenantId, number + 1n, null, detail);
    } else if (head.blockNumber === number && head.blockDigest !== `sha256:${digest.toString("hex")}`) {
      this.#find(
        "head_differs",
        tenantId,
        number,
        null,
        "the last block is not the one whose seal was published",
      );
    }
  }

  /** A frontier below a block's end would let rows be sealed twice, and hide that some are gone. */
  async #frontiers(): Promise<void> {
    const found = await this.#options.database.query<{ topic: string; partition: number; sealed_to: bigint }>(
      "SELECT topic, partition, sealed_to FROM audit.frontiers",
    );
    const frontiers = new Map(found.rows.map((row) => [`${row.topic}/${row.partition}`, row.sealed_to]));
    for (const [partition, end] of this.#ends) {
      const sealedTo = frontiers.get(partition) ?? 0n;
      if (sealedTo >= end) continue;
      const detail = `${partition} is sealed to ${end}, its frontier says ${sealedTo}`;
      this.#find("frontier_lowered", null, null, null, detail);
    }
  }

  /** Rows below a frontier that no block covers were put in later; those above are merely young. */
  async #uncovered(tenants: ReadonlySet<string>): Promise<number> {
    const { database } = this.#options;
    const total = await database.query<{ below: bigint; above: bigint }>(
      `SELECT count(*) FILTER (WHERE t.kafka_offset < f.sealed_to) AS below,
          count(*) FILTER (WHERE f.sealed_to IS NULL OR t.kafka_offset >= f.sealed_to) AS above
        FROM audit.trail t LEFT JOIN audit.frontiers f USING (topic, partition) WHERE t.tenant_id = ANY ($1)`,
      [[...tenants]],
    );
    const counts = total.rows[0] ?? { below: 0n, above: 0n };
    if (counts.below !== BigInt(this.#rows)) await this.#findUncovered(tenants);
    return Number(counts.above);
  }

  async #findUncovered(tenants: ReadonlySet<string>): Promise<void> {
    for (const tenantId of tenants) {
      const found = await this.#options.database.query<TrailRow>(
        `SELECT t.event_id, t.topic, t.partition, t.kafka_offset FROM audit.trail t
          JOIN audit.frontiers f USING (topic, partition)
          WHERE t.tenant_id = $1 AND t.kafka_offset < f.sealed_to ORDER BY t.topic, t.partition, t.kafka_offset`,
        [tenantId],
      );
      const ranges = this.#covered.get(tenantId) ?? [];
      const stray = found.rows.find(
        (row) =>
          !ranges.some(
            (range) =>
              range.topic === row.topic &&
              range.partition === row.partition &&
              row.kafka_offset >= range.from &&
              row.kafka_offset < range.to,
          ),
      );
      if (stray !== undefined) {
        this.#find(
          "row_inserted",
          tenantId,
          null,
          stray,
          "no block covers it, and it is below what is sealed",
        );
      }
    }
  }

  async #rowsIn(tenantId: string, ranges: readonly BlockRange[]): Promise<readonly TrailRow[]> {
    const found = await this.#options.database.query<TrailRow>(
      `SELECT t.* FROM unnest($2::text[], $3::int[], $4::bigint[], $5::bigint[]) AS s(topic, partition, first, past)
        JOIN audit.trail t ON t.topic = s.topic AND t.partition = s.partition
          AND t.kafka_offset >= s.first AND t.kafka_offset < s.past
        WHERE t.tenant_id = $1 ORDER BY t.topic, t.partition, t.kafka_offset`,
      [
        tenantId,
        ranges.map(({ topic }) => topic),
        ranges.map(({ partition }) => partition),
        ranges.map(({ from }) => from),
        ranges.map(({ to }) => to),
      ],
    );
    return found.rows;
  }

  #find(
    kind: FindingKind,
    tenantId: string | null,
    block: bigint | null,
    row: { topic: string; partition: number; kafka_offset: bigint; event_id: string | null } | null,
    detail: string,
  ): void {
    this.#findings.push({
      kind,
      tenantId,
      block: block === null ? null : String(block),
      row:
        row === null
          ? null
          : {
              topic: row.topic,
              partition: row.partition,
              offset: String(row.kafka_offset),
              eventId: row.event_id === null ? null : `evt_${row.event_id}`,
            },
      detail,
    });
  }
}
