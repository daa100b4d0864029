import type { Transaction } from "../kit/transaction.ts";
import { assembleTrace } from "./assemble.ts";
import { toSendId } from "./delivery-spans.ts";
import { parseTraceparent, toTraceId } from "./ids.ts";
import type { SpanRow } from "./rows.ts";
import { fromSpanRow } from "./rows.ts";
import type { Delivered, TraceSpan, TraceTree } from "./tree.ts";
import type { Attributes } from "./words.ts";

export type { TraceSpan, TraceTree };
export { conventionsVersion, own, semantic } from "./conventions.ts";
export { parseTraceparent } from "./ids.ts";

/** Which correlation: ids of correlations are unique within a tenant. */
export interface TraceKey {
  readonly tenantId: string;
  readonly correlationId: string;
}

/** Tables that a rebuild from the same events makes equal, each with a total order. */
export const dumpTables = [
  { table: "traces", orderBy: "tenant_id, correlation_id" },
  { table: "spans", orderBy: "tenant_id, correlation_id, span_id" },
  { table: "causes", orderBy: "tenant_id, correlation_id, event_id" },
] as const;

interface StoredRow {
  readonly tenant_id: string;
  readonly correlation_id: string;
}
interface RootRow extends StoredRow {
  readonly events: bigint;
  readonly first_at: Date;
  readonly last_at: Date;
  readonly client_traceparent: string | null;
  readonly attributes: Attributes;
  readonly cut_depth: number | null;
}
interface CauseColumns extends StoredRow {
  readonly event_id: string;
  readonly span_id: string;
  readonly at: Date;
}
interface DeliveryColumns extends StoredRow {
  readonly event_id: string;
  readonly event_type: string;
  readonly span_id: string;
  readonly destination: string;
  readonly partition: number;
  readonly kafka_offset: bigint;
  readonly recorded_at: Date;
  readonly published_at: Date | null;
  readonly received_at: Date | null;
  readonly projected_at: Date;
  readonly batch_messages: number;
  readonly batch_id: string | null;
}
interface NeighbourRow extends StoredRow {
  readonly batch_id: string;
  readonly event_id: string;
  readonly client_traceparent: string | null;
}

/** Other messages of its batch that a consume span links to: the first of the partition. */
const maxBatchLinks = 8;

/** The trees of the given correlations, those that are there. Reads in five statements, from one snapshot if `tx` has one. */
export async function loadTraces(tx: Transaction, keys: readonly TraceKey[]): Promise<readonly TraceTree[]> {
  if (keys.length === 0) return [];
  const values = [keys.map((one) => one.tenantId), keys.map((one) => one.correlationId)];
  const read = async <R extends StoredRow>(table: string): Promise<ReadonlyMap<string, R[]>> => {
    const { rows } = await tx.query<R>({
      name: `trace-read-${table}`,
      text: `SELECT r.* FROM unnest($1::text[], $2::text[]) AS k(tenant_id, correlation_id)
        JOIN trace.${table} AS r ON r.tenant_id = k.tenant_id AND r.correlation_id = k.correlation_id`,
      values,
    });
    const byKey = new Map<string, R[]>();
    for (const row of rows) {
      const key = JSON.stringify([row.tenant_id, row.correlation_id]);
      const known = byKey.get(key);
      if (known === undefined) byKey.set(key, [row]);
      else known.push(row);
    }
    return byKey;
  };
  const roots = await read<RootRow>("traces");
  const spans = await read<StoredRow & SpanRow>("spans");
  const causes = await read<CauseColumns>("causes");
  const deliveries = await read<DeliveryColumns>("deliveries");
  const neighbours = await loadNeighbours(tx, [...deliveries.values()].flat());
  return keys.flatMap(({ tenantId, correlationId }) => {
    const key = JSON.stringify([tenantId, correlationId]);
    const root = roots.get(key)?.[0];
    if (root === undefined) return [];
    return [
      assembleTrace({
        tenantId,
        correlationId,
        events: root.events,
        firstAt: root.first_at.getTime(),
        lastAt: root.last_at.getTime(),
        clientTraceparent: root.client_traceparent,
        attributes: root.attributes,
        isTruncated: root.cut_depth !== null,
        spans: (spans.get(key) ?? []).map(fromSpanRow),
        causes: (causes.get(key) ?? []).map((one) => ({
          eventId: one.event_id,
          spanId: one.span_id,
          at: one.at.getTime(),
        })),
        deliveries: (deliveries.get(key) ?? []).map((row) => toDelivered(row, neighbours)),
      }),
    ];
  });
}

