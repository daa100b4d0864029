import type { Transaction } from "../kit/transaction.ts";
import type { AuditRow } from "./words.ts";

/** Columns whose JSON form differs from the row's own. */
const toColumns = (row: AuditRow): Record<string, unknown> => ({
  ...row,
  kafka_offset: row.kafka_offset.toString(),
  occurred_at: new Date(row.occurred_at).toISOString(),
  recorded_at: new Date(row.recorded_at).toISOString(),
  content_digest: `\\x${row.content_digest.toString("hex")}`,
  row_digest: `\\x${row.row_digest.toString("hex")}`,
});

/**
 * Appends rows: one statement, one value, whatever the number of columns. An event that is in the trail already stays
 * as it is: one that comes again after the inbox has forgotten it is no fault. Another event at the same place is one.
 */
export async function appendTrail(tx: Transaction, rows: readonly AuditRow[]): Promise<void> {
  await tx.query({
    name: "audit-append-trail",
    text: `INSERT INTO trail SELECT * FROM json_populate_recordset(NULL::trail, $1::json)
      ON CONFLICT (event_id) DO NOTHING`,
    values: [JSON.stringify(rows.map(toColumns))],
  });
}
