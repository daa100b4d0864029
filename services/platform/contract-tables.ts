import { createHash } from "node:crypto";
import type { AvroSchema } from "../../schemas/avro-json.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { catalog, eventTypes } from "../../schemas/catalog.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { withoutDocs } from "../../schemas/lint-history.ts";
import { mustUnderstandFields } from "../../schemas/must-understand.ts";
import type { Tx } from "./postgres.ts";

/** `sha256:` and hex over a schema without its docs: equal for schemas that mean the same. */
export function schemaFingerprint(schema: AvroSchema): string {
  return `sha256:${createHash("sha256").update(withoutDocs(schema)).digest("hex")}`;
}

/**
 * Event type → schema id, for exactly the schemas that this build writes (version and fingerprint); a type that
 * `fabric schema register` has not registered yet is left out.
 */
export async function loadSchemaIds(tx: Tx): Promise<ReadonlyMap<EventType, number>> {
  const { rows } = await tx.query<{
    event_type: string;
    version: string;
    schema_id: number;
    fingerprint: string;
  }>("SELECT event_type, version, schema_id, fingerprint FROM contracts.schema_ids");
  const ids = new Map<EventType, number>();
  for (const type of eventTypes) {
    const fingerprint = schemaFingerprint(eventSchema(type));
    const row = rows.find(
      (one) =>
        one.event_type === type && one.version === catalog[type].version && one.fingerprint === fingerprint,
    );
    if (row !== undefined) ids.set(type, row.schema_id);
  }
  return ids;
}

/** Says which versions of which types a consumer of this build understands; replaces what it said before. */
export async function reportReader(
  tx: Tx,
  reader: {
    readonly consumer: string;
    readonly consumerVersion: string;
    readonly types: readonly EventType[];
  },
): Promise<void> {
  const known = reader.types.map((type) => ({
    event_type: type,
    max_major: Number.parseInt(catalog[type].version, 10),
    must_understand: mustUnderstandFields(eventSchema(type)),
  }));
  await tx.query("DELETE FROM contracts.readers WHERE consumer = $1 AND event_type <> ALL ($2::text[])", [
    reader.consumer,
    reader.types,
  ]);
  await tx.query(
    `INSERT INTO contracts.readers (consumer, consumer_version, event_type, max_major, must_understand)
     SELECT $1, $2, one.event_type, one.max_major, one.must_understand
       FROM jsonb_to_recordset($3::jsonb) AS one (event_type text, max_major integer, must_understand text[])
     ON CONFLICT (consumer, event_type) DO UPDATE
       SET consumer_version = excluded.consumer_version, max_major = excluded.max_major,
           must_understand = excluded.must_understand, reported_at = clock_timestamp()`,
    [reader.consumer, reader.consumerVersion, JSON.stringify(known)],
  );
}
