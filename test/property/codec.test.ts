import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AvroRecord, AvroSchema } from "../../schemas/avro-json.ts";
import { isEnum, isRecord } from "../../schemas/avro-json.ts";
import { catalog, eventTypes } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { Fault } from "../../schemas/faults.ts";
import { EventCodec } from "../../services/platform/avro.ts";
import { timestampMaxMs } from "../../services/platform/avro-types.ts";

/** Any value of a schema; named types are looked up among those seen before. */
function valuesOf(schema: AvroSchema, named = new Map<string, AvroSchema>()): fc.Arbitrary<unknown> {
  if (Array.isArray(schema)) return fc.oneof(...schema.map((branch) => valuesOf(branch, named)));
  if (typeof schema === "object" && "name" in schema && schema.name !== undefined)
    named.set(schema.name, schema);
  if (typeof schema === "object" && isEnum(schema)) return fc.constantFrom(...schema.symbols);
  if (typeof schema === "object" && isRecord(schema))
    return fc.record(
      Object.fromEntries(schema.fields.map((field) => [field.name, valuesOf(field.type, named)])),
    );
  if (typeof schema === "object" && schema.type === "array")
    return fc.array(valuesOf(schema.items, named), { maxLength: 5 });
  if (typeof schema === "object" && schema.type === "map")
    return fc.dictionary(fc.string(), valuesOf(schema.values, named));
  const logical = typeof schema === "object" && "logicalType" in schema ? schema.logicalType : undefined;
  if (logical === "timestamp-millis")
    return fc.oneof(fc.integer({ min: 0, max: timestampMaxMs }), fc.constantFrom(0, timestampMaxMs));
  const primitive = typeof schema === "object" ? schema.type : schema;
  switch (primitive) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "int":
      return fc.oneof(fc.integer(), fc.constantFrom(-(2 ** 31), 2 ** 31 - 1));
    case "long":
      return fc.oneof(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.constantFrom(-4503599627370497n, -(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n),
      );
    case "string":
      return fc.string({ unit: "binary", maxLength: 100 });
    default: {
      const found = named.get(primitive);
      if (found === undefined) throw new Error(`no values for ${primitive}`);
      return valuesOf(found, named);
    }
  }
}

const codec = new EventCodec({
  source: {
    schemaById: (id) => {
      const type = eventTypes[id - 1];
      // Half of the ids are a newer writer, so that resolvers are under test too.
      if (type !== undefined) return Promise.resolve(eventSchema(type));
      const newer = eventTypes[id - 1001];
      if (newer === undefined) return Promise.reject(new Fault("SCHEMA_ID_UNKNOWN"));
      const schema = structuredClone(eventSchema(newer));
      (schema.fields.at(-1)?.type as AvroRecord).fields.unshift(
        { name: "added", type: { type: "array", items: "string" }, default: [] },
        { name: "counts", type: ["null", { type: "map", values: "string" }], default: null },
      );
      return Promise.resolve(schema);
    },
  },
  schemaIds: new Map(eventTypes.map((type, at) => [type, at + 1])),
});

const envelopes = fc
  .constantFrom(...eventTypes)
  .chain((type) =>
    valuesOf(eventSchema(type)).map(
      (value) => ({ ...(value as Envelope), type, schema_version: catalog[type].version }) as Envelope,
    ),
  );
const faults = new Set([
  "RECORD_UNDECODABLE",
  "VALUE_OUT_OF_RANGE",
  "SCHEMA_REFUSED",
  "NOT_AVRO",
  "SCHEMA_ID_UNKNOWN",
]);
const settle = async (bytes: Buffer): Promise<"decoded" | "fault"> => {
  try {
    await codec.decode(bytes);
    return "decoded";
  } catch (error) {
    if (error instanceof Fault && faults.has(error.code)) return "fault";
    throw error;
  }
};

describe("event codec", () => {
  it("decodes every envelope of every type to what was encoded", async () => {
    await fc.assert(
      fc.asyncProperty(envelopes, async (envelope) => {
        const { bytes } = codec.encode(envelope);
        expect((await codec.decode(bytes)).envelope).toEqual(envelope);
      }),
      { numRuns: 500 },
    );
  });

  it("turns any bytes after any schema id into an event or a fault, never into anything else", async () => {
    const ids = fc.oneof(
      fc.integer({ min: 1, max: eventTypes.length }),
      fc.integer({ min: 1001, max: 1000 + eventTypes.length }),
      fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    );
    await fc.assert(
      fc.asyncProperty(ids, fc.uint8Array({ maxLength: 300 }), async (id, body) => {
        const header = Buffer.alloc(5);
        header.writeUInt32BE(id, 1);
        await settle(Buffer.concat([header, body]));
        await settle(Buffer.from(body));
      }),
      { numRuns: 3_000 },
    );
  });

  it("turns an event with bytes cut, added or changed into an event or a fault", async () => {
    await fc.assert(
      fc.asyncProperty(
        envelopes,
        fc.nat(),
        fc.uint8Array({ maxLength: 12 }),
        fc.boolean(),
        async (envelope, where, patch, newer) => {
          const { bytes } = codec.encode(envelope);
          if (newer) bytes.writeUInt32BE(bytes.readUInt32BE(1) + 1000, 1);
          const at = 5 + (where % (bytes.length - 5));
          await settle(Buffer.concat([bytes.subarray(0, at), patch, bytes.subarray(at + patch.length)]));
          if (!newer) {
            expect(await settle(bytes.subarray(0, at))).toBe("fault");
            expect(await settle(Buffer.concat([bytes, Buffer.from([0]), patch]))).toBe("fault");
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("refuses a timestamp outside its bounds and a long outside 64 bits when writing", async () => {
    await fc.assert(
      fc.asyncProperty(
        envelopes,
        fc.oneof(
          fc.integer({ min: -(2 ** 53), max: -1 }),
          fc.integer({ min: timestampMaxMs + 1, max: 2 ** 53 - 1 }),
          fc.constant(0.5),
        ),
        (envelope, at) => {
          expect(() => codec.encode({ ...envelope, occurred_at: at })).toThrow(
            expect.objectContaining({ code: "VALUE_OUT_OF_RANGE" }),
          );
          return Promise.resolve();
        },
      ),
      { numRuns: 200 },
    );
  });
});
