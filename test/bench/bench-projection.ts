import type { Client } from "pg";
import type { Envelope } from "../../schemas/envelope.ts";
import { toUuid } from "../../services/platform/ids.ts";
import type { Statement } from "../../services/platform/postgres.ts";
import type { benchType } from "./bench-events.ts";

/** Schema of the projection that every consumer of the figure `host` writes. */
export const benchSchema = "projection";

/** One finished tool call as a table keeps it: what an audit trail needs of the event, about 600 bytes. */
export type CallRow = readonly (string | bigint | number | Date | null)[];

/** Column and type, in the order of a `CallRow`. */
const columns = [
  ["event_id", "uuid"],
  ["tenant_id", "text"],
  ["correlation_id", "text"],
  ["causation_id", "text"],
  ["task_id", "text"],
  ["session_id", "text"],
  ["turn_id", "text"],
  ["tool_call_id", "text"],
  ["tool", "text"],
  ["resource_ref", "text"],
  ["decision", "text"],
  ["policy_revision", "text"],
  ["plan_digest", "text"],
  ["payload_ref", "text"],
  ["payload_digest", "text"],
  ["outcome", "text"],
  ["duration_ms", "bigint"],
  ["recorded_at", "timestamptz"],
] as const;

export async function createProjection(admin: Client): Promise<void> {
  const list = columns.map(([name, type]) => `${name} ${type}`).join(", ");
  await admin.query(`
    CREATE SCHEMA ${benchSchema};
    CREATE TABLE ${benchSchema}.calls (${list}, PRIMARY KEY (event_id));
    CREATE TABLE ${benchSchema}.claims (event_id uuid PRIMARY KEY);
    GRANT USAGE ON SCHEMA ${benchSchema} TO fabric_host;
    GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA ${benchSchema} TO fabric_host`);
}

export function toCallRow(event: Envelope<typeof benchType>): CallRow {
  return [
    toUuid(event.event_id),
    event.tenant_id,
    event.correlation_id,
    event.causation_id,
    event.execution.task_id,
    event.execution.session_id,
    event.execution.turn_id,
    event.execution.tool_call_id,
    event.subject?.tool ?? null,
    event.subject?.resource_ref ?? null,
    event.policy?.decision ?? null,
    event.policy?.revision ?? null,
    event.plan_digest,
    event.payload_ref,
    event.payload_digest,
    event.redacted_summary.outcome,
    event.redacted_summary.duration_ms,
    new Date(event.recorded_at),
  ];
}

const arrays = columns.map(([, type], index) => `$${String(index + 1)}::${type}[]`).join(", ");
const values = columns.map(([, type], index) => `$${String(index + 1)}::${type}`).join(", ");

/** All rows of a batch in one statement. */
export function insertCalls(rows: readonly CallRow[]): Statement {
  return {
    name: "bench-insert-calls",
    text: `INSERT INTO calls SELECT * FROM unnest(${arrays})`,
    values: columns.map((_column, at) => rows.map((row) => row[at] ?? null)),
  };
}

/** One row. */
export function insertCall(row: CallRow): Statement {
  return { name: "bench-insert-call", text: `INSERT INTO calls VALUES (${values})`, values: row };
}
