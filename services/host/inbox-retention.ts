import { Fault } from "../../schemas/faults.ts";
import type { Database } from "../platform/postgres.ts";
import type { SchemaOf } from "./host-schema.ts";
import { liveSchemas, quotedHostSchema } from "./host-schema.ts";

const dayMs = 86_400_000;
/**
 * How long inbox rows stay. They answer only what was published twice under two offsets: a relay that died between the
 * broker's ack and its delete, which is healed within minutes of its restart. What is read again from the log is
 * answered by the watermark, however old. A week covers a relay that stands still over a long weekend.
 */
export const defaultInboxRetentionMs = 7 * dayMs;
/** Below a day, a relay that is down for a night would publish events again that nobody remembers. */
export const minInboxRetentionMs = dayMs;
/** Rows per statement: short enough that no vacuum or writer waits for it. */
const pruneBatchRows = 5_000;

/** Refuses a retention that would let events run twice; throws CONFIG_INVALID. */
export function checkInboxRetention(retentionMs: number): void {
  if (retentionMs < minInboxRetentionMs) {
    throw new Fault(
      "CONFIG_INVALID",
      `the inbox is kept for ${retentionMs} ms; keep it for at least ${minInboxRetentionMs} ms`,
    );
  }
}

/**
 * Deletes rows of the inbox, and of what was set off by whom, that are older than `retentionMs`, in small batches; returns
 * how many. The database wrote the rows'
 * times, and its clock says how old they are: a host's clock that runs ahead would forget events too soon.
 */
export async function pruneInbox(
  database: Pick<Database, "query">,
  retentionMs: number,
  schemaOf: SchemaOf = liveSchemas,
): Promise<number> {
  const host = quotedHostSchema(schemaOf);
  return (
    (await pruneTable(database, "host-prune-inbox", `${host}.inbox`, "claimed_at", retentionMs)) +
    (await pruneTable(database, "host-prune-emitted", `${host}.emitted`, "emitted_at", retentionMs))
  );
}

async function pruneTable(
  database: Pick<Database, "query">,
  name: string,
  table: string,
  column: string,
  retentionMs: number,
): Promise<number> {
  let pruned = 0;
  for (;;) {
    const { rowCount } = await database.query({
      name,
      // As a subquery the cut-off is one value, and the index on the time serves.
      text: `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM ${table} WHERE ${column} < (SELECT clock_timestamp() - $1 * interval '1 millisecond')
          LIMIT ${pruneBatchRows}))`,
      values: [retentionMs],
    });
    pruned += rowCount;
    if (rowCount < pruneBatchRows) return pruned;
  }
}
