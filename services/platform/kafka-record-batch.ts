import { crc32c } from "./crc32c.ts";
import type { KafkaRecord } from "./kafka.ts";

/** Who sends a batch: the broker drops a repeat of (id, epoch, sequence). */
export interface BatchIdentity {
  readonly producerId: bigint;
  readonly producerEpoch: number;
  /** Sequence number of the first record in its partition. */
  readonly baseSequence: number;
}

/** Bytes before the records: from baseOffset to the record count. */
const batchHeaderBytes = 61;
const crcAt = 17;
const attributesAt = 21;

/** Header values that repeat from record to record, encoded once: type, source, schema, content type. */
const cachedValuesPerName = 256;
/** Null: a name whose values do not repeat, such as an id or a time; looking them up would cost more than writing. */
const encodedHeaders = new Map<string, Map<string, Buffer> | null>();

/** Upper estimate of a record's bytes in a batch, for filling batches. */
export function recordBytes(record: KafkaRecord): number {
  let bytes = record.value.length + record.key.length + 32;
  for (const name in record.headers) bytes += name.length + (record.headers[name]?.length ?? 0) + 4;
  return bytes;
}

/** A batch whose size is known before it is written. */
export interface PreparedBatch {
  readonly bytes: number;
  /** Writes the batch at `offset` of a buffer with room for it. */
  write(buffer: Buffer, offset: number): void;
}

/** Prepares one record batch (magic 2, no compression). Pure but for the cache of encoded headers. */
export function prepareRecordBatch(records: readonly KafkaRecord[], identity: BatchIdentity): PreparedBatch {
  const baseTimestamp = records[0]?.timestampMs ?? 0;
  let latest = baseTimestamp;
  let bytes = batchHeaderBytes;
  const parts = records.map((record, index) => {
    const part = measure(record, index, record.timestampMs - baseTimestamp);
    bytes += sizeOfVarint(part.bodyBytes) + part.bodyBytes;
    if (record.timestampMs > latest) latest = record.timestampMs;
    return part;
  });
  return {
    bytes,
    write(buffer, start) {
      buffer.writeBigInt64BE(0n, start);
      buffer.writeInt32BE(bytes - 12, start + 8);
      buffer.writeInt32BE(-1, start + 12);
      buffer.writeInt8(2, start + 16);
      buffer.writeInt16BE(0, start + attributesAt);
      buffer.writeInt32BE(records.length - 1, start + 23);
      buffer.writeBigInt64BE(BigInt(baseTimestamp), start + 27);
      buffer.writeBigInt64BE(BigInt(latest), start + 35);
      buffer.writeBigInt64BE(identity.producerId, start + 43);
      buffer.writeInt16BE(identity.producerEpoch, start + 51);
      buffer.writeInt32BE(identity.baseSequence, start + 53);
      buffer.writeInt32BE(records.length, start + 57);
      let offset = start + batchHeaderBytes;
      for (const part of parts) offset = writeRecord(buffer, offset, part);
      buffer.writeUInt32BE(crc32c(buffer, start + attributesAt, start + bytes), start + crcAt);
    },
  };
}

interface MeasuredRecord {
  readonly record: KafkaRecord;
  readonly index: number;
  readonly timestampDelta: number;
  readonly keyBytes: number;
  readonly headers: readonly (Buffer | RawHeader)[];
  readonly bodyBytes: number;
}
interface RawHeader {
  readonly name: string;
  readonly nameBytes: number;
  readonly value: string;
  readonly valueBytes: number;
  readonly length: number;
}

function measure(record: KafkaRecord, index: number, timestampDelta: number): MeasuredRecord {
  const keyBytes = Buffer.byteLength(record.key);
  const headers: (Buffer | RawHeader)[] = [];
  let headersBytes = 0;
  for (const name in record.headers) {
    const header = toHeader(name, record.headers[name] ?? "");
    headers.push(header);
    headersBytes += header.length;
  }
  const bodyBytes =
    1 +
    sizeOfVarint(timestampDelta) +
    sizeOfVarint(index) +
    sizeOfVarint(keyBytes) +
    keyBytes +
    sizeOfVarint(record.value.length) +
    record.value.length +
    sizeOfVarint(headers.length) +
    headersBytes;
  return { record, index, timestampDelta, keyBytes, headers, bodyBytes };
}

function toHeader(name: string, value: string): Buffer | RawHeader {
  let ofName = encodedHeaders.get(name);
  const cached = ofName?.get(value);
  if (cached !== undefined) return cached;
  const nameBytes = Buffer.byteLength(name);
  const valueBytes = Buffer.byteLength(value);
  const length = sizeOfVarint(nameBytes) + nameBytes + sizeOfVarint(valueBytes) + valueBytes;
  const raw = { name, nameBytes, value, valueBytes, length };
  if (ofName === null) return raw;
  if (ofName === undefined) encodedHeaders.set(name, (ofName = new Map<string, Buffer>()));
  if (ofName.size >= cachedValuesPerName) {
    encodedHeaders.set(name, null);
    return raw;
  }
  const encoded = Buffer.allocUnsafeSlow(length);
  writeHeader(encoded, 0, raw);
  ofName.set(value, encoded);
  return encoded;
}

function writeRecord(buffer: Buffer, start: number, part: MeasuredRecord): number {
  const { key, value } = part.record;
  let offset = writeVarint(buffer, start, part.bodyBytes);
  buffer[offset] = 0;
  offset = writeVarint(buffer, offset + 1, part.timestampDelta);
  offset = writeVarint(buffer, offset, part.index);
  offset = writeVarint(buffer, offset, part.keyBytes);
  offset += buffer.write(key, offset);
  offset = writeVarint(buffer, offset, value.length);
  buffer.set(value, offset);
  offset = writeVarint(buffer, offset + value.length, part.headers.length);
  for (const header of part.headers) {
    if (header instanceof Uint8Array) {
      buffer.set(header, offset);
      offset += header.length;
    } else {
      offset = writeHeader(buffer, offset, header);
    }
  }
  return offset;
}

function writeHeader(buffer: Buffer, start: number, header: RawHeader): number {
  let offset = writeVarint(buffer, start, header.nameBytes);
  offset += buffer.write(header.name, offset);
  offset = writeVarint(buffer, offset, header.valueBytes);
  return offset + buffer.write(header.value, offset);
}

/** Zigzag: small numbers of either sign are short. Up to 2^52 in amount. */
function zigzag(value: number): number {
  return value >= 0 ? value * 2 : -value * 2 - 1;
}

function sizeOfVarint(value: number): number {
  let rest = zigzag(value);
  let bytes = 1;
  while (rest >= 0x80) {
    rest = Math.floor(rest / 0x80);
    bytes += 1;
  }
  return bytes;
}

function writeVarint(buffer: Buffer, start: number, value: number): number {
  let rest = zigzag(value);
  let offset = start;
  while (rest >= 0x80) {
    buffer[offset] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
    offset += 1;
  }
  buffer[offset] = rest;
  return offset + 1;
}
