import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { SchemaRegistry } from "@kafkajs/confluent-schema-registry";
import { z } from "zod";
import { eventSchemas } from "../../schemas/event-schemas.ts";
import { EventCodec } from "../../services/platform/avro.ts";
import { benchEvent, benchType } from "./bench-events.ts";
import type { Bench, Row } from "./figure.ts";
import { toRow } from "./figure.ts";

const schemaId = 7;
const sampleEvents = 200;
/** Long enough that the clock's grain and one garbage collection do not decide. */
const measureMs = 400;

const optionalText = z.string().nullable();
/** The event as zod would check it at a JSON rim: the same fields as the Avro schema. */
const jsonEvent = z.strictObject({
  event_id: z.string(),
  type: z.literal(benchType),
  schema_version: z.string(),
  occurred_at: z.number().int(),
  recorded_at: z.number().int(),
  tenant_id: z.string(),
  environment: z.string(),
  runtime: z.strictObject({
    kind: z.string(),
    adapter_version: z.string(),
    runtime_version: optionalText,
    permission_mode: optionalText,
    sandbox: optionalText,
  }),
  actor: z.strictObject({ user_id: optionalText, agent_id: optionalText }),
  execution: z.strictObject({
    task_id: optionalText,
    session_id: optionalText,
    turn_id: optionalText,
    tool_call_id: optionalText,
    attempt: z.number().int(),
  }),
  correlation_id: z.string(),
  causation_id: optionalText,
  origin: z.string(),
  hop_count: z.number().int(),
  automation_depth: z.number().int(),
  policy: z
    .strictObject({
      revision: z.string(),
      risk: z.enum(["unknown", "low", "medium", "high", "critical"]),
      decision: z.enum(["unknown", "allow", "deny", "require_approval", "defer", "modify"]).nullable(),
      reason_code: optionalText,
      matched_rules: z.array(z.string()),
    })
    .nullable(),
  capability_id: optionalText,
  approval_id: optionalText,
  plan_digest: optionalText,
  effect_id: optionalText,
  receipt_id: optionalText,
  subject: z
    .strictObject({
      tool: optionalText,
      action: optionalText,
      resource_ref: optionalText,
      data_class: z.enum(["unknown", "public", "internal", "confidential", "secret"]),
    })
    .nullable(),
  payload_ref: optionalText,
  payload_digest: optionalText,
  trace: z.strictObject({ traceparent: z.string() }).nullable(),
  redacted_summary: z.strictObject({
    outcome: z.enum(["unknown", "succeeded", "failed", "interrupted", "blocked"]),
    duration_ms: z.number().int().nullable(),
    output_bytes: z.number().int().nullable(),
    output_preview: optionalText,
    error_preview: optionalText,
    tool_alias: optionalText,
  }),
});

/** Calls per second of one operation, over the sample in turn. */
async function perSecond<T>(values: readonly T[], operation: (value: T) => unknown): Promise<number> {
  let calls = 0;
  const startedMs = performance.now();
  let elapsedMs = 0;
  while (elapsedMs < measureMs) {
    for (const value of values) {
      const result = operation(value);
      // Only what is a promise is waited for: an `await` of its own would be a third of an Avro decode.
      if (result instanceof Promise) await result;
    }
    calls += values.length;
    elapsedMs = performance.now() - startedMs;
  }
  return (calls / elapsedMs) * 1000;
}

/** A registry that knows one schema: the peer's client asks once and keeps the answer. */
async function startRegistry(schema: unknown): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ schema: JSON.stringify(schema), schemaType: "AVRO" }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Encode and decode of a realistic event beside JSON with zod, and beside the registry client's own. */
export async function avro(bench: Bench): Promise<Row[]> {
  const schema = eventSchemas.get(benchType);
  if (schema === undefined) throw new Error(`${benchType} has no schema`);
  const codec = new EventCodec({
    source: { schemaById: () => Promise.resolve(schema) },
    schemaIds: new Map([[benchType, schemaId]]),
  });
  const registryServer = await startRegistry(schema);
  bench.onEnd(registryServer.close);
  const registry = new SchemaRegistry({ host: registryServer.url });

  const events = Array.from({ length: sampleEvents }, (_, index) => benchEvent(index));
  const framed = events.map((event) => codec.encode(event).bytes);
  // JSON has no bigint: this side carries numbers, and so does the peer's avsc, which knows no other long.
  const plain = events.map((event) => ({
    ...event,
    redacted_summary: {
      ...event.redacted_summary,
      duration_ms: Number(event.redacted_summary.duration_ms ?? 0n),
    },
  }));
  const texts = plain.map((event) => Buffer.from(JSON.stringify(jsonEvent.parse(event))));
  const peerBytes = await registry.encode(schemaId, plain[0]);
  if (!peerBytes.equals(framed[0] ?? Buffer.alloc(0)))
    throw new Error("the registry client writes other bytes than ours");

  const operations = {
    "our encode": () => perSecond(events, (event) => codec.encode(event).bytes),
    "zod, JSON.stringify": () =>
      perSecond(plain, (event) => Buffer.from(JSON.stringify(jsonEvent.parse(event)))),
    "client encode": () => perSecond(plain, (event) => registry.encode(schemaId, event)),
    "our decode": () => perSecond(framed, (bytes) => codec.decode(bytes)),
    "JSON.parse, zod": () => perSecond(texts, (text) => jsonEvent.parse(JSON.parse(text.toString("utf8")))),
    "client decode": () => perSecond(framed, (bytes) => registry.decode(bytes)),
  };
  type Operation = keyof typeof operations;
  const names = Object.keys(operations) as Operation[];
  const rates = new Map<Operation, number[]>(names.map((name) => [name, []]));
  const warmUps = 1;
  for (let repetition = -warmUps; repetition < bench.sizes.repetitions; repetition += 1) {
    for (const name of names) {
      const rate = await operations[name]();
      if (repetition >= 0) rates.get(name)?.push(rate);
    }
    if (repetition >= 0)
      bench.progress(`repetition ${String(repetition + 1)} of ${String(bench.sizes.repetitions)}`);
  }
  const row = (name: string, ours: Operation, other: Operation, target: number): Row =>
    toRow(
      {
        name: `avro ${name}`,
        unit: "events/s",
        against: "peer",
        other,
        target: { better: "higher", ratio: target },
        command: bench.command,
        note: `${String(framed[0]?.length ?? 0)} bytes as Avro, ${String(texts[0]?.length ?? 0)} as JSON; ours is strict, with bigint longs and range checks; bytes compared with the client's`,
      },
      rates.get(ours) ?? [],
      rates.get(other) ?? [],
    );
  return [
    row("encode", "our encode", "zod, JSON.stringify", 1),
    row("encode", "our encode", "client encode", 1),
    row("decode", "our decode", "JSON.parse, zod", 1),
    row("decode", "our decode", "client decode", 1),
  ];
}
