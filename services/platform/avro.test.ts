import { describe, expect, it } from "vitest";
import type { AvroRecord } from "../../schemas/avro-json.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { eventSchema, eventSchemas } from "../../schemas/event-schemas.ts";
import { Fault } from "../../schemas/faults.ts";
import type { SchemaSource } from "./avro.ts";
import { EventCodec } from "./avro.ts";
import { mayRead } from "./avro-resolution.ts";
import { toType } from "./avro-types.ts";
import { encodeConfluent } from "./confluent-wire.ts";

const type = "agent.turn.started";
const runtime = {
  kind: "fabric",
  adapter_version: "1",
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
};
const event = toEnvelope(draft(type, { trigger: "prompt" }), {
  eventId: "evt_1",
  recordedAtMs: 1_700_000_000_000,
  tenantId: "acme",
  environment: "local",
  runtime,
  correlationId: "cor_1",
  origin: "agent",
});

function sourceOf(schemas: Record<number, unknown>): SchemaSource & { calls: number } {
  const source = {
    calls: 0,
    schemaById(id: number): Promise<AvroRecord> {
      source.calls += 1;
      const found = schemas[id] as AvroRecord | undefined;
      return found === undefined
        ? Promise.reject(new Fault("SCHEMA_ID_UNKNOWN", `${id}`))
        : Promise.resolve(found);
    },
  };
  return source;
}
const codecOf = (source: SchemaSource): EventCodec =>
  new EventCodec({ source, schemaIds: new Map([[type, 7]]) });
const codeOf = async (work: Promise<unknown>): Promise<string> => {
  const error: unknown = await work.then(
    () => null,
    (cause: unknown) => cause,
  );
  if (!(error instanceof Fault)) throw new Error("no fault", { cause: error });
  return error.code;
};

/** The current schema with more fields in its summary. */
function evolve(...fields: AvroRecord["fields"]): AvroRecord {
  const schema = structuredClone(eventSchema(type));
  const summary = schema.fields.at(-1)?.type as AvroRecord;
  summary.fields.push(...fields);
  return schema;
}
const withVersion = (version: string): Envelope => ({ ...event, schema_version: version });

