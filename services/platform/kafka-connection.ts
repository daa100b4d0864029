import { Kafka, logLevel } from "kafkajs";
import type { KafkaEndpoint } from "./kafka.ts";
import type { Log } from "./log.ts";

/** A kafkajs client for the endpoint, whose log lines go to ours: what kafkajs calls an error it mostly heals itself. */
export function openKafka(endpoint: KafkaEndpoint, log: Log): Kafka {
  return new Kafka({
    clientId: endpoint.clientId,
    brokers: [...endpoint.brokers],
    connectionTimeout: 3_000,
    requestTimeout: 15_000,
    ssl: endpoint.tls ?? false,
    ...(endpoint.sasl === undefined ? {} : { sasl: endpoint.sasl }),
    logLevel: logLevel.WARN,
    logCreator:
      () =>
      ({ namespace, label, log: { message, error } }) => {
        log[label === "ERROR" ? "warn" : "debug"](
          { kafka: namespace, ...(error === undefined ? {} : { cause: String(error) }) },
          message,
        );
      },
  });
}
