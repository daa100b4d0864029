import type { PartitionAssigner } from "kafkajs";
import { AssignerProtocol, PartitionAssigners } from "kafkajs";
import type { Processor } from "../../../processors/kit/processor.ts";
import { defineProcessor } from "../../../processors/kit/processor.ts";
import type { AvroRecord } from "../../../schemas/avro-json.ts";
import { eventTypes } from "../../../schemas/catalog.ts";
import { eventSchema, eventSchemas } from "../../../schemas/event-schemas.ts";
import { EventCodec } from "../../../services/platform/avro.ts";
import type { EventEncoder } from "../../../services/platform/outbox.ts";

/** What runs, and what replaces it. */
export type Release = "old" | "next";

const type = "agent.model.completed";
/** A topic that the next release reads too. */
export const addedType = "agent.turn.completed";
const nextSchemaId = 10_000;

/** The event as the next release writes it: an optional field more. */
function nextSchema(): AvroRecord {
  const schema = structuredClone(eventSchema(type));
  const summary = schema.fields.find(({ name }) => name === "redacted_summary")?.type as AvroRecord;
  summary.fields.push({ name: "served_by", type: ["null", "string"], default: null });
  return schema;
}

/** Reads and writes as the release does; the registry knows the schemas of both. */
export function codecOf(release: Release): EventCodec {
  const next = nextSchema();
  const schemaIds = new Map(eventTypes.map((one, index) => [one as string, index + 1]));
  const schemas = new Map(eventSchemas);
  if (release === "next") {
    schemaIds.set(type, nextSchemaId);
    schemas.set(type, next);
  }
  return new EventCodec({
    schemaIds,
    schemas,
    source: {
      schemaById: (id) =>
        Promise.resolve(id === nextSchemaId ? next : eventSchema(eventTypes[id - 1] ?? type)),
    },
  });
}

/** Writes events of the traffic with the field of the next release. */
export function nextEncoder(): EventEncoder {
  const codec = codecOf("next");
  return {
    encode(envelope) {
      const redacted_summary = { ...envelope.redacted_summary, served_by: "somebody" };
      return codec.encode(Object.assign({}, envelope, { schema_version: "1.1", redacted_summary }));
    },
  };
}

/** The group's protocol of the next release: another name and another version, and the partitions the other way round. */
export const nextAssigner: PartitionAssigner = (config) => {
  const base = PartitionAssigners.roundRobin(config);
  return {
    name: "NextAssigner",
    version: 1,
    async assign({ members, topics }) {
      return base.assign({ members, topics: [...topics].reverse() });
    },
    protocol: ({ topics }) => ({
      name: "NextAssigner",
      metadata: AssignerProtocol.MemberMetadata.encode({
        version: 1,
        topics,
        userData: Buffer.alloc(0),
      }),
    }),
  };
};
export const oldAssigner: PartitionAssigner = (config) => PartitionAssigners.roundRobin(config);

/** The ledger's processor of the next release: one topic more, a field more, and a column that its migration adds. */
export const nextLedgerProcessor = (name = "ledger"): Processor =>
  defineProcessor({
    name,
    topics: [type, addedType],
    project: (event) => {
      if (event.type !== type) return [];
      const { output_tokens: n, served_by: note = null } = event.redacted_summary as {
        readonly output_tokens: bigint | null;
        readonly served_by?: string | null;
      };
      return [{ id: event.event_id, key: event.correlation_id, n: n ?? 0n, note: note ?? "nobody" }];
    },
    apply: async (tx, rows) => {
      await tx.query({
        name: "ledger-add-next",
        text: "INSERT INTO ledger.rows (event_id, key, n, note) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])",
        values: [
          rows.map((one) => one.id),
          rows.map((one) => one.key),
          rows.map((one) => one.n),
          rows.map((one) => one.note),
        ],
      });
    },
  });