describe("EventCodec", () => {
  it("decodes what it encoded", async () => {
    const codec = codecOf(sourceOf({ 7: eventSchema(type) }));
    const { schemaId, bytes } = codec.encode(event);
    expect(schemaId).toBe(7);
    expect(bytes.subarray(0, 5)).toEqual(Buffer.from([0, 0, 0, 0, 7]));
    const decoded = await codec.decode(bytes);
    expect(decoded.schemaId).toBe(7);
    expect(decoded.envelope).toEqual(event);
  });

  it("encodes a record larger than its scratch space, and leaves earlier results alone", async () => {
    const codec = codecOf(sourceOf({ 7: eventSchema(type) }));
    const small = codec.encode(event).bytes;
    const copy = Buffer.from(small);
    const large = { ...event, environment: "é".repeat(200_000) };
    expect((await codec.decode(codec.encode(large).bytes)).envelope).toEqual(large);
    expect(small).toEqual(copy);
  });

  it.each([
    ["JSON", Buffer.from('{"a":1}'), "NOT_AVRO"],
    ["an empty value", Buffer.alloc(0), "NOT_AVRO"],
    ["a value that ends in the header", Buffer.from([0, 0, 0]), "NOT_AVRO"],
    ["a negative schema id", Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1]), "NOT_AVRO"],
    ["an unknown schema id", Buffer.from([0, 0, 0, 0, 9, 1]), "SCHEMA_ID_UNKNOWN"],
  ])("names the fault of %s", async (_what, bytes, code) => {
    expect(await codeOf(codecOf(sourceOf({})).decode(bytes))).toBe(code);
  });

  it("refuses bytes that are cut off or go on, at every length", async () => {
    const codec = codecOf(sourceOf({ 7: eventSchema(type) }));
    const { bytes } = codec.encode(event);
    for (let length = 5; length < bytes.length; length += 1) {
      expect(await codeOf(codec.decode(bytes.subarray(0, length)))).toMatch(
        /^(RECORD_UNDECODABLE|VALUE_OUT_OF_RANGE)$/,
      );
    }
    expect(await codeOf(codec.decode(Buffer.concat([bytes, Buffer.from([0])])))).toBe("RECORD_UNDECODABLE");
  });

  it("asks the source once for a hundred records of one schema", async () => {
    const source = sourceOf({ 7: eventSchema(type) });
    const codec = codecOf(source);
    const { bytes } = codec.encode(event);
    await Promise.all(Array.from({ length: 100 }, () => codec.decode(bytes)));
    await codec.decode(bytes);
    expect(source.calls).toBe(1);
  });

  it("forgets a failed fetch", async () => {
    const schemas: Record<number, unknown> = {};
    const codec = codecOf(sourceOf(schemas));
    const { bytes } = codec.encode(event);
    expect(await codeOf(codec.decode(bytes))).toBe("SCHEMA_ID_UNKNOWN");
    schemas[7] = eventSchema(type);
    expect((await codec.decode(bytes)).envelope).toEqual(event);
  });

  it("reads a newer writer with an optional addition, and an older one without it", async () => {
    const newer = evolve({ name: "note", type: ["null", "string"], default: null });
    const bytes = encodeConfluent(8, toType(newer), {
      ...event,
      schema_version: "1.1",
      redacted_summary: { ...event.redacted_summary, note: "x" },
    });
    expect((await codecOf(sourceOf({ 8: newer })).decode(bytes)).envelope).toEqual(withVersion("1.1"));
    const upgraded = new EventCodec({
      source: sourceOf({ 7: eventSchema(type) }),
      schemas: new Map([[type, newer]]),
    });
    const old = codecOf(sourceOf({})).encode(event).bytes;
    expect((await upgraded.decode(old)).envelope.redacted_summary).toEqual({ trigger: "prompt", note: null });
  });

  it("refuses an addition that must be understood", async () => {
    const newer = evolve({
      name: "on_behalf_of",
      type: ["null", "string"],
      default: null,
      must_understand: true,
    });
    const bytes = encodeConfluent(8, toType(newer), event);
    expect(await codeOf(codecOf(sourceOf({ 8: newer })).decode(bytes))).toBe("SCHEMA_REFUSED");
  });

  it("refuses a higher major and a version that is none", async () => {
    const codec = codecOf(sourceOf({ 7: eventSchema(type) }));
    expect(await codeOf(codec.decode(codec.encode(withVersion("2.0")).bytes))).toBe("SCHEMA_REFUSED");
    expect(await codeOf(codec.decode(codec.encode(withVersion("latest")).bytes))).toBe("RECORD_UNDECODABLE");
  });

  it("refuses a record that no event type here has", async () => {
    const stranger = { ...eventSchema(type), name: "AgentTurnBegun" };
    const bytes = encodeConfluent(8, toType(stranger), event);
    expect(await codeOf(codecOf(sourceOf({ 8: stranger })).decode(bytes))).toBe("SCHEMA_REFUSED");
  });

  it("refuses a record whose type field names another event", async () => {
    const codec = codecOf(sourceOf({ 7: eventSchema(type) }));
    const lying = encodeConfluent(7, toType(eventSchema(type)), { ...event, type: "agent.turn.completed" });
    expect(await codeOf(codec.decode(lying))).toBe("RECORD_UNDECODABLE");
  });

  it("turns a symbol that it does not know into the fail-closed one", async () => {
    const newer = structuredClone(eventSchema(type));
    const summary = newer.fields.at(-1)?.type as AvroRecord;
    (summary.fields[0]?.type as { symbols: string[] }).symbols.push("schedule");
    const bytes = encodeConfluent(8, toType(newer), { ...event, redacted_summary: { trigger: "schedule" } });
    expect((await codecOf(sourceOf({ 8: newer })).decode(bytes)).envelope.redacted_summary).toEqual({
      trigger: "unknown",
    });
  });

  it.each([
    [
      "a field of the wrong type",
      { environment: 5 },
      "environment is not of type string",
      "RECORD_UNENCODABLE",
    ],
    ["a timestamp before 1970", { occurred_at: -1 }, "occurred_at is not a timestamp", "VALUE_OUT_OF_RANGE"],
    ["an int of 33 bits", { hop_count: 2 ** 32 }, "hop_count is not an int", "VALUE_OUT_OF_RANGE"],
    [
      "a nested field",
      { execution: { ...event.execution, attempt: "x" } },
      "execution.attempt is not an int",
      "RECORD_UNENCODABLE",
    ],
    [
      "a symbol that does not exist",
      { redacted_summary: { trigger: "constructor" } },
      "redacted_summary.trigger is not a symbol",
      "RECORD_UNENCODABLE",
    ],
    [
      "a field that the schema lacks",
      { redacted_summary: { trigger: "prompt", extra: 1 } },
      "redacted_summary.extra is not a field",
      "RECORD_UNENCODABLE",
    ],
  ])("names the path of %s", (_what, change, text, code) => {
    const bad = { ...event, ...change } as unknown as Envelope;
    const attempt = (): unknown => codecOf(sourceOf({})).encode(bad);
    expect(attempt).toThrow(text);
    expect(attempt).toThrow(expect.objectContaining({ code }));
  });

  it("says what to run when a type has no schema id", () => {
    const codec = new EventCodec({ source: sourceOf({}) });
    expect(() => codec.encode(event)).toThrow(expect.objectContaining({ code: "SCHEMA_NOT_REGISTERED" }));
  });
});

