import { createHash } from "node:crypto";

/** Version of the byte form below; a change is a new version, and old blocks keep theirs. */
export const blockVersion = 1;
/** Bytes of one row's mark: its offset (8) and the first half of its digest (8). */
const markBytes = 16;

/** Rows of one tenant in one partition: offsets from `from` to before `to`. */
export interface BlockRange {
  readonly topic: string;
  readonly partition: number;
  readonly from: bigint;
  readonly to: bigint;
  readonly rows: number;
}

/** A row as a block sees it. */
export interface SealedRow {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly digest: Buffer;
}

/** What a block's digest covers. */
export interface BlockContent {
  readonly tenantId: string;
  readonly number: bigint;
  readonly ranges: readonly BlockRange[];
  readonly rowCount: number;
  readonly rowsDigest: Buffer;
  readonly rowMarks: Buffer;
  readonly previousDigest: Buffer;
  readonly closedAtMs: number;
}

/** The digest before a tenant's first block. */
export const noDigest = Buffer.alloc(32);

/** Digest over rows in (topic, partition, offset) order, each with its place. */
export function toRowsDigest(rows: readonly SealedRow[]): Buffer {
  const hash = createHash("sha256").update(`fabric.audit.rows/${blockVersion}\n`);
  for (const row of rows) {
    hash
      .update(`${Buffer.byteLength(row.topic)}:${row.topic}:${row.partition}:${row.offset}:`)
      .update(row.digest);
  }
  return hash.digest();
}

/** Marks of rows, in the same order: enough to name a row that is gone, changed or new. */
export function toRowMarks(rows: readonly SealedRow[]): Buffer {
  const marks = Buffer.alloc(rows.length * markBytes);
  rows.forEach((row, index) => {
    marks.writeBigInt64BE(row.offset, index * markBytes);
    row.digest.copy(marks, index * markBytes + 8, 0, 8);
  });
  return marks;
}

/** Reads marks back, with the topic and partition that the ranges give them. */
export function fromRowMarks(
  ranges: readonly BlockRange[],
  marks: Buffer,
): readonly {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly half: Buffer;
}[] {
  let at = 0;
  return ranges.flatMap((range) =>
    Array.from({ length: Math.min(range.rows, Math.floor((marks.length - at) / markBytes)) }, () => {
      const one = {
        topic: range.topic,
        partition: range.partition,
        offset: marks.readBigInt64BE(at),
        half: marks.subarray(at + 8, at + markBytes),
      };
      at += markBytes;
      return one;
    }),
  );
}

/** The digest that is signed and that the next block names. */
export function toBlockDigest(block: BlockContent): Buffer {
  const lines = [
    `fabric.audit.block/${blockVersion}`,
    `tenant:${Buffer.byteLength(block.tenantId)}:${block.tenantId}`,
    `number:${block.number}`,
    `rows:${block.rowCount}:${block.rowsDigest.toString("hex")}`,
    `marks:${createHash("sha256").update(block.rowMarks).digest("hex")}`,
    `previous:${block.previousDigest.toString("hex")}`,
    `closed_at:${block.closedAtMs}`,
    ...block.ranges.map(
      (range) =>
        `range:${Buffer.byteLength(range.topic)}:${range.topic}:${range.partition}:${range.from}:${range.to}:${range.rows}`,
    ),
  ];
  return createHash("sha256").update(lines.join("\n"), "utf8").digest();
}
