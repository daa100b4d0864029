import { randomUUID } from "node:crypto";
import { Kafka, logLevel } from "kafkajs";
import type { Admin } from "kafkajs";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { createKafkaProducer } from "../../services/platform/kafka-producer.ts";
import type { ProducerOptions } from "../../services/platform/kafka-producer.ts";
import type { KafkaRecord, ProducerPort } from "../../services/platform/kafka.ts";
import { agree } from "../../services/platform/kafka-wire.ts";
import { createLog } from "../../services/platform/log.ts";
import { eventually } from "../harness/eventually.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";
import type { TcpProxy } from "../harness/tcp-proxy.ts";
import { readTopic } from "../harness/topic-reader.ts";
import { createTopics } from "../harness/topics.ts";

const log = createLog({ service: "test", level: "silent" });
const prefix = `producer-${randomUUID().slice(0, 8)}.`;
const plain = `${prefix}plain`;
const narrow = `${prefix}narrow`;
const clients: Record<string, (options: ProducerOptions) => Promise<ProducerPort>> = {
  kafkajs: createKafkaProducer,
};

let kafka: Kafka;
let admin: Admin;
const open: (ProducerPort | TcpProxy)[] = [];

beforeAll(async () => {
  kafka = new Kafka({
    brokers: [...inject("stack").kafkaBrokers],
    clientId: "test",
    logLevel: logLevel.NOTHING,
  });
  admin = kafka.admin();
  await admin.connect();
  await createTopics(admin, [
    { topic: plain, numPartitions: 3 },
    { topic: narrow, numPartitions: 3, configEntries: [{ name: "max.message.bytes", value: "2000" }] },
  ]);
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});
afterAll(async () => {
  await admin.deleteTopics({ topics: [plain, narrow] });
  await admin.disconnect();
});

function record(key: string, text: string, topic = plain): KafkaRecord {
  return { topic, key, value: Buffer.from(text), headers: { ce_id: text }, timestampMs: 1_764_000_000_000 };
}

/** Answers of a broker may come in pieces; the api key of a request is in its bytes 4 and 5. */
function isProduce(chunk: Buffer): boolean {
  return chunk.length > 8 && chunk.readInt16BE(4) === 0;
}

