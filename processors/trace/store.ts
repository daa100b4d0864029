import type { Transaction } from "../kit/transaction.ts";
import { isSameSpan, mergeAttributes, mergeClients, mergeSpans } from "./merge.ts";
import type { SpanRow } from "./rows.ts";
import { fromSpanRow, toSpanColumns } from "./rows.ts";
import type { Attributes, ClientTrace, SpanState, TraceChange } from "./words.ts";
import { depthOf } from "./words.ts";

/** Most parts that one event makes: below a sixth of the cap in events no correlation can have reached it. */
const maxPartsPerEvent = 6;

/** What a batch adds to one correlation. */
interface Group {
  readonly tenantId: string;
  readonly correlationId: string;
  readonly changes: TraceChange[];
}

interface TraceRow {
  readonly tenant_id: string;
  readonly correlation_id: string;
  readonly events: bigint;
  readonly attributes: Attributes;
  readonly client_at: Date | null;
  readonly client_event: string | null;
  readonly client_traceparent: string | null;
  readonly cut_depth: number | null;
  readonly cut_id: string | null;
}

type Place = Pick<SpanState, "topic" | "spanId">;

/**
 * Merges a batch into the tables: a fixed number of statements, whatever its size. The rows of the correlations are
 * locked first, in order, so that what is read of their spans is what is written over.
 */
export async function saveChanges(
  tx: Transaction,
  changes: readonly TraceChange[],
  maxSpans: number,
): Promise<void> {
  const groups = toGroups(changes);
  const locked = await lockTraces(tx, groups);
  const kept = (group: Group, one: Place): boolean => isBeforeCut(locked.get(keyOf(group)), one);
  await saveTraces(tx, groups, locked);
  await saveSpans(tx, groups, kept);
  await saveCauses(tx, groups, kept);
  await saveDeliveries(tx, groups, kept);
  await cutLong(
    tx,
    groups.filter(
      (group) => (locked.get(keyOf(group))?.events ?? 0n) * BigInt(maxPartsPerEvent) > BigInt(maxSpans),
    ),
    maxSpans,
  );
}

function toGroups(changes: readonly TraceChange[]): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const change of changes) {
    const { tenantId, correlationId } = change;
    const key = keyOf(change);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { tenantId, correlationId, changes: [change] });
    else known.changes.push(change);
  }
  return [...groups.keys()].sort().map((key) => groups.get(key) as Group);
}

function keyOf({ tenantId, correlationId }: Pick<Group, "tenantId" | "correlationId">): string {
  return JSON.stringify([tenantId, correlationId]);
}

/** Adds counts and times, which need no reading first, and gives the rows as they are then. */
async function lockTraces(tx: Transaction, groups: readonly Group[]): Promise<ReadonlyMap<string, TraceRow>> {
  const { rows } = await tx.query<TraceRow>({
    name: "trace-lock-traces",
    text: `INSERT INTO traces AS t (tenant_id, correlation_id, events, first_at, last_at, attributes)
      SELECT tenant_id, correlation_id, events, first_at, last_at, '{}'
      FROM json_to_recordset($1::json) AS g(tenant_id text, correlation_id text, events bigint, first_at timestamptz, last_at timestamptz)
      ORDER BY tenant_id COLLATE "C", correlation_id COLLATE "C"
      ON CONFLICT (tenant_id, correlation_id) DO UPDATE SET events = t.events + excluded.events,
        first_at = least(t.first_at, excluded.first_at), last_at = greatest(t.last_at, excluded.last_at)
      RETURNING tenant_id, correlation_id, events, attributes, client_at, client_event, client_traceparent, cut_depth, cut_id`,
    values: [
      JSON.stringify(
        groups.map((group) => {
          const times = group.changes.map((one) => one.at);
          return {
            ...columnsOf(group),
            events: group.changes.length,
            first_at: toTime(Math.min(...times)),
            last_at: toTime(Math.max(...times)),
          };
        }),
      ),
    ],
  });
  return new Map(
    rows.map((row) => [keyOf({ tenantId: row.tenant_id, correlationId: row.correlation_id }), row]),
  );
}

