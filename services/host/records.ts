import type { Envelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { LogRecord, TopicPartition } from "../platform/kafka-consumer.ts";
import { classify, isRecordFault } from "./classify.ts";

/** Reads a record's value; the platform's codec is one. Throws faults. */
export interface EventDecoder {
  decode(bytes: Buffer): Promise<{ readonly envelope: Envelope }>;
}

/** A record that was understood. */
export interface DecodedRecord {
  readonly record: LogRecord;
  readonly event: Envelope;
  /** The UUID inside `event_id`, the inbox key. */
  readonly eventUuid: string;
}

/** A record that never will be. */
export interface RefusedRecord {
  readonly record: LogRecord;
  readonly fault: Fault;
}

/** One record as the steps take it; neither event nor fault is a tombstone or one that is not for this processor. */
export type ReadRecord =
  | ({ readonly kind: "event" } & DecodedRecord)
  | ({ readonly kind: "refused" } & RefusedRecord)
  | { readonly kind: "skipped"; readonly record: LogRecord; readonly why: "tombstone" | "own_letter" };

export interface ReadContext {
  readonly decoder: EventDecoder;
  readonly processorName: string;
  /** Event type that the topic carries. */
  readonly type: string;
  /** Whether a schema id that nobody knows has been unknown for so long that it counts as poison. */
  readonly isSchemaOverdue: (record: LogRecord) => boolean;
}

const eventIdForm = /^evt_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;

/** Reads records in order. A fault that is not a record's own (registry away) is thrown: none of them can go on. */
export async function readRecords(
  records: readonly LogRecord[],
  context: ReadContext,
): Promise<readonly ReadRecord[]> {
  const read: ReadRecord[] = [];
  for (const record of records) read.push(await readRecord(record, context));
  return read;
}

async function readRecord(record: LogRecord, context: ReadContext): Promise<ReadRecord> {
  if (record.value === null) return { kind: "skipped", record, why: "tombstone" };
  try {
    const { envelope: event } = await context.decoder.decode(record.value);
    if (event.type !== context.type) {
      throw new Fault("RECORD_UNDECODABLE", `a record of ${event.type} is in the topic of ${context.type}`);
    }
    // INVARIANT: a letter about X never goes to X, or one bad letter would breed letters for ever
    // (test/integration/host-faults.test.ts "never hands a processor a letter about itself").
    if (event.type === "fabric.letter.buried" && event.redacted_summary.consumer === context.processorName) {
      return { kind: "skipped", record, why: "own_letter" };
    }
    const eventUuid = eventIdForm.exec(event.event_id)?.[1];
    if (eventUuid === undefined) {
      throw new Fault("RECORD_UNDECODABLE", "event_id is not `evt_` and a UUID in lower case");
    }
    return { kind: "event", record, event, eventUuid };
  } catch (error) {
    const fault = classify(error, "decode");
    if (isRecordFault(fault)) return { kind: "refused", record, fault };
    // The registry may be restarting: the id is waited for, but not for ever.
    if (fault.code === "SCHEMA_ID_UNKNOWN" && context.isSchemaOverdue(record)) {
      return { kind: "refused", record, fault };
    }
    throw fault;
  }
}

/** `topic/partition`, the key of maps and log lines. */
export const keyOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`;