/**
 * Correlations that an id belongs to: a correlation, trace, span, session, decision, approval, capability or effect id.
 * Events and calls are found through the audit trail, which has an index for them.
 */
export async function findTraces(tx: Transaction, id: string, limit: number): Promise<readonly TraceKey[]> {
  const { rows } = await tx.query<StoredRow>(
    `SELECT DISTINCT tenant_id, correlation_id FROM (
      SELECT tenant_id, correlation_id FROM trace.traces WHERE correlation_id = $1
      UNION ALL SELECT tenant_id, correlation_id FROM trace.spans WHERE span_id = $1
      UNION ALL SELECT tenant_id, correlation_id FROM trace.spans WHERE identity = ANY ($2::text[])) AS found
    ORDER BY tenant_id, correlation_id LIMIT $3`,
    [id, namedTopics.map((topic) => JSON.stringify([topic, id])), limit],
  );
  return rows.map((row) => ({ tenantId: row.tenant_id, correlationId: row.correlation_id }));
}

/** Spans that are named by one id alone. */
const namedTopics = ["session", "decision", "approval", "capability", "effect", "call"] as const;

/** Batch → the first messages of its tenant in it, one more than is linked to: one of them may be the message itself. */
async function loadNeighbours(
  tx: Transaction,
  deliveries: readonly DeliveryColumns[],
): Promise<ReadonlyMap<string, readonly NeighbourRow[]>> {
  const batches = new Map<string, string>();
  for (const { batch_id: id, batch_messages: size, tenant_id: tenantId } of deliveries)
    if (id !== null && size > 1) batches.set(JSON.stringify([tenantId, id]), tenantId);
  if (batches.size === 0) return new Map();
  const keys = [...batches.keys()].map((key) => JSON.parse(key) as [string, string]);
  const { rows } = await tx.query<NeighbourRow>({
    name: "trace-read-neighbours",
    // Of one tenant: another one's traces are nothing to link to.
    text: `SELECT b.batch_id, o.tenant_id, o.correlation_id, o.event_id, t.client_traceparent
      FROM unnest($1::text[], $2::uuid[]) AS b(tenant_id, batch_id)
      CROSS JOIN LATERAL (
        SELECT d.tenant_id, d.correlation_id, d.event_id, d.destination, d.partition, d.kafka_offset
        FROM trace.deliveries AS d WHERE d.tenant_id = b.tenant_id AND d.batch_id = b.batch_id
        ORDER BY d.destination, d.partition, d.kafka_offset, d.event_id LIMIT $3) AS o
      JOIN trace.traces AS t ON t.tenant_id = o.tenant_id AND t.correlation_id = o.correlation_id
      ORDER BY o.destination, o.partition, o.kafka_offset, o.event_id`,
    values: [keys.map(([tenantId]) => tenantId), keys.map(([, id]) => id), maxBatchLinks + 1],
  });
  const byBatch = new Map<string, NeighbourRow[]>();
  for (const row of rows) {
    const key = JSON.stringify([row.tenant_id, row.batch_id]);
    const known = byBatch.get(key);
    if (known === undefined) byBatch.set(key, [row]);
    else known.push(row);
  }
  return byBatch;
}

function toBatchLink(row: NeighbourRow): string {
  const key = { tenantId: row.tenant_id, correlationId: row.correlation_id };
  const client = row.client_traceparent === null ? null : parseTraceparent(row.client_traceparent);
  const traceId = client?.traceId ?? toTraceId(key.tenantId, key.correlationId);
  return `00-${traceId}-${toSendId(key, row.event_id)}-01`;
}

function toDelivered(
  row: DeliveryColumns,
  neighbours: ReadonlyMap<string, readonly NeighbourRow[]>,
): Delivered {
  const others = neighbours.get(JSON.stringify([row.tenant_id, row.batch_id])) ?? [];
  return {
    eventId: row.event_id,
    eventType: row.event_type,
    spanId: row.span_id,
    destination: row.destination,
    partition: row.partition,
    offset: row.kafka_offset,
    recordedAt: row.recorded_at.getTime(),
    publishedAt: row.published_at?.getTime() ?? null,
    receivedAt: row.received_at?.getTime() ?? null,
    projectedAt: row.projected_at.getTime(),
    batchMessages: row.batch_messages,
    batchLinks: others
      .filter((one) => one.event_id !== row.event_id)
      .slice(0, maxBatchLinks)
      .map(toBatchLink),
  };
}
