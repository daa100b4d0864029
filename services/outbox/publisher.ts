import { isRecordFault } from "../platform/classify.ts";
import type { KafkaRecord, ProducerFactory, ProducerPort } from "../platform/kafka.ts";
import type { OutboxEvent } from "./outbox-event.ts";
import type { RefusedEvent } from "./remove-events.ts";

/** What became of a batch. */
export interface SendOutcome {
  readonly acked: readonly OutboxEvent[];
  /** Refused while standing alone: never to be published. */
  readonly refused: readonly RefusedEvent[];
  /** Not published, and due again. A poison fault here means: somebody in this company is the culprit. */
  readonly failed: readonly RefusedEvent[];
}

/** Owns the producer: takes one when needed, and throws it away after any failed send. */
export class Publisher {
  readonly #factory: ProducerFactory;
  readonly #topicPrefix: string;
  readonly #topics = new Map<string, string>();
  #producer: ProducerPort | null = null;

  constructor(factory: ProducerFactory, topicPrefix: string) {
    this.#factory = factory;
    this.#topicPrefix = topicPrefix;
  }

  /** Sends one batch; rejects when nothing is known of any of its rows. */
  async send(events: readonly OutboxEvent[]): Promise<SendOutcome> {
    const producer = (this.#producer ??= await this.#factory());
    try {
      const { failures } = await producer.send(events.map((event) => this.#toRecord(event)));
      const failureOf = new Map(failures.map((failure) => [failure.index, failure]));
      const acked: OutboxEvent[] = [];
      const refused: RefusedEvent[] = [];
      const failed: RefusedEvent[] = [];
      events.forEach((event, index) => {
        const failure = failureOf.get(index);
        if (failure === undefined) acked.push(event);
        else
          (failure.alone && isRecordFault(failure.fault) ? refused : failed).push({
            event,
            fault: failure.fault,
          });
      });
      return { acked, refused, failed };
    } finally {
      if (producer.spent) await this.close();
    }
  }

  async close(): Promise<void> {
    const producer = this.#producer;
    this.#producer = null;
    await producer?.close();
  }

  #toRecord(event: OutboxEvent): KafkaRecord {
    // One string per topic, not one per row: it is looked up again and again.
    let topic = this.#topics.get(event.type);
    if (topic === undefined) this.#topics.set(event.type, (topic = this.#topicPrefix + event.type));
    return {
      topic,
      key: event.key,
      value: event.payload,
      headers: event.headers,
      timestampMs: event.createdAtMs,
    };
  }
}
