import { createRequire } from "node:module";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { mendFrames } from "../../services/platform/kafka-frames.ts";
import { eventually } from "../harness/eventually.ts";

interface Answer {
  readonly correlationId: number;
}
interface Connection {
  connect(): Promise<true>;
  disconnect(): Promise<true>;
  isConnected(): boolean;
  readonly requestQueue: { fulfillRequest(answer: Answer): void };
}
const inside = createRequire(import.meta.url);
const KafkaConnection = inside("kafkajs/src/network/connection.js") as new (options: object) => Connection;
const socketFactory = inside("kafkajs/src/network/socketFactory.js") as () => unknown;
const nothing = (): undefined => undefined;
const logger = {
  namespace: () => logger,
  ...{ debug: nothing, info: nothing, warn: nothing, error: nothing },
};

/** An answer as a broker frames it: size, the request's number, body. */
function frame(correlationId: number, body = "body"): Buffer {
  const bytes = Buffer.alloc(8 + body.length);
  bytes.writeInt32BE(4 + body.length, 0);
  bytes.writeInt32BE(correlationId, 4);
  bytes.write(body, 8);
  return bytes;
}

let server: Server;
let talk: (socket: Socket) => void;
let connection: Connection;
let heard: number[];
beforeEach(async () => {
  mendFrames();
  server = createServer((socket) => {
    socket.on("error", nothing);
    talk(socket);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  connection = new KafkaConnection({
    ...{ host: "127.0.0.1", port, logger, socketFactory: socketFactory() },
    ...{ connectionTimeout: 5_000, requestTimeout: 5_000 },
  });
  heard = [];
  connection.requestQueue.fulfillRequest = ({ correlationId }) => heard.push(correlationId);
});
afterEach(async () => {
  await connection.disconnect();
  await new Promise((done) => server.close(done));
});

describe("a connection to a broker", () => {
  it("that is cut inside an answer and made again reads what comes then from its beginning", async () => {
    talk = (socket) => socket.end(frame(1).subarray(0, 6));
    await connection.connect();
    await eventually(() => !connection.isConnected());
    talk = (socket) => socket.write(frame(2));
    await connection.connect();
    await eventually(() => heard.length > 0);
    expect(heard).toEqual([2]);
  });

  it("takes answers in whatever pieces they come", async () => {
    const bytes = Buffer.concat([frame(1), frame(2, ""), frame(3, "x".repeat(100_000))]);
    talk = (socket) => {
      socket.write(bytes.subarray(0, 3));
      setImmediate(() => {
        socket.write(bytes.subarray(3, 17));
        setImmediate(() => socket.write(bytes.subarray(17)));
      });
    };
    await connection.connect();
    await eventually(() => heard.length === 3);
    expect(heard).toEqual([1, 2, 3]);
  });

  it.each([
    ["another protocol", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
    ["an answer of no bytes", Buffer.alloc(4)],
    ["an answer of fewer than none", Buffer.from([0xff, 0xff, 0xff, 0xf0])],
  ])("is closed over %s, and the process goes on", async (_, bytes) => {
    talk = (socket) => socket.write(bytes);
    await connection.connect();
    await eventually(() => !connection.isConnected());
    expect(heard).toEqual([]);
  });
});
