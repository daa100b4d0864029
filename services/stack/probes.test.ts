import { createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { parseMetadata, probeKafka, probePostgres, startupPacket } from "./probes.ts";

const text = (value: string): Buffer => {
  const length = Buffer.alloc(2);
  length.writeInt16BE(value.length);
  return Buffer.concat([length, Buffer.from(value)]);
};
const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const metadata = (clusterId: string, brokers: number): Buffer => {
  const broker = Buffer.concat([int32(1), text("127.0.0.1"), int32(9092), Buffer.from([0xff, 0xff])]);
  const all = Array.from({ length: brokers }, () => broker);
  const body = Buffer.concat([int32(7), int32(brokers), ...all, text(clusterId), int32(1), int32(0)]);
  return Buffer.concat([int32(body.length), body]);
};

let server: Server | undefined;
afterEach(() => {
  server?.close();
  server = undefined;
});

/** A server that answers the first bytes it gets with the pieces, one packet each. */
const answering = (...pieces: Buffer[]): Promise<number> =>
  new Promise((resolve) => {
    const listening = createServer((socket) => {
      socket.once("data", () => {
        for (const piece of pieces) socket.write(piece);
      });
      socket.on("error", () => undefined);
    });
    server = listening;
    listening.listen(0, "127.0.0.1", () => {
      resolve((listening.address() as AddressInfo).port);
    });
  });

describe("the probes", () => {
  it("read brokers and cluster of a metadata answer", () => {
    expect(parseMetadata(metadata("abc", 2))).toEqual({ brokerPorts: [9092, 9092], clusterId: "abc" });
  });

  it("take an answer that comes in pieces", async () => {
    const answer = metadata("abc", 1);
    expect(
      await probeKafka("127.0.0.1", await answering(answer.subarray(0, 3), answer.subarray(3)), "abc"),
    ).toBe(true);
  });

  it("do not take another cluster's broker for ours", async () => {
    expect(await probeKafka("127.0.0.1", await answering(metadata("theirs", 1)), "ours")).toBe(false);
  });

  it("do not call a broker ready that is not registered yet", async () => {
    expect(await probeKafka("127.0.0.1", await answering(metadata("abc", 0)), "abc")).toBe(false);
  });

  it("call PostgreSQL ready when it asks for a password, and not while it recovers", async () => {
    expect(await probePostgres("127.0.0.1", await answering(Buffer.from("R\0\0\0\x17")))).toBe(true);
    server?.close();
    expect(await probePostgres("127.0.0.1", await answering(Buffer.from("E\0\0\0\x17SFATAL\0C57P03")))).toBe(
      false,
    );
  });

  it("send a startup packet whose length is its own", () => {
    const packet = startupPacket("fabric", "postgres");
    expect(packet.readInt32BE(0)).toBe(packet.length);
  });

  it("do not call a port ready on which nobody listens", async () => {
    const port = await answering();
    await new Promise((resolve) => server?.close(resolve));
    expect(await probeKafka("127.0.0.1", port)).toBe(false);
  });
});