describe.each(Object.entries(clients))("producer contract: %s", (_name, create) => {
  async function producerOn(options: Partial<ProducerOptions> = {}): Promise<ProducerPort> {
    // A broker that has just started does not give out producer ids at once.
    const producer = await eventually(() =>
      create({
        brokers: inject("stack").kafkaBrokers,
        clientId: "test",
        log,
        ...options,
      }),
    );
    open.push(producer);
    return producer;
  }
  async function proxied(): Promise<TcpProxy> {
    const [host, port] = (inject("stack").kafkaBrokers[0] ?? "").split(":");
    const proxy = await startTcpProxy({ host: host ?? "", port: Number(port) });
    open.push(proxy);
    return proxy;
  }

  it("writes key, value, headers and time as they are, in order per key", async () => {
    const producer = await producerOn();
    const texts = Array.from({ length: 500 }, (_, i) => `a-${i}`);
    const tenant = randomUUID();
    const sent = texts.map((text, i) => record(`${tenant}/k${i % 7}`, text));
    sent[3] = {
      ...record(`${tenant}/k3`, "a-3"),
      headers: { ce_id: "a-3", "content-type": "application/avro", name: "Zoë ☃" },
    };
    expect(await producer.send(sent)).toEqual({ failures: [] });

    const read = (await readTopic(kafka, admin, plain)).filter((one) => one.key.startsWith(tenant));
    expect(read).toHaveLength(500);
    for (let k = 0; k < 7; k += 1) {
      const ofKey = read.filter((one) => one.key === `${tenant}/k${k}`);
      expect(ofKey.map((one) => one.value.toString())).toEqual(texts.filter((_, i) => i % 7 === k));
      expect(new Set(ofKey.map((one) => one.partition)).size).toBe(1);
    }
    const third = read.find((one) => one.value.toString() === "a-3");
    expect(third?.headers).toEqual({ ce_id: "a-3", "content-type": "application/avro", name: "Zoë ☃" });
    expect(third?.timestampMs).toBe(1_764_000_000_000);
  });

  it("puts a key where kafkajs and Java put it", async () => {
    const producer = await producerOn();
    const other = kafka.producer({
      createPartitioner: (await import("kafkajs")).Partitioners.DefaultPartitioner,
    });
    await other.connect();
    const keys = Array.from(
      { length: 60 },
      () => randomUUID().slice(0, 1 + Math.floor(Math.random() * 30)) + "ü",
    );
    await producer.send(keys.map((key) => record(key, `ours ${key}`)));
    await other.send({ topic: plain, messages: keys.map((key) => ({ key, value: `theirs ${key}` })) });
    await other.disconnect();
    const read = await readTopic(kafka, admin, plain);
    for (const key of keys) {
      expect(new Set(read.filter((one) => one.key === key).map((one) => one.partition)).size).toBe(1);
    }
  });

  it("says which records a missing topic concerns, writes the others and stays usable", async () => {
    const producer = await producerOn();
    const key = randomUUID();
    const { failures } = await producer.send([record(key, "x", `${prefix}missing`), record(key, "stays")]);
    expect(failures.map(({ index, fault }) => [index, fault.code])).toEqual([[0, "TOPIC_MISSING"]]);
    expect(producer.spent).toBe(false);
    expect(await producer.send([record(key, "goes on")])).toEqual({ failures: [] });
  });

  it("fails a batch that is too large without the partitions beside it, and tells whether a record stood alone", async () => {
    const producer = await producerOn();
    const big = "b".repeat(3000);
    const keys = await keysOnThreePartitions();
    const { failures } = await producer.send([
      record(keys[0], "good neighbour", narrow),
      record(keys[0], big, narrow),
      record(keys[1], "elsewhere", narrow),
      record(keys[2], big, narrow),
    ]);
    expect(failures.map(({ index, fault, alone }) => [index, fault.code, alone]).sort()).toEqual([
      [0, "RECORD_TOO_LARGE", false],
      [1, "RECORD_TOO_LARGE", false],
      [3, "RECORD_TOO_LARGE", true],
    ]);
    expect(producer.spent).toBe(true);
    await expect(producer.send([record("k", "v")])).rejects.toMatchObject({ code: "BROKER_UNAVAILABLE" });
  });

  it("sends nothing of a partition after a batch of it that failed", async () => {
    const producer = await producerOn({ batchBytes: 1500 });
    const key = randomUUID();
    const texts = ["first", "x".repeat(3000), "after"].map((text) => text.padEnd(800));
    const { failures } = await producer.send(texts.map((text) => record(key, text, narrow)));
    expect(failures.map(({ index, alone }) => [index, alone])).toEqual([
      [1, true],
      [2, false],
    ]);
    const read = (await readTopic(kafka, admin, narrow)).filter((one) => one.key === key);
    expect(read.map((one) => one.value.toString().trim())).toEqual(["first"]);
  });

  it("refuses a second send while one is under way", async () => {
    const producer = await producerOn();
    const first = producer.send([record("k", "one at a time")]);
    await expect(producer.send([record("k", "too early")])).rejects.toMatchObject({ code: "INTERNAL" });
    expect(await first).toEqual({ failures: [] });
  });

  // tulios/kafkajs: the sequence is rolled back after any error, so that the next batch looks like a repeat of one that
  // was written, and is acknowledged without being written.
  it("loses nothing when an ack is lost", async () => {
    const proxy = await proxied();
    const key = randomUUID();
    // The broker's answer to metadata would lead past the proxy: the one address that it names is put in its place.
    const options = { ...viaProxy(proxy), requestTimeoutMs: 400 };
    let producer = await producerOn(options);
    const acked: string[] = [];
    const pending = Array.from({ length: 60 }, (_, i) => `m${i}`);
    let swallowed = 0;
    for (let round = 0; pending.length > 0; round += 1) {
      const batch = pending.slice(0, 5);
      if (round % 4 === 2) {
        let produced = false;
        proxy.onChunk = (direction, chunk) => {
          if (direction === "toServer") produced ||= isProduce(chunk);
          const eaten = direction === "toClient" && produced;
          if (eaten) swallowed += 1;
          return !eaten;
        };
      }
      const result = await producer.send(batch.map((text) => record(key, text)));
      proxy.onChunk = null;
      if (result.failures.length === 0) acked.push(...pending.splice(0, 5));
      else {
        expect(producer.spent).toBe(true);
        await producer.close();
        producer = await producerOn(options);
        // A caller that gives up on the failed batch and goes on with others is where the loss showed.
        pending.push(...pending.splice(0, 5));
      }
    }
    expect(swallowed).toBeGreaterThan(0);
    const read = (await readTopic(kafka, admin, plain)).filter((one) => one.key === key);
    const written = new Set(read.map((one) => one.value.toString()));
    expect(acked.filter((text) => !written.has(text))).toEqual([]);
  }, 90_000);

  it("fails within its time when the broker is a black hole, and when nobody is there", async () => {
    const proxy = await proxied();
    const producer = await producerOn({ ...viaProxy(proxy), requestTimeoutMs: 300 });
    await producer.send([record("k", "before")]);
    proxy.swallow = "both";
    const { failures } = await producer.send([record("k", "into the hole")]);
    expect(failures.map((one) => one.fault.code)).toEqual(["BROKER_UNAVAILABLE"]);
    await proxy.shut();
    await expect(
      create({ brokers: [`127.0.0.1:${proxy.port}`], clientId: "test", log }),
    ).rejects.toMatchObject({
      code: "BROKER_UNAVAILABLE",
    });
  });

  it("costs nothing while it is idle", async () => {
    const producer = await producerOn();
    await producer.send([record("k", "warm")]);
    const warnings: string[] = [];
    const onWarning = (warning: Error): number => warnings.push(warning.name);
    process.on("warning", onWarning);
    const before = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const used = process.cpuUsage(before);
    process.off("warning", onWarning);
    // A timer that fires every millisecond takes about a tenth of a core.
    expect((used.user + used.system) / 1000).toBeLessThan(100);
    expect(warnings).toEqual([]);
  });
});

