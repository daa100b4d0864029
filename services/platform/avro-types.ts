import avsc from "avsc";

/** The last millisecond that a timestamp may name: 2^52, beyond which avsc is not exact on the negative side. */
export const timestampMaxMs = 2 ** 52;

/** A number that its field's type cannot hold; the codec turns it into the fault VALUE_OUT_OF_RANGE. */
export class RangeProblem extends Error {}

/** The part of avsc's cursor that the types below use. */
interface Tap {
  readonly buf: Buffer;
  pos: number;
  readLong(): number;
  skipLong(): void;
  readInt(): number;
  readString(): string | undefined;
  skipString(): void;
  writeLong(value: number): void;
  writeString(text: string): void;
}
interface Readable {
  _read(tap: Tap): unknown;
  _skip(tap: Tap): void;
}
type Hook = (value: unknown, type: avsc.Type) => void;

const longMin = -(2n ** 63n);
const longMax = 2n ** 63n - 1n;
const varintMaxBytes = 10;
const bits28 = 2 ** 28;

/**
 * Avro `long` as bigint, exact over the signed 64-bit range. avsc's own long changes values below -(2^52) without a
 * word (mtth/avsc#455).
 */
const bigintLong = avsc.types.LongType.__with(
  {
    fromBuffer: fromVarint,
    toBuffer: toVarint,
    fromJSON: (value: number | string) => BigInt(value),
    toJSON: (value: bigint) =>
      value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : `${value}`,
    isValid: (value: unknown) => typeof value === "bigint" && value >= longMin && value <= longMax,
    compare: (one: bigint, other: bigint) => (one === other ? 0 : one < other ? -1 : 1),
  },
  true,
);

/** `bytes` is one zigzag varint. */
function fromVarint(bytes: Buffer): bigint {
  if (bytes.length > varintMaxBytes || (bytes.length === varintMaxBytes && (bytes[9] ?? 0) > 1)) {
    throw new RangeProblem("a long has more than 64 bits");
  }
  let low = 0;
  let middle = 0;
  for (let at = Math.min(bytes.length, 4) - 1; at >= 0; at -= 1) low = low * 128 + ((bytes[at] ?? 0) & 0x7f);
  for (let at = Math.min(bytes.length, 8) - 1; at >= 4; at -= 1)
    middle = middle * 128 + ((bytes[at] ?? 0) & 0x7f);
  // 49 bits fit a double: the short way that almost every value takes.
  if (bytes.length <= 7) {
    const zigzag = middle * bits28 + low;
    return BigInt(zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2);
  }
  const high = ((bytes[8] ?? 0) & 0x7f) + ((bytes[9] ?? 0) & 0x7f) * 128;
  const zigzag = (BigInt(high) << 56n) | (BigInt(middle) << 28n) | BigInt(low);
  return (zigzag >> 1n) ^ -(zigzag & 1n);
}

function toVarint(value: bigint): Buffer {
  let rest = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
  const bytes: number[] = [];
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

/** Avro `timestamp-millis` as a number of milliseconds, an integer from 0 to 2^52 on both ways. */
class TimestampMillis extends avsc.types.LogicalType {
  constructor(schema: avsc.Schema, options?: unknown) {
    super(schema, options);
    // A logical type on the wrong underlying type is no logical type: avsc then falls back to that type.
    if (this.underlyingType.typeName !== "long") throw new Error("timestamp-millis needs a long");
  }
  protected override _fromValue(value: number): number {
    return toTimestamp(value);
  }
  protected override _toValue(value: unknown): number {
    return toTimestamp(value);
  }
  protected override _resolve(writer: avsc.Type): ((value: number | bigint) => number) | undefined {
    switch (writer.typeName) {
      case "logical:timestamp-millis":
      case "abstract:long":
      case "long":
      case "int":
        return (value) => toTimestamp(Number(value));
      default:
        return undefined;
    }
  }
}

function toTimestamp(value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= timestampMaxMs)
    return value;
  throw new RangeProblem("a timestamp is not an integer from 0 to 2^52");
}

/** avsc reads an int of any size without a check. */
class CheckedInt extends avsc.types.IntType {
  _read(tap: Tap): number {
    const value = tap.readInt();
    if (value !== (value | 0)) throw new RangeProblem("an int has more than 32 bits");
    return value;
  }
}

