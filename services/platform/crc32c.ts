/** CRC-32C (Castagnoli), reflected. */
const polynomial = 0x82f63b78;

/** Eight tables: eight bytes a step instead of one, about four times as fast. */
const tables = makeTables();

function makeTables(): Int32Array[] {
  const made = Array.from({ length: 8 }, () => new Int32Array(256));
  for (let byte = 0; byte < 256; byte += 1) {
    let value = byte;
    for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ (value & 1 ? polynomial : 0);
    at(made, 0)[byte] = value;
  }
  for (let byte = 0; byte < 256; byte += 1) {
    for (let table = 1; table < 8; table += 1) {
      const before = at(made, table - 1)[byte] ?? 0;
      at(made, table)[byte] = (before >>> 8) ^ (at(made, 0)[before & 0xff] ?? 0);
    }
  }
  return made;
}

function at(made: readonly Int32Array[], index: number): Int32Array {
  const table = made[index];
  if (table === undefined) throw new RangeError("there are eight tables");
  return table;
}

/** CRC-32C of `bytes` from `start` to `end`, as an unsigned number: what a Kafka record batch carries. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  // Typed arrays hold a number at each of these places; `!` spares a test per byte.
  let crc = -1;
  let i = start;
  for (; i + 8 <= end; i += 8) {
    crc ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    crc =
      t7[crc & 0xff]! ^
      t6[(crc >>> 8) & 0xff]! ^
      t5[(crc >>> 16) & 0xff]! ^
      t4[crc >>> 24]! ^
      t3[bytes[i + 4]!]! ^
      t2[bytes[i + 5]!]! ^
      t1[bytes[i + 6]!]! ^
      t0[bytes[i + 7]!]!;
  }
  for (; i < end; i += 1) crc = (crc >>> 8) ^ t0[(crc ^ bytes[i]!) & 0xff]!;
  return (crc ^ -1) >>> 0;
}
