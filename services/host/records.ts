import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { LogRecord, TopicPartition } from "../platform/kafka-consumer.ts";
import { classify, isRecordFault } from "../platform/classify.ts";

/** Reads a record's value; the platform's codec is one. Throws faults. */
export interface EventDecoder {
  decode(bytes: Buffer): Promise<{ readonly envelope: Envelope }>;
  /** The same at once; null when the writer's schema has to be asked for. A promise a record is most of its cost. */
  decodeNow?(bytes: Buffer): { readonly envelope: Envelope } | null;
}

/**
 * A record that was understood, with what the processor makes of it. The event itself is not kept: a thousand of them
 * that wait for the database cost the garbage collector more than to read one again for its letter.
 */
export interface ProjectedRecord {
  readonly record: LogRecord;
  /** The UUID inside `event_id`, the inbox key. */
  readonly eventUuid: string;
  readonly changes: readonly unknown[];
  /** Set when the event is set aside: its projection threw, or it stood alone and failed `attempts` times. */
  readonly thrown: { readonly event: Envelope; readonly fault: Fault; readonly attempts: number } | null;
}

/** A record that never will be. */
export interface RefusedRecord {
  readonly record: LogRecord;
  readonly fault: Fault;
}

/** One record as the steps take it; neither event nor fault is a tombstone or one that is not for this processor. */
export type ReadRecord =
  | ({ readonly kind: "event" } & ProjectedRecord)
  | ({ readonly kind: "refused" } & RefusedRecord)
  | { readonly kind: "skipped"; readonly record: LogRecord; readonly why: "tombstone" | "own_letter" };

export interface ReadContext {
  readonly decoder: EventDecoder;
  readonly processor: Pick<Processor, "name" | "project">;
  readonly source: TopicPartition;
  /** Event type that the topic carries. */
  readonly type: string;
  /** Whether a schema id that nobody knows has been unknown for so long that it counts as poison. */
  readonly isSchemaOverdue: (record: LogRecord) => boolean;
  /** When the records were taken up from the log; absent: they come from elsewhere. */
  readonly receivedMs?: number;
}

/** Reads and projects records in order. A fault that is not a record's own (registry away) is thrown: none of them can go on. */
export async function readRecords(
  records: readonly LogRecord[],
  context: ReadContext,
): Promise<readonly ReadRecord[]> {
  const read: ReadRecord[] = [];
  for (const record of records) read.push(readNow(record, context) ?? (await readLater(record, context)));
  return read;
}

/** Null when the writer's schema has to be asked for. */
function readNow(record: LogRecord, context: ReadContext): ReadRecord | null {
  if (record.value === null) return { kind: "skipped", record, why: "tombstone" };
  try {
    const decoded = context.decoder.decodeNow?.(record.value) ?? null;
    return decoded === null ? null : toRead(record, decoded.envelope, context);
  } catch (error) {
    return refuse(record, error, context);
  }
}

async function readLater(record: LogRecord, context: ReadContext): Promise<ReadRecord> {
  if (record.value === null) return { kind: "skipped", record, why: "tombstone" };
  try {
    return toRead(record, (await context.decoder.decode(record.value)).envelope, context);
  } catch (error) {
    return refuse(record, error, context);
  }
}

function toRead(record: LogRecord, event: Envelope, context: ReadContext): ReadRecord {
  if (event.type !== context.type) {
    throw new Fault("RECORD_UNDECODABLE", `a record of ${event.type} is in the topic of ${context.type}`);
  }
  // INVARIANT: a letter about X never goes to X, or one bad letter would breed letters for ever
  // (test/integration/host-faults.test.ts "never hands a processor a letter about itself").
  if (event.type === "fabric.letter.buried" && event.redacted_summary.consumer === context.processor.name) {
    return { kind: "skipped", record, why: "own_letter" };
  }
  const eventUuid = event.event_id.slice(eventIdPrefix.length);
  if (!event.event_id.startsWith(eventIdPrefix) || !isUuid(eventUuid)) {
    throw new Fault("RECORD_UNDECODABLE", "event_id is not `evt_` and a UUID in lower case");
  }
  try {
    const { topic, partition } = context.source;
    const { offset, timestampMs } = record;
    const { receivedMs } = context;
    const changes = context.processor.project(event, { topic, partition, offset, timestampMs, receivedMs });
    return { kind: "event", record, eventUuid, changes, thrown: null };
  } catch (error) {
    // One event's own: it is set aside without another run of the batch.
    return {
      kind: "event",
      record,
      eventUuid,
      changes: [],
      thrown: { event, fault: classify(error, "project"), attempts: 1 },
    };
  }
}

const eventIdPrefix = "evt_";

/** Lower case only. A loop, since a regular expression would take three times as long for every event. */
function isUuid(text: string): boolean {
  if (text.length !== 36) return false;
  for (let at = 0; at < 36; at += 1) {
    const code = text.charCodeAt(at);
    const fits =
      at === 8 || at === 13 || at === 18 || at === 23
        ? code === 45
        : (code >= 48 && code <= 57) || (code >= 97 && code <= 102);
    if (!fits) return false;
  }
  return true;
}

/** The record set aside; throws the fault when it is not the record's own. */
function refuse(record: LogRecord, error: unknown, context: ReadContext): ReadRecord {
  const fault = classify(error, "decode");
  if (isRecordFault(fault)) return { kind: "refused", record, fault };
  // The registry may be restarting: the id is waited for, but not for ever.
  if (fault.code === "SCHEMA_ID_UNKNOWN" && context.isSchemaOverdue(record)) {
    return { kind: "refused", record, fault };
  }
  throw fault;
}

/** `topic/partition`, the key of maps and log lines. */
export const keyOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`;
