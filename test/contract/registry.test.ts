import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer, request } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import type { AvroRecord } from "../../schemas/avro-json.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { Fault } from "../../schemas/faults.ts";
import { EventCodec } from "../../services/platform/avro.ts";
import { toType } from "../../services/platform/avro-types.ts";
import { encodeConfluent } from "../../services/platform/confluent-wire.ts";
import { openRegistry } from "../../services/platform/registry.ts";

const { registryUrl } = inject("stack");
const prefix = `test-${process.pid}-${randomBytes(4).toString("hex")}.`;
const type = "agent.turn.started";
const made = new Set<string>();
const newSubject = (): string => {
  const subject = `${prefix}${randomBytes(3).toString("hex")}-value`;
  made.add(subject);
  return subject;
};

const registry = openRegistry({ url: registryUrl });
afterAll(async () => {
  for (const subject of made) {
    await fetch(`${registryUrl}/subjects/${subject}`, { method: "DELETE" });
    await fetch(`${registryUrl}/subjects/${subject}?permanent=true`, { method: "DELETE" });
  }
  registry.close();
});

const codeOf = async (work: Promise<unknown>): Promise<string> => {
  const error: unknown = await work.then(
    () => "nothing",
    (cause: unknown) => cause,
  );
  return error instanceof Fault ? error.code : String(error);
};
const evolve = (...fields: AvroRecord["fields"]): AvroRecord => {
  const schema = structuredClone(eventSchema(type));
  (schema.fields.at(-1)?.type as AvroRecord).fields.push(...fields);
  return schema;
};
const event = toEnvelope(draft(type, { trigger: "prompt" }), {
  eventId: "evt_1",
  recordedAtMs: 1_700_000_000_000,
  tenantId: "acme",
  environment: "local",
  runtime: {
    kind: "fabric",
    adapter_version: "1",
    runtime_version: null,
    permission_mode: null,
    sandbox: null,
  },
  correlationId: "cor_1",
  origin: "agent",
});

