import type { TraceKey } from "../../../processors/trace/queries.ts";
import type { Database } from "../../platform/postgres.ts";
import type { OutgoingSpan } from "./readable-span.ts";
import type { SentSpan } from "./ready-spans.ts";

/** A trace that this exporter works on until its lease ends. */
export interface ClaimedTrace extends TraceKey {
  readonly arrivedAt: string;
  readonly arrivedMs: number;
  readonly nowMs: number;
  /** Events of the correlation, to load few large ones or many small ones at a time. */
  readonly events: bigint;
  readonly lastAtMs: number;
  readonly frozen: { readonly traceId: string; readonly clientSpanId: string | null } | null;
}

/** How much waits. */
export interface Backlog {
  readonly traces: number;
  /** Since when the oldest could have been sent. */
  readonly ageMs: number;
}

/** What the exporter keeps in Postgres: it survives a restart, and nothing waits in memory. */
export interface ExportStore {
  claim(options: {
    readonly by: string;
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<readonly ClaimedTrace[]>;
  loadSent(keys: readonly TraceKey[]): Promise<ReadonlyMap<string, ReadonlyMap<string, SentSpan>>>;
  markSent(spans: readonly OutgoingSpan[], outcome: "sent" | "refused"): Promise<void>;
  markLate(key: TraceKey, spanIds: readonly string[]): Promise<void>;
  /** Ends the work on a trace; with a time to look again, or for good when nothing new came since it was claimed. */
  finish(
    trace: ClaimedTrace,
    next: { readonly lookAtMs: number | null; readonly lookAgainAtMs: number },
  ): Promise<void>;
  /** Gives a trace back untouched. */
  release(trace: ClaimedTrace): Promise<void>;
  backlog(holdMs: number): Promise<Backlog>;
  /** Takes away what ended longer ago; gives how many correlations. */
  removeOld(retentionMs: number, limit: number): Promise<number>;
}

/** Names the traces of a map. */
export function toTraceKey({ tenantId, correlationId }: TraceKey): string {
  return JSON.stringify([tenantId, correlationId]);
}

const toTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

/** As role fabric_exporter. */
export function createExportStore(database: Database): ExportStore {
  return {
    async claim({ by, limit, leaseMs }) {
      const { rows } = await database.query<{
        tenant_id: string;
        correlation_id: string;
        arrived_at: string;
        arrived_ms: number;
        now_ms: number;
        events: bigint;
        last_at_ms: number;
        trace_id: string | null;
        client_span_id: string | null;
      }>({
        name: "exporters-claim",
        // The host writes arrivals: a row is locked for as long as this statement runs, never while spans are sent.
        text: `WITH due AS MATERIALIZED (
            SELECT a.tenant_id, a.correlation_id, a.arrived_at FROM trace.arrivals AS a
            LEFT JOIN exporters.traces AS t ON t.tenant_id = a.tenant_id AND t.correlation_id = a.correlation_id
            WHERE (t.leased_until IS NULL OR t.leased_until < clock_timestamp())
              AND (t.seen_at IS NULL OR t.look_at <= clock_timestamp()
                OR (a.arrived_at > t.seen_at AND t.look_again_at <= clock_timestamp()))
            ORDER BY a.arrived_at LIMIT $2 FOR UPDATE OF a SKIP LOCKED),
          leased AS (
            INSERT INTO exporters.traces AS t (tenant_id, correlation_id, leased_by, leased_until)
            SELECT tenant_id, correlation_id, $1, clock_timestamp() + $3 * interval '1 millisecond' FROM due
            ORDER BY tenant_id, correlation_id
            ON CONFLICT (tenant_id, correlation_id) DO UPDATE
              SET leased_by = excluded.leased_by, leased_until = excluded.leased_until
              WHERE t.leased_until IS NULL OR t.leased_until < clock_timestamp()
            RETURNING t.tenant_id, t.correlation_id, t.trace_id, t.client_span_id)
          SELECT l.tenant_id, l.correlation_id, l.trace_id, l.client_span_id, due.arrived_at::text AS arrived_at,
            extract(epoch FROM due.arrived_at)::float8 * 1000 AS arrived_ms,
            extract(epoch FROM clock_timestamp())::float8 * 1000 AS now_ms,
            coalesce(r.events, 0) AS events,
            coalesce(extract(epoch FROM r.last_at)::float8 * 1000, 0) AS last_at_ms
          FROM leased AS l JOIN due USING (tenant_id, correlation_id)
          LEFT JOIN trace.traces AS r USING (tenant_id, correlation_id)
          ORDER BY due.arrived_at`,
        values: [by, limit, leaseMs],
      });
      return rows.map((row) => ({
        tenantId: row.tenant_id,
        correlationId: row.correlation_id,
        arrivedAt: row.arrived_at,
        arrivedMs: row.arrived_ms,
        nowMs: row.now_ms,
        events: row.events,
        lastAtMs: row.last_at_ms,
        frozen: row.trace_id === null ? null : { traceId: row.trace_id, clientSpanId: row.client_span_id },
      }));
    },

    async loadSent(keys) {
      const { rows } = await database.query<{
        tenant_id: string;
        correlation_id: string;
        span_id: string;
        fingerprint: string;
        is_late: boolean;
      }>({
        name: "exporters-load-sent",
        text: `SELECT s.tenant_id, s.correlation_id, s.span_id, s.fingerprint, s.is_late
          FROM unnest($1::text[], $2::text[]) AS k(tenant_id, correlation_id)
          JOIN exporters.spans AS s ON s.tenant_id = k.tenant_id AND s.correlation_id = k.correlation_id`,
        values: [keys.map((one) => one.tenantId), keys.map((one) => one.correlationId)],
      });
      const byTrace = new Map<string, Map<string, SentSpan>>(keys.map((one) => [toTraceKey(one), new Map()]));
      for (const row of rows) {
        byTrace
          .get(toTraceKey({ tenantId: row.tenant_id, correlationId: row.correlation_id }))
          ?.set(row.span_id, { spanId: row.span_id, fingerprint: row.fingerprint, isLate: row.is_late });
      }
      return byTrace;
    },

    async markSent(spans, outcome) {
      const rows = spans.map((one) => ({
        tenant_id: one.tenantId,
        correlation_id: one.correlationId,
        span_id: one.span.spanId,
        fingerprint: one.fingerprint,
        trace_id: one.traceId,
        client_span_id: one.clientSpanId,
      }));
      await database.query({
        name: "exporters-mark-sent",
        text: `WITH new AS MATERIALIZED (
            SELECT * FROM json_to_recordset($1::json) AS r(tenant_id text, correlation_id text, span_id text,
              fingerprint text, trace_id text, client_span_id text)),
          frozen AS (
            UPDATE exporters.traces AS t SET trace_id = new.trace_id, client_span_id = new.client_span_id
            FROM (SELECT DISTINCT ON (tenant_id, correlation_id) * FROM new) AS new
            WHERE t.tenant_id = new.tenant_id AND t.correlation_id = new.correlation_id AND t.trace_id IS NULL)
          INSERT INTO exporters.spans (tenant_id, correlation_id, span_id, fingerprint, outcome)
          SELECT tenant_id, correlation_id, span_id, fingerprint, $2 FROM new ON CONFLICT DO NOTHING`,
        values: [JSON.stringify(rows), outcome],
      });
    },

    async markLate({ tenantId, correlationId }, spanIds) {
      if (spanIds.length === 0) return;
      await database.query(
        `UPDATE exporters.spans SET is_late = true
          WHERE tenant_id = $1 AND correlation_id = $2 AND span_id = ANY ($3::text[])`,
        [tenantId, correlationId, [...spanIds]],
      );
    },

    async finish({ tenantId, correlationId, arrivedAt }, { lookAtMs, lookAgainAtMs }) {
      await database.query({
        name: "exporters-finish",
        text: `WITH gone AS (
            DELETE FROM trace.arrivals WHERE tenant_id = $1 AND correlation_id = $2 AND arrived_at = $3::timestamptz
              AND $4::timestamptz IS NULL)
          UPDATE exporters.traces SET leased_by = NULL, leased_until = NULL, seen_at = $3::timestamptz,
            look_at = $4::timestamptz, look_again_at = $5::timestamptz
          WHERE tenant_id = $1 AND correlation_id = $2`,
        values: [tenantId, correlationId, arrivedAt, toTime(lookAtMs), toTime(lookAgainAtMs)],
      });
    },

    async release({ tenantId, correlationId }) {
      await database.query(
        `UPDATE exporters.traces SET leased_by = NULL, leased_until = NULL
          WHERE tenant_id = $1 AND correlation_id = $2`,
        [tenantId, correlationId],
      );
    },

    async backlog(holdMs) {
      const { rows } = await database.query<{ traces: number; age_ms: number | null }>(
        `SELECT count(*)::int AS traces,
            (extract(epoch FROM max(clock_timestamp() - coalesce(t.look_at, a.arrived_at)))::float8 * 1000) AS age_ms
          FROM trace.arrivals AS a
          LEFT JOIN exporters.traces AS t ON t.tenant_id = a.tenant_id AND t.correlation_id = a.correlation_id
          WHERE coalesce(t.look_at, a.arrived_at + $1 * interval '1 millisecond') <= clock_timestamp()`,
        [holdMs],
      );
      return { traces: rows[0]?.traces ?? 0, ageMs: Math.max(0, rows[0]?.age_ms ?? 0) };
    },

    async removeOld(retentionMs, limit) {
      const { rowCount } = await database.query({
        name: "exporters-remove-old",
        text: `WITH old AS MATERIALIZED (
            SELECT t.tenant_id, t.correlation_id FROM trace.traces AS t
            WHERE t.last_at < clock_timestamp() - $1 * interval '1 millisecond'
              AND NOT EXISTS (SELECT FROM trace.arrivals AS a
                WHERE a.tenant_id = t.tenant_id AND a.correlation_id = t.correlation_id)
            LIMIT $2),
          sent AS (DELETE FROM exporters.spans AS s USING old
            WHERE s.tenant_id = old.tenant_id AND s.correlation_id = old.correlation_id),
          kept AS (DELETE FROM exporters.traces AS s USING old
            WHERE s.tenant_id = old.tenant_id AND s.correlation_id = old.correlation_id),
          spans AS (DELETE FROM trace.spans AS s USING old
            WHERE s.tenant_id = old.tenant_id AND s.correlation_id = old.correlation_id),
          causes AS (DELETE FROM trace.causes AS s USING old
            WHERE s.tenant_id = old.tenant_id AND s.correlation_id = old.correlation_id),
          deliveries AS (DELETE FROM trace.deliveries AS s USING old
            WHERE s.tenant_id = old.tenant_id AND s.correlation_id = old.correlation_id)
          DELETE FROM trace.traces AS s USING old
            WHERE s.tenant_id = old.tenant_id AND s.correlation_id = old.correlation_id`,
        values: [retentionMs, limit],
      });
      return rowCount;
    },
  };
}
