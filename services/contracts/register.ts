import type { AvroRecord } from "../../schemas/avro-json.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { catalog, eventTypes } from "../../schemas/catalog.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { Fault } from "../../schemas/faults.ts";
import { mustUnderstandFields } from "../../schemas/must-understand.ts";
import { schemaFingerprint } from "../platform/contract-tables.ts";
import { toTopicName } from "../platform/kafka-admin.ts";
import type { Tx } from "../platform/postgres.ts";
import type { SchemaRegistryPort } from "../platform/registry.ts";

/** A running consumer that would put the new schema's records into quarantine. */
export interface RefusingReader {
  readonly consumer: string;
  readonly consumerVersion: string;
  readonly reason: string;
}

export interface Registration {
  readonly type: EventType;
  readonly version: string;
  readonly subject: string;
  readonly schemaId: number;
  /** `new`: first time. `moved`: the registry gave another id than before, as after a loss of its storage. */
  readonly state: "new" | "known" | "moved";
  readonly refusedBy: readonly RefusingReader[];
}

export interface RegisterReport {
  readonly registrations: readonly Registration[];
}

export interface RegisterOptions {
  readonly registry: SchemaRegistryPort;
  /** As the role `fabric_contracts`. */
  readonly database: Tx;
  readonly topicPrefix: string;
  readonly types?: readonly EventType[];
  /** Schemas to register, where a test has others than the generated ones. */
  readonly schemaOf?: (type: EventType) => { readonly schema: AvroRecord; readonly version: string };
}

/**
 * Registers every current schema under `<topic>-value` with FULL_TRANSITIVE, writes the ids down for the producers,
 * and says which running consumers would refuse them. Safe to repeat.
 */
export async function registerSchemas(options: RegisterOptions): Promise<RegisterReport> {
  const registrations: Registration[] = [];
  const schemaOf =
    options.schemaOf ?? ((type) => ({ schema: eventSchema(type), version: catalog[type].version }));
  for (const type of options.types ?? eventTypes) {
    const { schema, version } = schemaOf(type);
    const fingerprint = schemaFingerprint(schema);
    const before = await loadRow(options.database, type, version);
    if (before !== null && before.fingerprint !== fingerprint)
      throw new Fault(
        "SCHEMA_INCOMPATIBLE",
        `${type} ${version} was registered with another schema: raise its version in schemas/catalog.ts`,
      );
    const subject = `${toTopicName(options.topicPrefix, type)}-value`;
    const { schemaId } = await options.registry.register(subject, schema, "FULL_TRANSITIVE");
    await saveRow(options.database, { type, version, subject, schemaId, fingerprint });
    registrations.push({
      type,
      version,
      subject,
      schemaId,
      state: before === null ? "new" : before.schema_id === schemaId ? "known" : "moved",
      refusedBy: await findRefusing(options.database, type, schema, version),
    });
  }
  return { registrations };
}

interface SchemaIdRow {
  readonly schema_id: number;
  readonly fingerprint: string;
}

async function loadRow(tx: Tx, type: string, version: string): Promise<SchemaIdRow | null> {
  const { rows } = await tx.query<SchemaIdRow>(
    "SELECT schema_id, fingerprint FROM contracts.schema_ids WHERE event_type = $1 AND version = $2",
    [type, version],
  );
  return rows[0] ?? null;
}

async function saveRow(
  tx: Tx,
  row: { type: string; version: string; subject: string; schemaId: number; fingerprint: string },
): Promise<void> {
  await tx.query(
    `INSERT INTO contracts.schema_ids (event_type, version, subject, schema_id, fingerprint)
     VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (event_type, version) DO UPDATE
       SET subject = excluded.subject, schema_id = excluded.schema_id, registered_at = clock_timestamp()
       WHERE (schema_ids.subject, schema_ids.schema_id) IS DISTINCT FROM (excluded.subject, excluded.schema_id)`,
    [row.type, row.version, row.subject, row.schemaId, row.fingerprint],
  );
}

interface ReaderRow {
  readonly consumer: string;
  readonly consumer_version: string;
  readonly max_major: number;
  readonly must_understand: readonly string[];
}

async function findRefusing(
  tx: Tx,
  type: string,
  schema: AvroRecord,
  version: string,
): Promise<RefusingReader[]> {
  const { rows } = await tx.query<ReaderRow>(
    `SELECT consumer, consumer_version, max_major, must_understand
       FROM contracts.readers WHERE event_type = $1 ORDER BY consumer`,
    [type],
  );
  const needed = mustUnderstandFields(schema);
  const major = Number.parseInt(version, 10);
  return rows.flatMap((row) => {
    const missing = needed.filter((path) => !row.must_understand.includes(path));
    const reason =
      major > row.max_major
        ? `it understands major ${row.max_major}`
        : missing.length > 0
          ? `it does not understand ${missing.join(", ")}`
          : null;
    return reason === null ? [] : [{ consumer: row.consumer, consumerVersion: row.consumer_version, reason }];
  });
}

/** For a person. */
export function renderRegister(report: RegisterReport): string {
  const lines = report.registrations.flatMap((one) => [
    `${one.subject} ${one.version} is schema ${one.schemaId}${one.state === "known" ? "" : ` (${one.state})`}`,
    ...one.refusedBy.map(
      ({ consumer, consumerVersion, reason }) =>
        `  ${consumer} ${consumerVersion} would refuse it: ${reason}; upgrade it before its producer`,
    ),
  ]);
  return `${lines.join("\n")}\n`;
}