/** What has to be read to be merged, where it changed; and that something came. */
async function saveTraces(
  tx: Transaction,
  groups: readonly Group[],
  locked: ReadonlyMap<string, TraceRow>,
): Promise<void> {
  const changed = groups.flatMap((group) => {
    const row = locked.get(keyOf(group));
    const before = row === undefined ? null : toClient(row);
    const client = group.changes.map((one) => one.client).reduce(mergeClients, before);
    const attributes = group.changes
      .map((one) => one.attributes)
      .reduce(mergeAttributes, row?.attributes ?? {});
    const isSame =
      client?.eventId === before?.eventId &&
      JSON.stringify(Object.entries(attributes).sort()) ===
        JSON.stringify(Object.entries(row?.attributes ?? {}).sort());
    return isSame
      ? []
      : [
          {
            ...columnsOf(group),
            attributes,
            client_at: client === null ? null : toTime(client.at),
            client_event: client?.eventId ?? null,
            client_traceparent: client?.traceparent ?? null,
          },
        ];
  });
  if (changed.length > 0) {
    await tx.query({
      name: "trace-save-traces",
      text: `UPDATE traces AS t SET attributes = g.attributes, client_at = g.client_at, client_event = g.client_event,
          client_traceparent = g.client_traceparent
        FROM json_populate_recordset(NULL::traces, $1::json) AS g
        WHERE t.tenant_id = g.tenant_id AND t.correlation_id = g.correlation_id`,
      values: [JSON.stringify(changed)],
    });
  }
  await tx.query({
    name: "trace-save-arrivals",
    text: `INSERT INTO arrivals (tenant_id, correlation_id, arrived_at)
      SELECT tenant_id, correlation_id, clock_timestamp() FROM json_populate_recordset(NULL::arrivals, $1::json)
      ORDER BY tenant_id, correlation_id
      ON CONFLICT (tenant_id, correlation_id) DO UPDATE SET arrived_at = excluded.arrived_at`,
    values: [JSON.stringify(groups.map(columnsOf))],
  });
}

async function saveSpans(
  tx: Transaction,
  groups: readonly Group[],
  kept: (group: Group, one: Place) => boolean,
): Promise<void> {
  const merged = new Map<string, { readonly group: Group; readonly state: SpanState }>();
  for (const group of groups) {
    for (const part of group.changes.flatMap((one) => one.spans)) {
      if (!kept(group, part)) continue;
      const key = keyOf(group) + part.spanId;
      const known = merged.get(key);
      merged.set(key, { group, state: known === undefined ? part : mergeSpans(known.state, part) });
    }
  }
  if (merged.size === 0) return;
  const before = await loadSpans(tx, [...merged.values()]);
  const changed = [...merged].flatMap(([key, { group, state }]) => {
    const known = before.get(key);
    const after = known === undefined ? state : mergeSpans(known, state);
    return known !== undefined && isSameSpan(known, after)
      ? []
      : [{ ...columnsOf(group), ...toSpanColumns(after) }];
  });
  if (changed.length === 0) return;
  await tx.query({
    name: "trace-save-spans",
    text: `INSERT INTO spans SELECT * FROM json_populate_recordset(NULL::spans, $1::json)
      ON CONFLICT (tenant_id, correlation_id, span_id) DO UPDATE SET
        parent_id = excluded.parent_id, parent_rank = excluded.parent_rank, is_real = excluded.is_real,
        cause_event = excluded.cause_event, start_rank = excluded.start_rank, started_at = excluded.started_at,
        end_rank = excluded.end_rank, ended_at = excluded.ended_at, holds_until = excluded.holds_until,
        status_rank = excluded.status_rank, status = excluded.status, error_type = excluded.error_type,
        attributes = excluded.attributes, links = excluded.links`,
    values: [JSON.stringify(changed)],
  });
}

async function loadSpans(
  tx: Transaction,
  wanted: readonly { readonly group: Group; readonly state: SpanState }[],
): Promise<ReadonlyMap<string, SpanState>> {
  const { rows } = await tx.query<SpanRow>({
    name: "trace-load-spans",
    text: `SELECT s.* FROM json_populate_recordset(NULL::spans, $1::json) AS w
      JOIN spans AS s ON s.tenant_id = w.tenant_id AND s.correlation_id = w.correlation_id AND s.span_id = w.span_id`,
    values: [
      JSON.stringify(wanted.map(({ group, state }) => ({ ...columnsOf(group), span_id: state.spanId }))),
    ],
  });
  return new Map(
    rows.map((row) => [
      keyOf({ tenantId: row.tenant_id, correlationId: row.correlation_id }) + row.span_id,
      fromSpanRow(row),
    ]),
  );
}

