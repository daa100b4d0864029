import type { SASLOptions } from "kafkajs";
import type { Fault } from "../../schemas/faults.ts";

/** Where the brokers are and who we are to them. */
export interface KafkaEndpoint {
  /** `host:port` of some brokers; the others are learned from them. */
  readonly brokers: readonly string[];
  readonly clientId: string;
  readonly tls?: boolean;
  readonly sasl?: SASLOptions;
}

/** One record to publish. The topic's name is the one on the broker, prefix included. */
export interface KafkaRecord {
  readonly topic: string;
  readonly key: string;
  readonly value: Buffer;
  /** Values are sent as UTF-8. */
  readonly headers: Readonly<Record<string, string>>;
  /** UTC milliseconds. */
  readonly timestampMs: number;
}

/** Why one record was not acknowledged. */
export interface RecordFailure {
  /** Position in the array that was handed to `send`. */
  readonly index: number;
  /**
   * BROKER_UNAVAILABLE and TOPIC_MISSING are transient. RECORD_TOO_LARGE and BROKER_REJECTED are the record's own
   * fault, but only when it was refused `alone`; else one of its neighbours may be the culprit.
   */
  readonly fault: Fault;
  readonly alone: boolean;
}

/** What became of the records of one `send`: all that are not listed are acknowledged by all in-sync replicas. */
export interface SendResult {
  readonly failures: readonly RecordFailure[];
}

/**
 * Publishes records in order per key and topic, at least once. Contract: test/contract/producer.test.ts.
 *
 * One `send` at a time. Within one, records of the same topic and key are acknowledged in order: once one has failed,
 * none after it in its partition is. It never throws for a record; a rejection means that nothing is known of any.
 */
export interface ProducerPort {
  send(records: readonly KafkaRecord[]): Promise<SendResult>;
  /**
   * True after a failed request: what the broker has of it is unknown, and so is the next sequence number. The
   * producer then refuses to send, and its owner takes a new one, with a new producer id.
   */
  readonly spent: boolean;
  close(): Promise<void>;
}

/** Connects a new producer; throws BROKER_UNAVAILABLE, or CONFIG_INVALID for a broker it cannot talk to. */
export type ProducerFactory = () => Promise<ProducerPort>;
