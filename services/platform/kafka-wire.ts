import { createRequire } from "node:module";
import type { SASLOptions } from "kafkajs";
import { Fault } from "../../schemas/faults.ts";
import { mendFrames } from "./kafka-frames.ts";
import { mendRequestQueue } from "./kafka-request-queue.ts";

/**
 * The layer of kafkajs below its producer: one broker's connections, requests by version, error codes. Its producer
 * is not used: it says of a failed request neither which partition failed nor whether the others were written, rolls
 * its sequence numbers back, and spends two thirds of its time on headers. This file is the only one that knows
 * kafkajs' inside; test/contract/producer.test.ts finds out when a release changes it.
 */
const inside = createRequire(import.meta.url);
const { version: kafkajsVersion } = inside("kafkajs/package.json") as { version: string };
const Broker = inside("kafkajs/src/broker/index.js") as new (options: {
  connectionPool: ConnectionPool;
  logger: unknown;
  nodeId?: number;
  allowAutoTopicCreation: boolean;
}) => WireBroker;
const Pool = inside("kafkajs/src/network/connectionPool.js") as new (options: object) => ConnectionPool;
const socketFactory = inside("kafkajs/src/network/socketFactory.js") as () => unknown;
const { requests } = inside("kafkajs/src/protocol/requests/index.js") as {
  requests: Record<"Metadata" | "InitProducerId" | "Produce", RequestFamily>;
};
const { createErrorFromCode } = inside("kafkajs/src/protocol/error.js") as {
  createErrorFromCode: (code: number) => Error & { type: string };
};
const { createLogger } = inside("kafkajs/src/loggers/index.js") as {
  createLogger: (options: { level: number; logCreator: () => (entry: LogEntry) => void }) => unknown;
};

interface Connection {
  rejectRequests(error: Error): void;
  authenticate(): Promise<void>;
  isAuthenticated(): boolean;
  nextCorrelationId(): number;
  failIfNotConnected(): void;
  readonly requestQueue: { push(request: QueuedRequest): void };
  readonly socket?: { write(bytes: Buffer): void; destroy(): void };
}
interface QueuedRequest {
  readonly entry: {
    readonly apiKey: number;
    readonly apiName: string;
    readonly apiVersion: number;
    readonly correlationId: number;
    readonly resolve: (answer: { readonly payload: Buffer }) => void;
    readonly reject: (error: Error) => void;
  };
  readonly expectResponse: true;
  readonly requestTimeout: null;
  readonly sendRequest: () => void;
}
interface ConnectionPool {
  getConnection(): Promise<Connection>;
  send(request: WireRequest): Promise<unknown>;
  map(each: (connection: Connection) => void): void;
}
interface WireBroker {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  readonly versions: Record<number, ApiRange | undefined> | null;
  readonly connectionPool: ConnectionPool;
}
interface RequestFamily {
  readonly versions: readonly string[];
  protocol(of: { version: number }): (options: object) => WireRequest;
}
/** A request and how its answer is read. `encode` gives what kafkajs' own encoder looks like. */
export interface WireRequest {
  readonly request: {
    readonly apiKey: number;
    readonly apiVersion: number;
    readonly apiName: string;
    encode(): Promise<{ readonly buf: Buffer; readonly buffer: Buffer }>;
    expectResponse?(): boolean;
  };
  readonly response: { decode(raw: Buffer): Promise<unknown>; parse(decoded: unknown): Promise<unknown> };
  readonly logResponseError?: boolean;
}
export interface ApiRange {
  readonly minVersion: number;
  readonly maxVersion: number;
}
interface LogEntry {
  readonly label: string;
  readonly log: { readonly message: string; readonly broker?: string };
}
mendRequestQueue();
mendFrames();

/** Lowest version of each request that this client sends; above it what kafkajs knows and the broker offers. */
const lowestVersion = { Produce: 3, Metadata: 4, InitProducerId: 0 } as const;
const apiKeys = { Produce: 0, Metadata: 3, InitProducerId: 22 } as const;
type Api = keyof typeof apiKeys;

export interface WireOptions {
  readonly host: string;
  readonly port: number;
  readonly clientId: string;
  readonly tls: boolean;
  readonly sasl?: SASLOptions;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly onLog: (level: string, message: string) => void;
}

/** An open connection to one broker, with versions agreed. */
export interface Wire {
  readonly address: string;
  /** A prepared request of kafkajs, in the version that both sides know. */
  prepare(api: Api, options: object): WireRequest;
  send(request: WireRequest): Promise<unknown>;
  /**
   * Sends a large request without kafkajs' three copies of it. `encode` makes a buffer whose first `headerBytes` are
   * left free for the header; the answer is the undecoded body. `form` is for versions that kafkajs does not know: flexible
   * ones have tagged fields in the header, and those of the answer's header begin the body.
   */
  sendRaw(
    api: Api,
    encode: (headerBytes: number) => Buffer,
    form?: { readonly version: number; readonly isFlexible: boolean },
  ): Promise<Buffer>;
  /** What the broker says of a request; undefined: it does not know it. */
  offered(api: Api): ApiRange | undefined;
  close(): Promise<void>;
}

