import { randomUUID } from "node:crypto";
import type { AvroRecord } from "../../../schemas/avro-json.ts";
import type { Envelope } from "../../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../../schemas/envelope.ts";
import { eventSchema } from "../../../schemas/event-schemas.ts";
import { systemClock } from "../../platform/clock.ts";
import { encodeConfluent } from "../../platform/confluent-wire.ts";
import { toType } from "../../platform/avro-types.ts";
import { newEventId, toUuid } from "../../platform/ids.ts";
import { toOutboxRows, outboxStatement } from "../../platform/outbox.ts";
import { registryOf } from "../wiring.ts";
import { localTenant } from "../prepare-local.ts";
import type { World } from "./world.ts";

const type = "agent.turn.started";

/**
 * Step: a producer of tomorrow writes a field that a consumer must understand. The consumer of today refuses that
 * record, keeps its bytes, and goes on with the next one of the same key.
 */
export async function refuseNewerSchema(world: World): Promise<void> {
  world.say("An old consumer meets a newer schema");
  const newer = withNewField(eventSchema(type));
  const registry = registryOf(world.config);
  const { schemaId: newerId } = await registry
    .register(`demo.newer-${type}-value`, newer, "FULL_TRANSITIVE")
    .finally(() => registry.close());
  const { rows } = await world.sql.query<{ schema_id: number }>(
    "SELECT schema_id FROM contracts.schema_ids WHERE event_type = $1",
    [type],
  );
  const knownId = rows[0]?.schema_id ?? 0;
  const sessionId = `demo-${randomUUID()}`;
  const tomorrow = turn(world, sessionId);
  const today = turn(world, sessionId);
  const newerType = toType(newer);
  const knownType = toType(eventSchema(type));
  const encoder = {
    encode: (event: Envelope) => {
      const isNewer = event.event_id === tomorrow.event_id;
      const value = isNewer ? { ...event, spending_scope: "team" } : event;
      const schemaId = isNewer ? newerId : knownId;
      return { schemaId, bytes: encodeConfluent(schemaId, isNewer ? newerType : knownType, value) };
    },
  };
  await world.sql.query(outboxStatement(toOutboxRows(encoder, [tomorrow, today])));

  const passed = await world.until(
    () => world.count("SELECT count(*) FROM audit.trail WHERE event_id = $1", [toUuid(today.event_id)]),
    (found) => found === 1,
  );
  const letters = await world.sql.query<{ code: string; kind: string; detail: string; payload_ref: string }>(
    "SELECT code, kind, detail, payload_ref FROM host.letters WHERE processor = 'audit' AND headers->>'ce_id' = encode($1::bytea, 'base64')",
    [Buffer.from(tomorrow.event_id)],
  );
  const letter = letters.rows[0];
  world.show(
    "letter",
    letter === undefined ? "none" : `${letter.kind} ${letter.code}: ${letter.detail.slice(0, 110)}`,
  );
  world.show("bytes", letter?.payload_ref ?? "-");
  const guessed = await world.count("SELECT count(*) FROM audit.trail WHERE event_id = $1", [
    toUuid(tomorrow.event_id),
  ]);
  world.claim(
    "a record with an unknown must-understand field is quarantined with its bytes, never guessed",
    letter?.code === "SCHEMA_REFUSED" &&
      letter.kind === "quarantine" &&
      letters.rows.length === 1 &&
      guessed === 0,
    letter === undefined ? "no letter" : `${letter.kind} ${letter.code}`,
  );
  world.claim("the next record of the same key goes on", passed.held, `${String(passed.value)} row`);
}

function withNewField(schema: AvroRecord): AvroRecord {
  const added = { name: "spending_scope", type: ["null", "string"], default: null, must_understand: true };
  return { ...schema, fields: [...schema.fields, added] };
}

function turn(world: World, sessionId: string): Envelope {
  return toEnvelope(
    draft(type, { trigger: "prompt" }, { execution: { session_id: sessionId, turn_id: "t1" } }),
    {
      eventId: newEventId(systemClock),
      recordedAtMs: systemClock.nowMs(),
      tenantId: localTenant,
      environment: world.config.environment,
      runtime: {
        kind: "demo",
        adapter_version: "1",
        runtime_version: null,
        permission_mode: null,
        sandbox: null,
      },
      correlationId: `cor_${sessionId}`,
      origin: "agent",
    },
  );
}
