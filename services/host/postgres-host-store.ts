import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { EventEncoder } from "../platform/outbox.ts";
import { toUuid } from "../platform/ids.ts";
import { appendOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import type { SchemaOf } from "./host-schema.ts";
import { liveSchemas, quoteIdentifier, quotedHostSchema } from "./host-schema.ts";
import type { HostStore, HostTx, Position } from "./host-store.ts";
import type { Letter } from "./letter.ts";
import { maxHops } from "./loop-guard.ts";
import type { LetterSealer } from "./letter-sealer.ts";
import { insertLetters } from "./letter-rows.ts";

export interface PostgresHostStoreOptions {
  readonly database: Database;
  readonly processor: Pick<Processor, "name" | "version">;
  readonly encoder: EventEncoder;
  readonly sealer: LetterSealer;
  /** Where host and processor have their tables; a shadow has its own. */
  readonly schemaOf?: SchemaOf;
  /** False in a shadow: what the processor and the host would publish is dropped, and no right to publish is needed. */
  readonly publishes?: boolean;
}

/**
 * Begins the cause of a partition that waits for hosts of another version: `promoted:2`. The first host of that version
 * that takes the partition goes on with it; older code would write what the promoted tables are no longer made for.
 */
export const promotedCause = "promoted:";

/**
 * The host's state in Postgres. The host's own statements name its schema; those of the processor name none, and find
 * the processor's tables first.
 */
export function createPostgresHostStore(options: PostgresHostStoreOptions): HostStore {
  const { database, encoder, sealer } = options;
  const processor = options.processor.name;
  const publishes = options.publishes ?? true;
  const host = quotedHostSchema(options.schemaOf ?? liveSchemas);
  const toHostTx = hostTxOf(options);

  return {
    prepareLetters: (tenantIds) => sealer.open(tenantIds),
    transaction: (work) => database.transaction((tx) => work(toHostTx(tx))),
    async takePositions(owner, partitions) {
      const taken = await database.query<PositionRow>({
        name: "host-take-positions",
        text: `INSERT INTO ${host}.watermarks AS w (processor, topic, partition, next_offset, owner, topic_id)
          SELECT $1, p.topic, p.partition, p.earliest, $2, p.topic_id
          FROM unnest($3::text[], $4::int[], $5::bigint[], $6::text[]) AS p(topic, partition, earliest, topic_id)
          ORDER BY p.topic, p.partition
          ON CONFLICT (processor, topic, partition) DO UPDATE
            SET epoch = w.epoch + 1, owner = excluded.owner, updated_at = clock_timestamp(),
              topic_id = coalesce(w.topic_id, excluded.topic_id), stopped_cause = nullif(w.stopped_cause, $7),
              stopped_at = CASE WHEN w.stopped_cause = $7 THEN NULL ELSE w.stopped_at END
          RETURNING topic, partition, next_offset, epoch, topic_id, stopped_cause`,
        values: [
          processor,
          owner,
          partitions.map(({ topic }) => topic),
          partitions.map(({ partition }) => partition),
          partitions.map(({ earliest }) => earliest),
          partitions.map(({ topicId }) => topicId),
          promotedCause + options.processor.version,
        ],
      });
      return taken.rows.map(toPosition);
    },
    stopForGap: (position, gap, finding) =>
      database.transaction(async (tx) => {
        const stopped = await tx.query({
          name: "host-stop-partition",
          text: `UPDATE ${host}.watermarks SET stopped_cause = $1, stopped_at = clock_timestamp()
            WHERE processor = $2 AND topic = $3 AND partition = $4 AND epoch = $5 AND stopped_cause IS NULL`,
          values: [gap.cause, processor, position.topic, position.partition, position.epoch],
        });
        if (stopped.rowCount === 0) return false;
        if (publishes) await appendOutbox(tx, toOutboxRows(encoder, [finding]));
        return true;
      }),
    async runningIn(topic) {
      const found = await database.query<PositionRow>({
        name: "host-running-in",
        text: `SELECT topic, partition, next_offset, epoch, topic_id, stopped_cause FROM ${host}.watermarks
          WHERE processor = $1 AND topic = $2 AND stopped_cause IS NULL ORDER BY partition`,
        values: [processor, topic],
      });
      return found.rows.map(toPosition);
    },
  };
}

/** What a batch does to the database, over a transaction that somebody opened. */
export function hostTxOf(options: Omit<PostgresHostStoreOptions, "database">): (tx: Tx) => HostTx {
  const { encoder, sealer } = options;
  const publishes = options.publishes ?? true;
  const processor = options.processor.name;
  const schemaOf = options.schemaOf ?? liveSchemas;
  const host = quotedHostSchema(schemaOf);
  const ownPath = `${quoteIdentifier(schemaOf(processor))}, `;
  return (tx) => ({
    projection: { query: (statement, values) => tx.query(statement, values) },
    async claimEvents(eventUuids) {
      const claimed = await tx.query<{ fresh: string[] | null }>({
        name: "host-claim-events",
        // INVARIANT: from here to the end of the transaction a bare name is the processor's own table; no round trip more
        // (test/integration/host-schemas.test.ts "lets each processor write to its own table when two have …").
        text: `SELECT ${host}.claim_events($1, $2::uuid[])::text[] AS fresh,
          set_config('search_path', $3 || current_setting('search_path'), true)`,
        // UUIDs need no quoting: one text is cheaper than an array that is escaped item by item.
        values: [processor, `{${eventUuids.join(",")}}`, ownPath],
      });
      return claimed.rows[0]?.fresh ?? eventUuids;
    },
    async moveWatermark(position, nextOffset) {
      const moved = await tx.query({
        name: "host-move-watermark",
        text: `UPDATE ${host}.watermarks SET next_offset = $1, updated_at = clock_timestamp()
          WHERE processor = $2 AND topic = $3 AND partition = $4 AND next_offset = $5 AND epoch = $6
            AND stopped_cause IS NULL`,
        values: [
          nextOffset,
          processor,
          position.topic,
          position.partition,
          position.nextOffset,
          position.epoch,
        ],
      });
      return moved.rowCount === 1;
    },
    bury: (letters: readonly Letter[]) => insertLetters(tx, sealer, letters, host),
    async isHeld() {
      // INVARIANT: no release comes between this answer and what is made of it
      // (test/integration/host-emissions.test.ts "are not held back by a batch that read the guard before …").
      const found = await tx.query<{ held: boolean }>({
        name: "host-is-held",
        text: `SELECT ${host}.emissions_held($1) AS held`,
        values: [processor],
      });
      return found.rows[0]?.held === true;
    },
    async startHolding(reason) {
      const begun = await tx.query({
        name: "host-start-holding",
        text: `INSERT INTO ${host}.emission_guards (processor, reason) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
        values: [processor, reason],
      });
      return begun.rowCount === 1;
    },
    async hold(events) {
      const rows = toOutboxRows(encoder, events);
      await tx.query({
        name: "host-hold",
        text: `INSERT INTO ${host}.held_emissions (processor, event_id, type, tenant_id, ordering_key, payload, headers)
          SELECT $1, * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::jsonb[])
          ON CONFLICT DO NOTHING`,
        values: [
          processor,
          rows.map((row) => row.id),
          rows.map((row) => row.type),
          rows.map((row) => row.tenantId),
          rows.map((row) => row.key),
          rows.map((row) => row.payload),
          rows.map((row) => JSON.stringify(row.headers)),
        ],
      });
    },
    async findHeld(events) {
      const found = await tx.query<{ id: string }>({
        name: "host-find-held",
        text: `SELECT e.id FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
            AS e(id, tenant, correlation, session, agent, named)
          WHERE EXISTS (SELECT FROM incidents.holds AS h
            WHERE h.tenant_id IN (e.tenant, '*') AND h.lifted_at IS NULL
              AND (h.until IS NULL OR h.until > clock_timestamp())
              AND CASE h.scope
                WHEN 'correlation' THEN h.scope_id = e.correlation
                WHEN 'session' THEN h.scope_id = e.session
                WHEN 'agent' THEN h.scope_id IN (e.agent, e.named)
                WHEN 'user' THEN false
                WHEN 'tool' THEN false
                ELSE true END)`,
        values: [
          events.map((one) => one.event_id),
          events.map((one) => one.tenant_id),
          events.map((one) => one.correlation_id),
          events.map((one) => one.execution.session_id),
          events.map(
            ({ runtime, execution, actor }) =>
              `${runtime.kind}/${execution.session_id ?? ""}/${actor.agent_id ?? ""}`,
          ),
          events.map((one) => one.actor.agent_id),
        ],
      });
      return new Set(found.rows.map((row) => row.id));
    },
    async noteEmitted(events) {
      if (!publishes) return;
      const caused = events.flatMap(({ event_id: id, causation_id: cause }) =>
        cause === null ? [] : [{ id: toUuid(id), cause: toUuid(cause) }],
      );
      if (caused.length === 0) return;
      await tx.query({
        name: "host-note-emitted",
        text: `INSERT INTO ${host}.emitted (event_id, cause_id, processor)
          SELECT id, cause, $1 FROM unnest($2::uuid[], $3::uuid[]) AS e(id, cause) ORDER BY id ON CONFLICT DO NOTHING`,
        values: [processor, caused.map(({ id }) => id), caused.map(({ cause }) => cause)],
      });
    },
    async findEmitters(eventIds) {
      if (!publishes || eventIds.length === 0) return new Map();
      const found = await tx.query<{ start: string; processors: string[] }>({
        name: "host-find-emitters",
        text: `WITH RECURSIVE up (start, cause_id, processor, step) AS (
            SELECT e.event_id, e.cause_id, e.processor, 1
            FROM unnest($1::uuid[]) AS w(id) JOIN ${host}.emitted AS e ON e.event_id = w.id
            UNION ALL
            SELECT up.start, e.cause_id, e.processor, up.step + 1
            FROM up JOIN ${host}.emitted AS e ON e.event_id = up.cause_id WHERE up.step <= ${String(maxHops)})
          SELECT start, array_agg(DISTINCT processor) AS processors FROM up GROUP BY start`,
        values: [eventIds.map(toUuid)],
      });
      return new Map(found.rows.map((row) => [`evt_${row.start}`, new Set(row.processors)]));
    },
    async append(events: readonly Envelope[]) {
      if (publishes) await appendOutbox(tx, toOutboxRows(encoder, events));
    },
  });
}

interface PositionRow {
  readonly topic: string;
  readonly partition: number;
  readonly next_offset: bigint;
  readonly epoch: bigint;
  readonly topic_id: string | null;
  readonly stopped_cause: string | null;
}

function toPosition(row: PositionRow): Position {
  return {
    topic: row.topic,
    partition: row.partition,
    nextOffset: row.next_offset,
    epoch: row.epoch,
    topicId: row.topic_id,
    stoppedCause: row.stopped_cause,
  };
}