async function saveCauses(
  tx: Transaction,
  groups: readonly Group[],
  kept: (group: Group, one: Place) => boolean,
): Promise<void> {
  const rows = groups.flatMap((group) =>
    group.changes.flatMap(({ cause }) =>
      cause === null || !kept(group, cause)
        ? []
        : [
            {
              ...columnsOf(group),
              event_id: cause.eventId,
              span_id: cause.spanId,
              depth: depthOf[cause.topic],
              at: toTime(cause.at),
            },
          ],
    ),
  );
  if (rows.length === 0) return;
  await tx.query({
    name: "trace-save-causes",
    text: `INSERT INTO causes SELECT * FROM json_populate_recordset(NULL::causes, $1::json) ON CONFLICT DO NOTHING`,
    values: [JSON.stringify(rows)],
  });
}

async function saveDeliveries(
  tx: Transaction,
  groups: readonly Group[],
  kept: (group: Group, one: Place) => boolean,
): Promise<void> {
  const inBatch = groups.reduce((sum, group) => sum + group.changes.length, 0);
  const rows = groups.flatMap((group) =>
    group.changes.flatMap(({ delivery }) =>
      delivery === null || !kept(group, { topic: "decision", spanId: delivery.spanId })
        ? []
        : [
            {
              ...columnsOf(group),
              event_id: delivery.eventId,
              event_type: delivery.eventType,
              span_id: delivery.spanId,
              depth: depthOf.decision,
              destination: delivery.destination,
              partition: delivery.partition,
              kafka_offset: delivery.offset.toString(),
              recorded_at: toTime(delivery.recordedAt),
              published_at: delivery.publishedAt === null ? null : toTime(delivery.publishedAt),
              received_at: delivery.receivedAt === null ? null : toTime(delivery.receivedAt),
              batch_messages: inBatch,
            },
          ],
    ),
  );
  if (rows.length === 0) return;
  await tx.query({
    name: "trace-save-deliveries",
    text: `INSERT INTO deliveries (tenant_id, correlation_id, event_id, event_type, span_id, depth, destination, partition,
        kafka_offset, recorded_at, published_at, received_at, batch_messages, batch_id)
      -- The subselect runs once: one id for the batch.
      SELECT tenant_id, correlation_id, event_id, event_type, span_id, depth, destination, partition,
        kafka_offset, recorded_at, published_at, received_at, batch_messages, (SELECT gen_random_uuid())
      FROM json_populate_recordset(NULL::deliveries, $1::json) ON CONFLICT DO NOTHING`,
    values: [JSON.stringify(rows)],
  });
}

/**
 * Keeps the first `maxSpans` spans of each by (depth, id), which no order of arrival changes: what lies before the final
 * cut lay before every earlier one, so nothing of it was ever left out.
 * INVARIANT: test/integration/trace.test.ts "keeps the same spans of a long correlation, whatever the order".
 */
async function cutLong(tx: Transaction, groups: readonly Group[], maxSpans: number): Promise<void> {
  for (const { tenantId, correlationId } of groups) {
    const found = await tx.query<{ depth: number; span_id: string }>({
      name: "trace-find-cut",
      text: `SELECT depth, span_id FROM spans WHERE tenant_id = $1 AND correlation_id = $2
        ORDER BY depth, span_id OFFSET $3 LIMIT 1`,
      values: [tenantId, correlationId, maxSpans],
    });
    const cut = found.rows[0];
    if (cut === undefined) continue;
    const values = [tenantId, correlationId, cut.depth, cut.span_id];
    await tx.query({
      name: "trace-cut-traces",
      text: `UPDATE traces SET cut_depth = $3, cut_id = $4 WHERE tenant_id = $1 AND correlation_id = $2`,
      values,
    });
    for (const table of ["spans", "causes", "deliveries"]) {
      await tx.query({
        name: `trace-cut-${table}`,
        text: `DELETE FROM ${table} WHERE tenant_id = $1 AND correlation_id = $2 AND (depth, span_id) >= ($3, $4)`,
        values,
      });
    }
  }
}

function isBeforeCut(row: TraceRow | undefined, { topic, spanId }: Place): boolean {
  if (row === undefined || row.cut_depth === null || row.cut_id === null) return true;
  const depth = depthOf[topic];
  return depth < row.cut_depth || (depth === row.cut_depth && spanId < row.cut_id);
}

function toClient(row: TraceRow): ClientTrace | null {
  if (row.client_at === null || row.client_event === null || row.client_traceparent === null) return null;
  return { at: row.client_at.getTime(), eventId: row.client_event, traceparent: row.client_traceparent };
}

function columnsOf({ tenantId, correlationId }: Pick<Group, "tenantId" | "correlationId">) {
  return { tenant_id: tenantId, correlation_id: correlationId };
}

function toTime(ms: number): string {
  return new Date(ms).toISOString();
}