describe("mayRead", () => {
  const make = (name: string, ...fields: object[]): AvroRecord =>
    ({ type: "record", name, fields }) as unknown as AvroRecord;

  it("says yes to every schema of the catalogue for itself", () => {
    for (const schema of eventSchemas.values()) expect(mayRead(schema, schema)).toEqual({ ok: true });
  });

  it("refuses a renamed field without a default: a requester never becomes an approver", () => {
    const writer = make("Ask", { name: "requester", type: "string" });
    const reader = make("Ask", { name: "approver", type: "string" });
    expect(mayRead(writer, reader)).toMatchObject({ ok: false });
  });

  it("refuses another record name, at the top and below", () => {
    const inner = (name: string): AvroRecord =>
      make("Ask", { name: "who", type: ["null", make(name, { name: "id", type: "string" })], default: null });
    expect(mayRead(make("Ask"), make("Answer"))).toMatchObject({ ok: false });
    expect(mayRead(inner("Requester"), inner("Approver"))).toMatchObject({ ok: false });
  });

  it("finds must_understand in unions, arrays, maps and unknown records", () => {
    const guarded = make("Inner", {
      name: "limit",
      type: ["null", "long"],
      default: null,
      must_understand: true,
    });
    const plain = make("Inner");
    for (const wrap of [
      (inner: AvroRecord) => ["null", inner],
      (inner: AvroRecord) => ({ type: "array", items: inner }),
      (inner: AvroRecord) => ({ type: "map", values: inner }),
      (inner: AvroRecord) => inner,
    ]) {
      const writer = make("Outer", { name: "at", type: wrap(guarded) });
      expect(mayRead(writer, make("Outer", { name: "at", type: wrap(plain) }))).toMatchObject({ ok: false });
      expect(mayRead(writer, make("Outer"))).toMatchObject({
        ok: false,
        reason: expect.stringContaining("limit") as string,
      });
      expect(mayRead(writer, writer)).toEqual({ ok: true });
    }
  });

  it("refuses a schema that is none", () => {
    expect(mayRead({ type: "record", name: "Ask" } as unknown as AvroRecord, make("Ask"))).toMatchObject({
      ok: false,
    });
  });
});
