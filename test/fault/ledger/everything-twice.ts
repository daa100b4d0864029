import type { ProducerPort } from "../../../services/platform/kafka.ts";
import type { ConsumerPort } from "../../../services/platform/kafka-consumer.ts";

/** Counts what was delivered once more. */
export interface Repeats {
  records: number;
}

/** A producer that publishes each record twice, under the same id. */
export function sendingTwice(producer: ProducerPort, repeats: Repeats): ProducerPort {
  return {
    get spent() {
      return producer.spent;
    },
    close: () => producer.close(),
    async send(records) {
      const first = await producer.send(records);
      if (first.failures.length > 0 || producer.spent) return first;
      repeats.records += records.length;
      return producer.send(records);
    },
  };
}

/** A consumer that hands each batch over twice. */
export function handingOverTwice(consumer: ConsumerPort, repeats: Repeats): ConsumerPort {
  return {
    pause: (partition) => consumer.pause(partition),
    resume: (partition, offset) => consumer.resume(partition, offset),
    restart: (reason) => consumer.restart(reason),
    stop: () => consumer.stop(),
    start: (handlers) =>
      consumer.start({
        ...handlers,
        batch: async (batch, control) => {
          await handlers.batch(batch, control);
          repeats.records += batch.records.length;
          await handlers.batch(batch, control);
        },
      }),
  };
}
