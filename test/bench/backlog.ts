import type { Client } from "pg";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { EventCodec } from "../../services/platform/avro.ts";
import type { OutboxRow } from "../../services/platform/outbox.ts";
import { outboxValues, toOutboxRows } from "../../services/platform/outbox.ts";
import { benchEvent, benchType } from "./bench-events.ts";

/** Any id does: the figures that use this codec ask no registry. */
export const benchSchemaId = 1;
/** Rows of one commit: a gate under load writes about as many in a group. */
const rowsPerCommit = 100;
const rowsPerStatement = 1_000;

/** Encodes and decodes benchmark events without a registry. */
export function benchCodec(): EventCodec {
  return new EventCodec({
    source: { schemaById: () => Promise.resolve(eventSchema(benchType)) },
    schemaIds: new Map([[benchType, benchSchemaId]]),
  });
}

/** Outbox rows `from` … `to`, made by the product's own writer. */
export function benchRows(codec: EventCodec, from: number, to: number): OutboxRow[] {
  return toOutboxRows(
    codec,
    Array.from({ length: to - from }, (_, index) => benchEvent(from + index)),
  );
}

/** Rows that wait in a table of ours, so that every contestant gets the same ones. */
export interface Backlog {
  readonly size: number;
  /** `event_id`s as the payloads carry them. */
  readonly eventIds: ReadonlySet<string>;
  /** Commits all of them to the emptied outbox, in many transactions. */
  commit(): Promise<void>;
}

export async function createBacklog(admin: Client, codec: EventCodec, size: number): Promise<Backlog> {
  await admin.query(`
    CREATE SCHEMA bench;
    CREATE TABLE bench.backlog (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid, type text, key text,
      tenant_id text, payload bytea, headers jsonb)`);
  const eventIds = new Set<string>();
  for (let from = 0; from < size; from += rowsPerStatement) {
    const rows = benchRows(codec, from, Math.min(from + rowsPerStatement, size));
    for (const row of rows) eventIds.add(`evt_${row.id}`);
    await admin.query({
      name: "backlog",
      text: `INSERT INTO bench.backlog (id, type, key, tenant_id, payload, headers)
        SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::jsonb[])`,
      values: outboxValues(rows),
    });
  }
  await admin.query("ANALYZE bench.backlog");
  return {
    size,
    eventIds,
    async commit() {
      await admin.query("TRUNCATE outbox.events");
      for (let from = 0; from < size; from += rowsPerCommit) {
        await admin.query({
          name: "commit",
          text: `INSERT INTO outbox.events (id, aggregatetype, aggregateid, type, payload, lane, tenant_id, headers)
            SELECT id, type, key, type, payload, outbox.lane_of(key), tenant_id, headers
            FROM bench.backlog WHERE n > $1 AND n <= $2 ORDER BY n`,
          values: [from, from + rowsPerCommit],
        });
      }
      // Each contestant starts with clean pages and fresh statistics.
      await admin.query("ANALYZE outbox.events");
      await admin.query("CHECKPOINT");
    },
  };
}