/** avsc writes a lone surrogate as bytes that are no UTF-8; it becomes U+FFFD here, as in every other encoder. */
class WellFormedString extends avsc.types.StringType {
  _write(tap: Tap, text: string): void {
    tap.writeString(loneSurrogate.test(text) ? Buffer.from(text, "utf8").toString("utf8") : text);
  }
}
const loneSurrogate = /\p{Surrogate}/u;

/** avsc takes `constructor` and its like for a symbol of any enum and writes symbol 0. */
class OwnSymbolsEnum extends avsc.types.EnumType {
  _check(value: unknown, _flags: unknown, hook?: Hook): boolean {
    const known = typeof value === "string" && this.symbols.includes(value);
    if (!known) hook?.(value, this);
    return known;
  }
  _write(tap: Tap, value: string): void {
    const index = this.symbols.indexOf(value);
    if (index < 0) throw new Error("not a symbol of the enum");
    tap.writeLong(index);
  }
}

/** avsc trusts the count in front of an array: eight bytes of garbage can ask for 2^40 items. */
class BoundedArray extends avsc.types.ArrayType {
  declare readonly itemsType: avsc.Type & Readable;
  _read(tap: Tap): unknown[] {
    const values: unknown[] = [];
    for (let count = readCount(tap); count > 0; count = readCount(tap)) {
      for (let at = 0; at < count; at += 1) values.push(this.itemsType._read(tap));
    }
    return values;
  }
  _skip(tap: Tap): void {
    for (let count = readCount(tap); count > 0; count = readCount(tap)) {
      for (let at = 0; at < count; at += 1) this.itemsType._skip(tap);
    }
  }
}

/** The same for maps; a key such as `__proto__` stays a key. */
class BoundedMap extends avsc.types.MapType {
  declare readonly valuesType: avsc.Type & Readable;
  _read(tap: Tap): Record<string, unknown> {
    const values: Record<string, unknown> = {};
    for (let count = readCount(tap); count > 0; count = readCount(tap)) {
      for (let at = 0; at < count; at += 1) {
        const key = tap.readString() ?? "";
        const value = this.valuesType._read(tap);
        Object.defineProperty(values, key, { value, enumerable: true, configurable: true, writable: true });
      }
    }
    return values;
  }
  _skip(tap: Tap): void {
    for (let count = readCount(tap); count > 0; count = readCount(tap)) {
      for (let at = 0; at < count; at += 1) {
        tap.skipString();
        this.valuesType._skip(tap);
      }
    }
  }
}

/** Items of the next block; an item takes a byte at least, so no count can be larger than what is left. */
function readCount(tap: Tap): number {
  let count = tap.readLong();
  if (count < 0) {
    count = -count;
    tap.skipLong();
  }
  if (count > tap.buf.length - tap.pos)
    throw new Error("an array or map says that it is longer than the record");
  return count;
}

const checkedInt = new CheckedInt();
const wellFormedString = new WellFormedString();

/**
 * The avsc type of a schema, with the types above at every depth. Unions of two types that JavaScript cannot tell
 * apart are refused. Throws avsc's error when the schema is not valid.
 */
export function toType(schema: object | string): avsc.Type {
  return avsc.Type.forSchema(schema as avsc.Schema, avroOptions());
}

/** Options for every avsc type in the product: new ones for each schema, since avsc keeps its names in them. */
export function avroOptions(): Partial<avsc.ForSchemaOptions> {
  return {
    wrapUnions: "never",
    logicalTypes: { "timestamp-millis": TimestampMillis },
    omitRecordMethods: true,
    typeHook,
  };
}

function typeHook(schema: unknown, options: unknown): avsc.Type | undefined {
  const kind = typeof schema === "string" ? schema : (schema as { type?: unknown }).type;
  const logical = typeof schema === "string" ? undefined : (schema as { logicalType?: unknown }).logicalType;
  // avsc comes here twice for a logical type, and has to make the underlying long by itself.
  if (logical === "timestamp-millis") return undefined;
  const definition = schema as avsc.Schema;
  switch (kind) {
    case "long":
      return bigintLong;
    case "int":
      return checkedInt;
    case "string":
      return wellFormedString;
    case "enum":
      return new OwnSymbolsEnum(definition, options);
    case "array":
      return new BoundedArray(definition, options);
    case "map":
      return new BoundedMap(definition, options);
    default:
      return undefined;
  }
}
