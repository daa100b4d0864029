import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import type { ProducerOptions } from "../../services/platform/kafka-producer.ts";
import { eventually } from "../harness/eventually.ts";
import { firstOccurrences, openRelayRig, toRow } from "../harness/relay-rig.ts";
import type { RelayRig } from "../harness/relay-rig.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";
import type { TcpProxy } from "../harness/tcp-proxy.ts";

let rig: RelayRig;
let proxy: TcpProxy;
beforeEach(async () => {
  rig = await openRelayRig();
  await rig.createTopic("a");
  const [host, port] = (inject("stack").kafkaBrokers[0] ?? "").split(":");
  proxy = await startTcpProxy({ host: host ?? "", port: Number(port) });
});
afterEach(async () => {
  await rig.close();
  await proxy.close();
});

const throughProxy = (): Partial<ProducerOptions> => ({
  brokers: [`127.0.0.1:${proxy.port}`],
  routes: () => ({ host: "127.0.0.1", port: proxy.port }),
  requestTimeoutMs: 400,
});
const rowsFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, i) => toRow("a", `k${(first + i) % 5}`, String(first + i)));

/** Each key's first occurrences are all of `count`, in order. */
async function expectAll(count: number): Promise<number> {
  const read = await rig.read("a");
  for (let k = 0; k < 5; k += 1) {
    const expected = Array.from({ length: count }, (_, i) => i).filter((i) => i % 5 === k);
    const seen = read.filter((one) => one.key === `k${k}`).map((one) => one.value.toString());
    expect(firstOccurrences(seen)).toEqual(expected.map(String));
  }
  return read.length;
}

describe("relay and a broker in trouble", () => {
  it("publishes everything, in order, when the broker was away at the start and again in the middle", async () => {
    await proxy.shut();
    const { relay } = rig.startRelay({
      producerFactory: rig.producerFactory(throughProxy()),
      batchRows: 20,
      longestBackoffMs: 300,
    });
    await rig.append(rowsFrom(0, 100));
    await eventually(() => relay.health().fault?.code === "BROKER_UNAVAILABLE");
    expect(await rig.waiting()).toBe(100);
    await proxy.open();
    await rig.drained();
    for (let round = 0; round < 3; round += 1) {
      await rig.append(rowsFrom(100 + round * 100, 100));
      await proxy.shut();
      await eventually(() => relay.health().fault !== null || proxy.accepted > 0);
      await proxy.open();
      await rig.drained();
    }
    await expectAll(400);
    expect(relay.health().fault).toBeNull();
  });

  // confluentinc/librdkafka#1958: what timed out was written all the same.
  it("repeats under the same id, and loses and reorders nothing, when acks are lost", async () => {
    await rig.append(rowsFrom(0, 1_500));
    let sends = 0;
    rig.startRelay({
      producerFactory: rig.producerFactory(throughProxy()),
      batchRows: 50,
      longestBackoffMs: 50,
      steps: (steps) => ({
        ...steps,
        send: async (events) => {
          sends += 1;
          let produced = false;
          if (sends % 6 === 0) {
            proxy.onChunk = (direction, chunk) => {
              // Api key 0 in bytes 4 and 5: a Produce request.
              if (direction === "toServer") produced ||= chunk.length > 8 && chunk.readInt16BE(4) === 0;
              return direction === "toServer" || !produced;
            };
          }
          try {
            return await steps.send(events);
          } finally {
            proxy.onChunk = null;
          }
        },
      }),
    });
    await rig.drained(60_000);
    const total = await expectAll(1_500);
    expect(total).toBeGreaterThan(1_500);
    const read = await rig.read("a");
    expect(new Set(read.map((one) => one.headers["ce_id"])).size).toBe(1_500);
  });

  it("goes on after connections were reset again and again, and over a slow link", async () => {
    proxy.latencyMs = 5;
    rig.startRelay({
      producerFactory: rig.producerFactory(throughProxy()),
      batchRows: 25,
      longestBackoffMs: 50,
    });
    for (let round = 0; round < 10; round += 1) {
      await rig.append(rowsFrom(round * 60, 60));
      await eventually(async () => (await rig.waiting()) < 60);
      proxy.reset();
    }
    await rig.drained(60_000);
    await expectAll(600);
  });

  it("stops in time while the broker is a black hole, and leaves the rows where they are", async () => {
    const running = rig.startRelay({ producerFactory: rig.producerFactory(throughProxy()) });
    await rig.append(rowsFrom(0, 5));
    await rig.drained();
    proxy.swallow = "both";
    await rig.append(rowsFrom(5, 5));
    await eventually(() => running.relay.health().fault !== null);
    const startedAtMs = performance.now();
    await running.stop();
    expect(performance.now() - startedAtMs).toBeLessThan(30_000);
    expect(await rig.waiting()).toBe(5);
    proxy.swallow = "none";
    rig.startRelay();
    await rig.drained();
    await expectAll(10);
  });
});