/** A registry in between that counts, and that can be away, silent, or break off in the middle of an answer. */
class Between {
  readonly calls = new Map<string, number>();
  mode: "through" | "refuse" | "silent" | "half" = "through";
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  constructor() {
    this.#server = createServer((incoming, outgoing) => {
      this.#handle(incoming, outgoing);
    });
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }
  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${new URL(registryUrl).pathname}`;
  }
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
  count(part: string): number {
    return [...this.calls].filter(([path]) => path.includes(part)).reduce((sum, [, count]) => sum + count, 0);
  }
  #handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const path = incoming.url ?? "";
    this.calls.set(path, (this.calls.get(path) ?? 0) + 1);
    switch (this.mode) {
      case "refuse":
        incoming.socket.destroy();
        return;
      case "silent":
        return;
      case "half":
        outgoing.writeHead(200, { "content-type": "application/json", "content-length": "5000" });
        outgoing.write('{"schema":');
        outgoing.once("drain", () => undefined);
        setImmediate(() => incoming.socket.destroy());
        return;
      case "through": {
        const onward = request(
          new URL(path, registryUrl),
          { method: incoming.method, headers: incoming.headers },
          (answer) => {
            outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
            answer.pipe(outgoing);
          },
        );
        onward.on("error", () => outgoing.destroy());
        incoming.pipe(onward);
      }
    }
  }
}

describe("schema registry port", () => {
  it("keeps the id of a schema, and the schema with must_understand and docs", async () => {
    const subject = newSubject();
    const schema = evolve({
      name: "limit",
      type: ["null", "long"],
      default: null,
      must_understand: true,
      doc: "calls",
    });
    const first = await registry.register(subject, schema, "FULL_TRANSITIVE");
    const again = await openRegistry({ url: registryUrl }).register(subject, schema, "FULL_TRANSITIVE");
    expect(again).toEqual(first);
    expect(await openRegistry({ url: registryUrl }).schemaById(first.schemaId)).toEqual(schema);
    expect(await registry.latest(subject)).toEqual({ schemaId: first.schemaId, schema });
    expect(await registry.subjects()).toContain(subject);
  });

  it("sets FULL_TRANSITIVE in the registry before the first version", async () => {
    const subject = newSubject();
    expect(await registry.getCompatibility(subject)).toBeNull();
    await registry.register(subject, eventSchema(type), "FULL_TRANSITIVE");
    expect(await registry.getCompatibility(subject)).toBe("FULL_TRANSITIVE");
  });

  it("raises a subject that somebody set to NONE", async () => {
    const subject = newSubject();
    await registry.register(subject, eventSchema(type), "NONE");
    await registry.register(subject, eventSchema(type), "FULL_TRANSITIVE");
    expect(await registry.getCompatibility(subject)).toBe("FULL_TRANSITIVE");
  });

  it("lets optional fields and new symbols in, and nothing that breaks either way", async () => {
    const subject = newSubject();
    const note = {
      name: "note",
      type: ["null", "string"],
      default: null,
    } satisfies AvroRecord["fields"][number];
    const first = await registry.register(subject, eventSchema(type), "FULL_TRANSITIVE");
    const second = await registry.register(subject, evolve(note), "FULL_TRANSITIVE");
    expect(second.schemaId).not.toBe(first.schemaId);
    const symbols = evolve(note);
    ((symbols.fields.at(-1)?.type as AvroRecord).fields[0]?.type as { symbols: string[] }).symbols.push(
      "schedule",
    );
    await registry.register(subject, symbols, "FULL_TRANSITIVE");
    for (const breaking of [
      evolve({ name: "note", type: "string" }),
      evolve(note, { name: "needed", type: "string" }),
      evolve({ name: "note", type: ["null", "long"], default: null }),
    ]) {
      const status = await fetch(`${registryUrl}/subjects/${subject}/versions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ schema: JSON.stringify(breaking) }),
      });
      expect(status.status).toBe(409);
      expect(await codeOf(registry.register(subject, breaking, "FULL_TRANSITIVE"))).toBe(
        "SCHEMA_INCOMPATIBLE",
      );
    }
  });

  it("names an unknown id, an unknown subject and a schema that is none", async () => {
    expect(await codeOf(registry.schemaById(2 ** 31 - 1))).toBe("SCHEMA_ID_UNKNOWN");
    expect(await registry.latest(`${prefix}nothing-value`)).toBeNull();
    const broken = { type: "record", name: "Broken" } as unknown as AvroRecord;
    expect(await codeOf(registry.register(newSubject(), broken, "FULL_TRANSITIVE"))).toBe(
      "SCHEMA_INCOMPATIBLE",
    );
  });

  it("reads an evolved writer with the old schema and an old writer with the evolved one, by id", async () => {
    const subject = newSubject();
    const newer = evolve({ name: "note", type: ["null", "string"], default: null });
    const one = await registry.register(subject, eventSchema(type), "FULL_TRANSITIVE");
    const two = await registry.register(subject, newer, "FULL_TRANSITIVE");
    const oldBytes = encodeConfluent(one.schemaId, toType(eventSchema(type)), event);
    const newBytes = encodeConfluent(two.schemaId, toType(newer), {
      ...event,
      redacted_summary: { trigger: "prompt", note: "n" },
    });
    const old = new EventCodec({ source: registry });
    const upgraded = new EventCodec({ source: registry, schemas: new Map([[type, newer]]) });
    expect((await old.decode(newBytes)).envelope).toEqual(event);
    expect((await upgraded.decode(oldBytes)).envelope.redacted_summary).toEqual({
      trigger: "prompt",
      note: null,
    });
    expect((await upgraded.decode(newBytes)).envelope.redacted_summary).toEqual({
      trigger: "prompt",
      note: "n",
    });
  });

  it("refuses what an old reader must understand, and a higher major, through the real registry", async () => {
    const subject = newSubject();
    const guarded = evolve({
      name: "on_behalf_of",
      type: ["null", "string"],
      default: null,
      must_understand: true,
    });
    const one = await registry.register(subject, eventSchema(type), "FULL_TRANSITIVE");
    const two = await registry.register(subject, guarded, "FULL_TRANSITIVE");
    const codec = new EventCodec({ source: registry });
    expect(await codeOf(codec.decode(encodeConfluent(two.schemaId, toType(guarded), event)))).toBe(
      "SCHEMA_REFUSED",
    );
    const major = encodeConfluent(one.schemaId, toType(eventSchema(type)), {
      ...event,
      schema_version: "2.0",
    });
    expect(await codeOf(codec.decode(major))).toBe("SCHEMA_REFUSED");
    // The others of the topic go on.
    expect(
      (await codec.decode(encodeConfluent(one.schemaId, toType(eventSchema(type)), event))).envelope,
    ).toEqual(event);
  });

  describe("over a line that counts and fails", () => {
    let between: Between;
    let url: string;
    beforeEach(async () => {
      between = new Between();
      url = await between.open();
    });
    afterEach(() => between.close());

    it("asks once per id for a hundred decodes on a cold cache (kafkajs/confluent-schema-registry#247)", async () => {
      const { schemaId } = await registry.register(newSubject(), eventSchema(type), "FULL_TRANSITIVE");
      const bytes = encodeConfluent(schemaId, toType(eventSchema(type)), event);
      const cold = openRegistry({ url });
      const codecs = [new EventCodec({ source: cold }), new EventCodec({ source: cold })];
      const decoded = await Promise.all(
        codecs.flatMap((codec) => Array.from({ length: 50 }, () => codec.decode(bytes))),
      );
      expect(decoded.every((one) => one.schemaId === schemaId)).toBe(true);
      expect(between.count(`/schemas/ids/${schemaId}`)).toBe(1);
      cold.close();
    });

    it.each(["refuse", "silent", "half"] as const)(
      "gives up after three tries when the registry does that: %s; and works again without a restart",
      async (mode) => {
        const { schemaId } = await registry.register(newSubject(), eventSchema(type), "FULL_TRANSITIVE");
        const bytes = encodeConfluent(schemaId, toType(eventSchema(type)), event);
        const cold = openRegistry({ url, requestTimeoutMs: 150, retryDelayMs: 20 });
        const codec = new EventCodec({ source: cold });
        between.mode = mode;
        const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf(codec.decode(bytes))));
        expect(new Set(codes)).toEqual(new Set(["REGISTRY_UNAVAILABLE"]));
        expect(between.count(`/schemas/ids/${schemaId}`)).toBe(3);
        expect(await codeOf(cold.subjects())).toBe("REGISTRY_UNAVAILABLE");
        between.mode = "through";
        expect((await codec.decode(bytes)).envelope).toEqual(event);
        cold.close();
      },
    );
  });
});