/** Connects; throws BROKER_UNAVAILABLE, or CONFIG_INVALID naming both versions when there is no common one. */
export async function openWire(options: WireOptions): Promise<Wire> {
  const address = `${options.host}:${options.port}`;
  const logger = createLogger({
    level: 4,
    logCreator: () => (entry) => options.onLog(entry.label, `${entry.log.message} (${address})`),
  });
  const connectionPool = new Pool({
    host: options.host,
    port: options.port,
    clientId: options.clientId,
    ...(options.tls ? { ssl: true } : {}),
    ...(options.sasl === undefined ? {} : { sasl: options.sasl }),
    socketFactory: socketFactory(),
    connectionTimeout: options.connectTimeoutMs,
    requestTimeout: options.requestTimeoutMs,
    enforceRequestTimeout: true,
    maxInFlightRequests: 1,
    logger,
  });
  const broker = new Broker({ connectionPool, logger, allowAutoTopicCreation: false });

  async function close(): Promise<void> {
    connectionPool.map((connection) => {
      // kafkajs would wait for answers that may never come.
      connection.rejectRequests(new Error("closed by us"));
      connection.socket?.destroy();
    });
    await broker.disconnect().catch(() => undefined);
  }
  try {
    await broker.connect();
  } catch (error) {
    await close();
    throw new Fault("BROKER_UNAVAILABLE", `${address}: ${messageOf(error)}`, { cause: error });
  }
  let versions: Record<Api, number>;
  try {
    versions = {
      Produce: agree(address, "Produce", broker.versions?.[apiKeys.Produce]),
      Metadata: agree(address, "Metadata", broker.versions?.[apiKeys.Metadata]),
      InitProducerId: agree(address, "InitProducerId", broker.versions?.[apiKeys.InitProducerId]),
    };
  } catch (error) {
    await close();
    throw error;
  }
  return {
    address,
    prepare: (api, request) => requests[api].protocol({ version: versions[api] })(request),
    send: (request) => connectionPool.send(request),
    offered: (api) => broker.versions?.[apiKeys[api]],
    sendRaw: async (api, encode, form = { version: versions[api], isFlexible: false }) => {
      const connection = await connectionPool.getConnection();
      if (!connection.isAuthenticated()) await connection.authenticate();
      const clientId = Buffer.from(options.clientId);
      // What follows the client id of a flexible request is the number of its tagged fields: none.
      const buffer = encode(4 + 2 + 2 + 4 + 2 + clientId.length + (form.isFlexible ? 1 : 0));
      const correlationId = connection.nextCorrelationId();
      // Request header version 1: size, api key, api version, correlation id, client id.
      buffer.writeInt32BE(buffer.length - 4, 0);
      buffer.writeInt16BE(apiKeys[api], 4);
      buffer.writeInt16BE(form.version, 6);
      buffer.writeInt32BE(correlationId, 8);
      buffer.writeInt16BE(clientId.length, 12);
      clientId.copy(buffer, 14);
      if (form.isFlexible) buffer.writeInt8(0, 14 + clientId.length);
      const { payload } = await new Promise<{ readonly payload: Buffer }>((resolve, reject) => {
        connection.failIfNotConnected();
        connection.requestQueue.push({
          entry: {
            apiKey: apiKeys[api],
            apiName: api,
            apiVersion: form.version,
            correlationId,
            resolve,
            reject,
          },
          expectResponse: true,
          requestTimeout: null,
          sendRequest: () => connection.socket?.write(buffer),
        });
      });
      return payload;
    },
    close,
  };
}

/** The version to use; Kafka 4 advertises Produce 0 to 2 and refuses them, so what it says of the low end is not used. */
export function agree(address: string, api: Api, offered: ApiRange | undefined): number {
  const known = Math.max(...requests[api].versions.map(Number));
  const version = Math.min(known, offered?.maxVersion ?? -1);
  if (version >= Math.max(lowestVersion[api], offered?.minVersion ?? 0)) return version;
  const theirs = offered === undefined ? "not at all" : `${offered.minVersion} to ${offered.maxVersion}`;
  throw new Fault(
    "CONFIG_INVALID",
    `broker ${address} speaks ${api} ${theirs}, kafkajs ${kafkajsVersion} speaks ${lowestVersion[api]} to ${known}: use a broker from 2.1 to 4.x`,
  );
}

/** Kafka's name of an error code, such as NOT_LEADER_FOR_PARTITION. */
export function errorName(code: number): string {
  return createErrorFromCode(code).type;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
