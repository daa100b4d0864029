import type avsc from "avsc";
import { Fault } from "../../schemas/faults.ts";
import type { Reading } from "./avro-resolution.ts";
import { RangeProblem } from "./avro-types.ts";

/** Confluent wire format: a zero byte, the schema id as four bytes big-endian, then the Avro value. */
export const confluentHeaderBytes = 5;
const schemaIdMax = 2 ** 31 - 1;

/** Scratch space that encoding writes into first; a record that needs more gets it once. */
const arenaBytes = 64 * 1024;
const arena = Buffer.allocUnsafe(arenaBytes);

/**
 * Encodes a value in one pass, Confluent-framed. A value that does not fit throws VALUE_OUT_OF_RANGE or
 * RECORD_UNENCODABLE with the path of the first bad field, never with the value.
 */
export function encodeConfluent(schemaId: number, type: avsc.Type, value: unknown): Buffer {
  if (!Number.isInteger(schemaId) || schemaId < 0 || schemaId > schemaIdMax) {
    throw new Fault("RECORD_UNENCODABLE", `schema id ${schemaId} does not fit four bytes`);
  }
  if (!type.isValid(value, { noUndeclaredFields: true })) throw toEncodingFault(type, value);
  let target = arena;
  let end = type.encode(value, target, confluentHeaderBytes);
  if (end < 0) {
    target = Buffer.allocUnsafe(target.length - end);
    end = type.encode(value, target, confluentHeaderBytes);
  }
  target.writeUInt8(0, 0);
  target.writeUInt32BE(schemaId, 1);
  // The arena is used again; a buffer made for this value alone may go out as it is.
  return target === arena ? Buffer.from(target.subarray(0, end)) : target.subarray(0, end);
}

/** Reads the header; throws NOT_AVRO for anything that is not Confluent-framed, such as JSON or an empty value. */
export function schemaIdOf(bytes: Buffer): number {
  if (bytes.length === 0) throw new Fault("NOT_AVRO", "the value is empty");
  if (bytes[0] !== 0)
    throw new Fault(
      "NOT_AVRO",
      `the first byte is ${bytes[0]}, not 0: encode with the schema registry's wire format`,
    );
  if (bytes.length < confluentHeaderBytes) throw new Fault("NOT_AVRO", "the value ends inside the header");
  const schemaId = bytes.readUInt32BE(1);
  if (schemaId > schemaIdMax) throw new Fault("NOT_AVRO", "the schema id is negative");
  return schemaId;
}

/** Decodes a framed value; throws RECORD_UNDECODABLE (also for trailing bytes) or VALUE_OUT_OF_RANGE. */
export function decodeConfluent(bytes: Buffer, reading: Reading): unknown {
  let decoded: { value: unknown; offset: number };
  try {
    decoded = reading.type.decode(bytes, confluentHeaderBytes, reading.resolver ?? undefined);
  } catch (cause) {
    if (cause instanceof RangeProblem) throw new Fault("VALUE_OUT_OF_RANGE", cause.message, { cause });
    throw new Fault("RECORD_UNDECODABLE", "the bytes do not follow the schema", { cause });
  }
  if (decoded.offset < 0) throw new Fault("RECORD_UNDECODABLE", "the value is cut off");
  const trailing = bytes.length - decoded.offset;
  if (trailing > 0) throw new Fault("RECORD_UNDECODABLE", `${trailing} bytes follow the value`);
  return decoded.value;
}

function toEncodingFault(type: avsc.Type, value: unknown): Fault {
  let first: { path: string; expected: string; range: boolean } | undefined;
  type.isValid(value, {
    noUndeclaredFields: true,
    errorHook: (path, found: unknown, at) => {
      first ??= describe(path, found, at);
    },
  });
  const at = first ?? { path: "", expected: "a value of the schema", range: false };
  return new Fault(
    at.range ? "VALUE_OUT_OF_RANGE" : "RECORD_UNENCODABLE",
    `${at.path === "" ? "the event" : at.path} is not ${at.expected}`,
  );
}

function describe(
  path: readonly string[],
  found: unknown,
  type: avsc.Type,
): { path: string; expected: string; range: boolean } {
  const fields = (type as { fields?: readonly { name: string }[] }).fields;
  if (fields !== undefined && typeof found === "object" && found !== null) {
    const extra = Object.keys(found).find((name) => !fields.some((field) => field.name === name));
    if (extra !== undefined)
      return { path: [...path, extra].join("."), expected: "a field of the schema", range: false };
  }
  const expected = expectedText(type);
  const range =
    typeof found === "number" || typeof found === "bigint" ? /int|long|timestamp/.test(expected) : false;
  return { path: path.join("."), expected, range };
}

function expectedText(type: avsc.Type): string {
  const branches = (type as { types?: readonly avsc.Type[] }).types;
  if (branches !== undefined) return branches.map(expectedText).join(" or ");
  switch (type.typeName) {
    case "abstract:long":
      return "a long (a bigint of 64 bits)";
    case "int":
      return "an int (a whole number of 32 bits)";
    case "logical:timestamp-millis":
      return "a timestamp (a whole number of milliseconds from 0 to 2^52)";
    case "enum":
      return `a symbol of ${type.name ?? "the enum"}`;
    case "record":
      return `a record ${type.name ?? ""}`.trim();
    default:
      return type.typeName === "null" ? "null" : `of type ${type.typeName}`;
  }
}
