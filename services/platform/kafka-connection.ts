import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { Kafka, logLevel } from "kafkajs";
import { mendFrames } from "./kafka-frames.ts";
import { mendRequestQueue } from "./kafka-request-queue.ts";
import type { KafkaEndpoint } from "./kafka.ts";
import type { Log } from "./log.ts";

/** Where a broker is really reached, when its own address is not the way (a tunnel). */
export type BrokerRoute = (host: string, port: number) => { readonly host: string; readonly port: number };

/** A kafkajs client for the endpoint, whose log lines go to ours: what kafkajs calls an error it mostly heals itself. */
export function openKafka(endpoint: KafkaEndpoint, log: Log, route?: BrokerRoute): Kafka {
  mendRequestQueue();
  mendFrames();
  return new Kafka({
    ...(route === undefined
      ? {}
      : {
          socketFactory: ({ host, port, ssl, onConnect }) => {
            const to = route(host, port);
            const socket =
              endpoint.tls === true
                ? connectTls({ ...ssl, ...to, servername: host }, onConnect)
                : connectTcp({ ...to }, onConnect);
            socket.setKeepAlive(true, 30_000);
            return socket;
          },
        }),
    clientId: endpoint.clientId,
    brokers: [...endpoint.brokers],
    connectionTimeout: 3_000,
    // Well above a fetch's wait, and low enough that a silent network is noticed within half a minute.
    requestTimeout: 8_000,
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
