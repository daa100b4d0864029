import type { EventType, TopicEntry } from "../../schemas/catalog.ts";
import { catalog, eventTypes } from "../../schemas/catalog.ts";
import type { Tx } from "../platform/postgres.ts";

/** One line of `fabric schema list`. */
export interface SchemaLine extends Pick<
  TopicEntry,
  "class" | "nature" | "version" | "owner" | "dataClass" | "summary"
> {
  readonly type: EventType;
  /** Null: not registered, or no database was asked. */
  readonly schemaId: number | null;
}

/** All event types with their registered ids; without a database the catalogue alone. */
export async function listSchemas(database: Tx | null): Promise<readonly SchemaLine[]> {
  const rows =
    database === null
      ? []
      : (
          await database.query<{ event_type: string; version: string; schema_id: number }>(
            "SELECT event_type, version, schema_id FROM contracts.schema_ids",
          )
        ).rows;
  return eventTypes.map((type) => {
    const { class: topicClass, nature, version, owner, dataClass, summary } = catalog[type];
    const row = rows.find((one) => one.event_type === type && one.version === version);
    return {
      type,
      class: topicClass,
      nature,
      version,
      owner,
      dataClass,
      summary,
      schemaId: row?.schema_id ?? null,
    };
  });
}
