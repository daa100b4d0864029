import type { Database } from "../platform/postgres.ts";
import { lanesPerGroup } from "./outbox-event.ts";
import type { OutboxEvent } from "./outbox-event.ts";

export interface ReadRequest {
  /** Rows up to this number need not be looked at. */
  readonly from: bigint;
  /** Lane groups; null: all of them. */
  readonly groups: readonly number[] | null;
  /** Rows that we have in hand already. */
  readonly except: readonly bigint[];
  readonly heldTypes: readonly string[];
  readonly limit: number;
  /** Payload bytes after which the batch ends; the first row comes whatever its size. */
  readonly maxBytes: number;
}

/** The lowest visible rows that are due, in order. No cursor decides: a row is due as long as it is there. */
export async function readEvents(database: Database, request: ReadRequest): Promise<OutboxEvent[]> {
  const highest = request.except.reduce((high, seq) => (seq > high ? seq : high), 0n);
  // No name: with the values known, the planner makes a hash of the exception list and sees an empty one.
  const { rows } = await database.query<OutboxEvent>({
    text: `
      SELECT seq, type, key, lane, payload, headers, "createdAtMs" FROM (
        SELECT t.*, sum(bytes) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before FROM (
          SELECT seq, aggregatetype AS type, aggregateid AS key, lane, payload, headers,
                 floor(extract(epoch FROM created_at) * 1000)::float8 AS "createdAtMs", octet_length(payload) AS bytes
          FROM outbox.events
          WHERE seq > $1 AND (seq > $2 OR seq <> ALL ($3::bigint[]))
            ${request.groups === null ? "" : `AND lane / ${lanesPerGroup} = ANY ($6::int[])`}
            ${request.heldTypes.length === 0 ? "" : `AND aggregatetype <> ALL ($${request.groups === null ? 6 : 7}::text[])`}
          ORDER BY seq LIMIT $4) t) s
      WHERE bytes_before < $5 ORDER BY seq`,
    values: [
      request.from,
      highest,
      request.except,
      request.limit,
      request.maxBytes,
      ...(request.groups === null ? [] : [request.groups]),
      ...(request.heldTypes.length === 0 ? [] : [request.heldTypes]),
    ],
  });
  return rows;
}
