import type { Envelope } from "../../schemas/envelope.ts";
import { toKey } from "../../schemas/envelope.ts";
import { toUuid } from "./ids.ts";
import type { Database, Statement, Tx } from "./postgres.ts";

/** One event as the outbox stores it: framed payload, ordering key, CloudEvents headers (binary mode). */
export interface OutboxRow {
  /** The UUID of `event_id`. */
  readonly id: string;
  readonly type: string;
  readonly key: string;
  readonly tenantId: string;
  readonly payload: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** The part of the event codec that writers need. */
export interface EventEncoder {
  encode(envelope: Envelope): { readonly schemaId: number; readonly bytes: Buffer };
}

/** Encodes events for the outbox; throws the codec's faults (an unregistered schema, a value out of range). */
export function toOutboxRows(codec: EventEncoder, envelopes: readonly Envelope[]): OutboxRow[] {
  return envelopes.map((envelope) => ({
    id: toUuid(envelope.event_id),
    type: envelope.type,
    key: toKey(envelope),
    tenantId: envelope.tenant_id,
    payload: codec.encode(envelope).bytes,
    headers: toHeaders(envelope),
  }));
}

/** CloudEvents 1.0 attributes as Kafka headers, plus W3C Trace Context. Nothing of the payload is in them. */
function toHeaders(envelope: Envelope): Record<string, string> {
  const headers: Record<string, string> = {
    ce_id: envelope.event_id,
    ce_type: envelope.type,
    ce_source: `urn:fabric:${envelope.environment}:${envelope.tenant_id}:${envelope.runtime.kind}`,
    ce_specversion: "1.0",
    ce_time: toIsoTime(envelope.occurred_at),
    ce_subject: envelope.correlation_id,
    ce_dataschema: `urn:fabric:schema:${envelope.type}:${envelope.schema_version}`,
    "content-type": "application/avro",
  };
  if (envelope.trace !== null) headers["traceparent"] = envelope.trace.traceparent;
  return headers;
}

let isoMs = Number.NaN;
let isoText = "";
/** The events of a group were mostly recorded at the same time. */
function toIsoTime(ms: number): string {
  if (ms !== isoMs) {
    isoMs = ms;
    isoText = new Date(ms).toISOString();
  }
  return isoText;
}

const appendText = "SELECT outbox.append($1::uuid[], $2, $3, $4, $5, $6::jsonb[]) AS added";

/**
 * The statement that appends rows; its one result row is `{ added: number }`. It waits for the rows' lanes and holds
 * them to the commit: run it once per transaction and last.
 */
export function outboxStatement(rows: readonly OutboxRow[]): Statement {
  return { name: "outbox-append", text: appendText, values: outboxValues(rows) };
}

/** The six arguments of `outbox.append`, for a writer that calls it inside a statement of its own. */
export function outboxValues(rows: readonly OutboxRow[]): unknown[][] {
  return [
    rows.map((row) => row.id),
    rows.map((row) => row.type),
    rows.map((row) => row.key),
    rows.map((row) => row.tenantId),
    rows.map((row) => row.payload),
    rows.map((row) => JSON.stringify(row.headers)),
  ];
}

/**
 * Appends events to the outbox in the caller's transaction and returns how many were new (an id that still waits in
 * the outbox is not added again). Call it once per transaction, as the last statement; notify after the commit.
 */
export async function appendOutbox(tx: Tx, rows: readonly OutboxRow[]): Promise<number> {
  if (rows.length === 0) return 0;
  const result = await tx.query<{ added: number }>(outboxStatement(rows));
  return result.rows[0]?.added ?? 0;
}

/** The channel on which the relay listens. */
export const outboxChannel = "outbox";

/**
 * Shortest time between two wake-ups of one process: one NOTIFY serves all commits of this span. It is also the longest
 * that a commit waits for its wake-up, and most of an event's way through an idle system: a longer gap saves little.
 */
const notifyGapMs = 1;

const notifiers = new WeakMap<Database, { busy: boolean; again: boolean }>();

/**
 * Wakes the relay. Call it after the commit, never inside the transaction: NOTIFY serialises commits and halves them.
 * It returns at once and never fails; the relay's polling is the safety net.
 */
export function notifyOutbox(database: Database): void {
  const state = notifiers.get(database) ?? { busy: false, again: false };
  notifiers.set(database, state);
  if (state.busy) {
    state.again = true;
    return;
  }
  state.busy = true;
  const rest = (): void => {
    setTimeout(() => {
      state.busy = false;
      if (!state.again) return;
      state.again = false;
      notifyOutbox(database);
    }, notifyGapMs).unref();
  };
  database
    .query({ name: "outbox-notify", text: "SELECT pg_notify($1, '')", values: [outboxChannel] })
    .then(rest, rest);
}
