/**
 * Postgres arrays as node-postgres parameters. Texts that need no quotes travel as a literal, the rest in the binary form,
 * which neither side has to escape; node-postgres sends a Buffer as binary, whatever the parameter's type.
 */

/** Object ids of the element types, which are part of the binary form; built-in types keep theirs for ever. */
const oids = { bytea: 17, text: 25, jsonb: 3802 } as const;
/** The only version of jsonb's binary form there is. */
const jsonbVersion = 1;
const headBytes = 20;

/** `uuid[]` or an array of numbers. */
export function plainArray(values: readonly (string | number | null)[]): string {
  return `{${values.map((one) => one ?? "NULL").join(",")}}`;
}

/** `text[]` of words that hold neither quote nor backslash: names of an enumeration, tenants, digests, our own references. */
export function wordArray(values: readonly string[]): string {
  return values.length === 0 ? "{}" : `{"${values.join('","')}"}`;
}

/** `text[]` of any texts without NUL. */
export function textArray(values: readonly (string | null)[]): Buffer {
  return toTexts(oids.text, values, 0);
}

/** One `text[]` as a literal: an element of a `text[]` that the server casts. */
export function textArrayLiteral(values: readonly string[]): string {
  return `{${values.map((one) => `"${one.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}

/** `jsonb[]` of JSON texts. */
export function jsonArray(values: readonly string[]): Buffer {
  return toTexts(oids.jsonb, values, 1);
}

/** `bytea[]`. */
export function byteaArray(values: readonly (Buffer | null)[]): Buffer {
  let size = headBytes;
  for (const one of values) size += 4 + (one?.length ?? 0);
  const bytes = startArray(oids.bytea, values.length, size);
  let at = headBytes;
  for (const one of values) {
    at = bytes.writeInt32BE(one?.length ?? -1, at);
    if (one !== null) at += one.copy(bytes, at);
  }
  return bytes;
}

function toTexts(oid: number, values: readonly (string | null)[], versionBytes: 0 | 1): Buffer {
  let size = headBytes;
  // UTF-8 takes three bytes for a UTF-16 unit at most; what is too much is cut off below.
  for (const one of values) size += 4 + versionBytes + (one?.length ?? 0) * 3;
  const bytes = startArray(oid, values.length, size);
  let at = headBytes;
  for (const one of values) {
    if (one === null) {
      at = bytes.writeInt32BE(-1, at);
      continue;
    }
    const from = at + 4;
    if (versionBytes === 1) bytes[from] = jsonbVersion;
    const written = versionBytes + bytes.write(one, from + versionBytes, "utf8");
    bytes.writeInt32BE(written, at);
    at = from + written;
  }
  return values.length === 0 ? bytes : bytes.subarray(0, at);
}

/** The head: one dimension from index 1, or none for an empty array. */
function startArray(oid: number, length: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(length === 0 ? 12 : size);
  bytes.writeInt32BE(length === 0 ? 0 : 1, 0);
  // "May hold nulls" is only a hint.
  bytes.writeInt32BE(1, 4);
  bytes.writeInt32BE(oid, 8);
  if (length === 0) return bytes;
  bytes.writeInt32BE(length, 12);
  bytes.writeInt32BE(1, 16);
  return bytes;
}