describe("protocol versions", () => {
  it("takes the highest version that both sides speak", () => {
    expect(agree("b:1", "Produce", { minVersion: 0, maxVersion: 13 })).toBe(7);
    expect(agree("b:1", "Produce", { minVersion: 0, maxVersion: 5 })).toBe(5);
  });
  it.each([
    ["too old", { minVersion: 0, maxVersion: 2 }],
    ["too new", { minVersion: 8, maxVersion: 13 }],
    ["silent", undefined],
  ])("names both versions when a broker is %s", (_name, offered) => {
    expect(() => agree("broker:9092", "Produce", offered)).toThrow(
      /broker:9092 speaks Produce .*kafkajs 2\.\d.*3 to 7/,
    );
  });
});

/** Keys of three partitions of `narrow`, found by asking where kafkajs' own partitioner puts them. */
async function keysOnThreePartitions(): Promise<[string, string, string]> {
  const { partitionOf } = await import("../../services/platform/kafka-partitioner.ts");
  const found = new Map<number, string>();
  for (let i = 0; found.size < 3; i += 1) {
    const key = `${randomUUID()}-${i}`;
    found.set(partitionOf(key, 3), key);
  }
  return [found.get(0) ?? "", found.get(1) ?? "", found.get(2) ?? ""];
}

function viaProxy(proxy: TcpProxy): Pick<ProducerOptions, "brokers" | "routes"> {
  const address = `127.0.0.1:${proxy.port}`;
  return { brokers: [address], routes: () => ({ host: "127.0.0.1", port: proxy.port }) };
}
