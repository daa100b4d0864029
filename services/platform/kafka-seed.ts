import { Fault } from "../../schemas/faults.ts";
import { openWire } from "./kafka-wire.ts";
import type { Wire } from "./kafka-wire.ts";
import type { KafkaEndpoint } from "./kafka.ts";
import type { Log } from "./log.ts";

/** How a connection to one broker is made. */
export interface SeedOptions extends KafkaEndpoint {
  readonly log: Log;
  readonly connectTimeoutMs?: number;
  readonly requestTimeoutMs: number;
}

/** The first broker of the list that answers; throws the last one's fault. */
export async function openSeed(options: SeedOptions): Promise<Wire> {
  let last: unknown = new Fault("CONFIG_INVALID", "name at least one broker as host:port");
  for (const broker of options.brokers) {
    const colon = broker.lastIndexOf(":");
    try {
      return await openBroker(options, broker.slice(0, colon), Number(broker.slice(colon + 1)));
    } catch (error) {
      last = error;
      if (error instanceof Fault && error.kind === "fatal") break;
    }
  }
  throw last;
}

/** One broker, by its address. */
export function openBroker(options: SeedOptions, host: string, port: number): Promise<Wire> {
  return openWire({
    host,
    port,
    clientId: options.clientId,
    tls: options.tls ?? false,
    ...(options.sasl === undefined ? {} : { sasl: options.sasl }),
    connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
    requestTimeoutMs: options.requestTimeoutMs,
    onLog: (level, message) => {
      if (level === "ERROR" || level === "WARN") options.log.warn({ client: "kafkajs" }, message);
      else options.log.debug({ client: "kafkajs" }, message);
    },
  });
}
