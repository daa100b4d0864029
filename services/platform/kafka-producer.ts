import { Fault } from "../../schemas/faults.ts";
import type { KafkaEndpoint, KafkaRecord, ProducerPort, RecordFailure, SendResult } from "./kafka.ts";
import { askMetadata, toTopicFault } from "./kafka-metadata.ts";
import type { Leaders } from "./kafka-metadata.ts";
import { partitionOf } from "./kafka-partitioner.ts";
import type { BatchIdentity } from "./kafka-record-batch.ts";
import { prepareRecordBatch, recordBytes } from "./kafka-record-batch.ts";
import { openBroker, openSeed } from "./kafka-seed.ts";
import { errorName, messageOf } from "./kafka-wire.ts";
import type { Wire } from "./kafka-wire.ts";
import type { Log } from "./log.ts";

export interface ProducerOptions extends KafkaEndpoint {
  readonly log: Log;
  readonly connectTimeoutMs?: number;
  /** We give up on an answer after this long, and on the producer with it. */
  readonly requestTimeoutMs?: number;
  /** Bytes of one partition's batch; below the broker's `message.max.bytes` (1 MiB by default). */
  readonly batchBytes?: number;
  /** Where a broker is reached that calls itself by this address: for tunnels and port forwards. */
  readonly routes?: (named: BrokerAddress) => BrokerAddress;
}
interface BrokerAddress {
  readonly host: string;
  readonly port: number;
}

/** Longer than a broker's worst pause, and shorter than the time that a stopping process is given. */
const standardRequestTimeoutMs = 15_000;
/** How long a topic's partitions and leaders are believed; errors renew them at once. */
const metadataMaxAgeMs = 60_000;

/**
 * Connects an idempotent producer (acks of all in-sync replicas, no compression, murmur2 on the key). Throws
 * BROKER_UNAVAILABLE when no broker answers, CONFIG_INVALID when one does whose protocol is not ours.
 */
export async function createKafkaProducer(options: ProducerOptions): Promise<ProducerPort> {
  const seed = await openSeed({
    ...options,
    requestTimeoutMs: options.requestTimeoutMs ?? standardRequestTimeoutMs,
  });
  try {
    return new KafkaProducer(options, seed, await initProducerId(seed));
  } catch (error) {
    await seed.close();
    throw error;
  }
}

/** Records of one send that go to one partition, in order, cut into batches. */
interface Lot {
  readonly topic: string;
  readonly partition: number;
  readonly leader: number;
  readonly batches: number[][];
  lastBytes: number;
}

class KafkaProducer implements ProducerPort {
  readonly #options: ProducerOptions;
  readonly #seed: Wire;
  readonly #identity: Pick<BatchIdentity, "producerId" | "producerEpoch">;
  readonly #batchBytes: number;
  readonly #wires = new Map<number, Wire>();
  readonly #topics = new Map<string, { readonly leaders: Leaders; readonly askedAtMs: number }>();
  readonly #nextSequence = new Map<string, number>();
  /** Why topics of the current send have no leaders. */
  readonly #missing = new Map<string, Fault>();
  #nodes: ReadonlyMap<number, { readonly host: string; readonly port: number }> = new Map();
  #spent = false;
  #sending = false;

  constructor(
    options: ProducerOptions,
    seed: Wire,
    identity: Pick<BatchIdentity, "producerId" | "producerEpoch">,
  ) {
    this.#options = options;
    this.#seed = seed;
    this.#identity = identity;
    this.#batchBytes = options.batchBytes ?? 900_000;
  }

  get spent(): boolean {
    return this.#spent;
  }

  async send(records: readonly KafkaRecord[]): Promise<SendResult> {
    if (this.#spent) throw new Fault("BROKER_UNAVAILABLE", "a send failed earlier; take a new producer");
    // INVARIANT: one request per partition in flight: a second one would carry a sequence number that only holds when
    // the first is written (test/contract/producer.test.ts "refuses a second send while one is under way").
    if (this.#sending) throw new Fault("INTERNAL", "one send at a time per producer");
    this.#sending = true;
    const failures: RecordFailure[] = [];
    try {
      await this.#learn(records);
      const lots = this.#sort(records, failures);
      for (let round = 0; ; round += 1) {
        const due = lots.filter((lot) => round < lot.batches.length);
        if (due.length === 0) break;
        await this.#sendRound(records, due, round, failures);
      }
    } catch (error) {
      this.#spent = true;
      throw toBrokerFault(error);
    } finally {
      this.#sending = false;
    }
    return { failures };
  }

  async close(): Promise<void> {
    this.#spent = true;
    await Promise.all([this.#seed, ...this.#wires.values()].map((wire) => wire.close()));
  }

  /** Asks for topics that are new or old in memory. */
  async #learn(records: readonly KafkaRecord[]): Promise<void> {
    const nowMs = performance.now();
    const unknown = new Set<string>();
    let previous: string | undefined;
    for (const { topic } of records) {
      if (topic === previous) continue;
      previous = topic;
      const known = this.#topics.get(topic);
      if (known === undefined || nowMs - known.askedAtMs > metadataMaxAgeMs) unknown.add(topic);
    }
    if (unknown.size === 0) return;
    const view = await askMetadata(this.#seed, [...unknown]);
    this.#nodes = view.nodes;
    for (const topic of unknown) {
      const leaders = view.topics.get(topic);
      if (leaders === undefined || leaders instanceof Fault) {
        this.#topics.delete(topic);
        this.#missing.set(topic, leaders ?? toTopicFault(topic, "UNKNOWN_TOPIC_OR_PARTITION"));
      } else {
        this.#topics.set(topic, { leaders, askedAtMs: nowMs });
      }
    }
  }

  /** Puts each record into its partition's lot; those without a topic or a leader fail here, unsent. */
  #sort(records: readonly KafkaRecord[], failures: RecordFailure[]): Lot[] {
    const leaderless = new Set<string>();
    const lotsOf = new Map<string, (Lot | undefined)[]>();
    const lots: Lot[] = [];
    records.forEach((record, index) => {
      const { topic } = record;
      const leaders = this.#topics.get(topic)?.leaders;
      if (leaders === undefined) {
        const fault = this.#missing.get(topic) ?? toTopicFault(topic, "UNKNOWN_TOPIC_OR_PARTITION");
        // A name that Kafka does not allow concerns each of its records on its own.
        failures.push({ index, fault, alone: fault.kind === "poison" });
        return;
      }
      const partition = partitionOf(record.key, leaders.length);
      const leader = leaders[partition] ?? null;
      if (leader === null) {
        leaderless.add(topic);
        failures.push({ index, fault: toTopicFault(topic, "LEADER_NOT_AVAILABLE"), alone: false });
        return;
      }
      let ofTopic = lotsOf.get(topic);
      if (ofTopic === undefined) lotsOf.set(topic, (ofTopic = []));
      let lot = ofTopic[partition];
      if (lot === undefined) {
        lot = { topic, partition, leader, batches: [], lastBytes: 0 };
        ofTopic[partition] = lot;
        lots.push(lot);
      }
      const bytes = recordBytes(record);
      const last = lot.batches.at(-1);
      if (last === undefined || lot.lastBytes + bytes > this.#batchBytes) {
        lot.batches.push([index]);
        lot.lastBytes = bytes;
      } else {
        last.push(index);
        lot.lastBytes += bytes;
      }
    });
    this.#missing.clear();
    // The next send asks again.
    for (const topic of leaderless) this.#topics.delete(topic);
    return lots;
  }

  /** Sends batch number `round` of each lot, one request per leader; a lot that fails is cut off there. */
  async #sendRound(
    records: readonly KafkaRecord[],
    due: readonly Lot[],
    round: number,
    failures: RecordFailure[],
  ): Promise<void> {
    const byLeader = groupBy(due, (lot) => lot.leader);
    await Promise.all(
      [...byLeader].map(async ([leader, lots]) => {
        let codes: ReadonlyMap<string, number>;
        try {
          codes = await this.#produce(await this.#wireTo(leader), records, lots, round);
        } catch (error) {
          for (const lot of lots) this.#cutOff(lot, round, toBrokerFault(error), failures);
          return;
        }
        for (const lot of lots) {
          const name = lotName(lot.topic, lot.partition);
          const code = codes.get(name);
          const count = lot.batches[round]?.length ?? 0;
          if (code === 0)
            this.#nextSequence.set(name, ((this.#nextSequence.get(name) ?? 0) + count) % 2 ** 31);
          else {
            const fault = toTopicFault(lot.topic, code === undefined ? "no result" : errorName(code));
            this.#cutOff(lot, round, fault, failures);
          }
        }
      }),
    );
  }

  #cutOff(lot: Lot, round: number, fault: Fault, failures: RecordFailure[]): void {
    // INVARIANT: after a failed request nothing more is sent under this producer id: the broker may hold the batch, and
    // would take the next one for a repeat of it (test/contract/producer.test.ts "loses nothing when an ack is lost").
    this.#spent = true;
    const refused = lot.batches[round] ?? [];
    for (const index of refused) failures.push({ index, fault, alone: refused.length === 1 });
    const unsent = new Fault("BROKER_UNAVAILABLE", `not sent: an earlier record of \`${lot.topic}\` failed`);
    for (const batch of lot.batches.splice(round).slice(1)) {
      for (const index of batch) failures.push({ index, fault: unsent, alone: false });
    }
  }

  async #wireTo(leader: number): Promise<Wire> {
    const known = this.#wires.get(leader);
    if (known !== undefined) return known;
    const node = this.#nodes.get(leader);
    if (node === undefined)
      throw new Fault("BROKER_UNAVAILABLE", `leader ${leader} is not among the brokers`);
    const { host, port } = this.#options.routes?.(node) ?? node;
    const wire = await openBroker(
      { ...this.#options, requestTimeoutMs: this.#options.requestTimeoutMs ?? standardRequestTimeoutMs },
      host,
      port,
    );
    this.#wires.set(leader, wire);
    return wire;
  }

  async #produce(
    wire: Wire,
    records: readonly KafkaRecord[],
    lots: readonly Lot[],
    round: number,
  ): Promise<ReadonlyMap<string, number>> {
    const requestTimeoutMs = this.#options.requestTimeoutMs ?? standardRequestTimeoutMs;
    const prepared = wire.prepare("Produce", { acks: -1, timeout: requestTimeoutMs, topicData: [] });
    const raw = await wire.sendRaw("Produce", (headerBytes) =>
      this.#encode(records, lots, round, requestTimeoutMs, headerBytes),
    );
    // Decoded, not parsed: kafkajs throws the first error and does not say of which partition it is.
    const answer = (await prepared.response.decode(raw)) as ProduceAnswer;
    return new Map(
      answer.topics.flatMap(({ topicName, partitions }) =>
        partitions.map(({ partition, errorCode }) => [lotName(topicName, partition), errorCode] as const),
      ),
    );
  }

  /** A Produce request, version 3 to 7, with room before it for the request header. */
  #encode(
    records: readonly KafkaRecord[],
    lots: readonly Lot[],
    round: number,
    timeoutMs: number,
    headerBytes: number,
  ): Buffer {
    const byTopic = [...groupBy(lots, (lot) => lot.topic)].map(([topic, ofTopic]) => ({
      name: Buffer.from(topic),
      batches: ofTopic.map((lot) => ({
        partition: lot.partition,
        batch: prepareRecordBatch(
          (lot.batches[round] ?? []).map((index) => recordAt(records, index)),
          { ...this.#identity, baseSequence: this.#nextSequence.get(lotName(topic, lot.partition)) ?? 0 },
        ),
      })),
    }));
    let bytes = headerBytes + 2 + 2 + 4 + 4;
    for (const { name, batches } of byTopic) {
      bytes += 2 + name.length + 4;
      for (const { batch } of batches) bytes += 4 + 4 + batch.bytes;
    }
    const buffer = Buffer.allocUnsafe(bytes);
    let offset = buffer.writeInt16BE(-1, headerBytes);
    offset = buffer.writeInt16BE(-1, offset);
    offset = buffer.writeInt32BE(timeoutMs, offset);
    offset = buffer.writeInt32BE(byTopic.length, offset);
    for (const { name, batches } of byTopic) {
      offset = buffer.writeInt16BE(name.length, offset);
      offset += name.copy(buffer, offset);
      offset = buffer.writeInt32BE(batches.length, offset);
      for (const { partition, batch } of batches) {
        offset = buffer.writeInt32BE(partition, offset);
        offset = buffer.writeInt32BE(batch.bytes, offset);
        batch.write(buffer, offset);
        offset += batch.bytes;
      }
    }
    return buffer;
  }
}

interface ProduceAnswer {
  readonly topics: readonly {
    readonly topicName: string;
    readonly partitions: readonly { readonly partition: number; readonly errorCode: number }[];
  }[];
}

async function initProducerId(wire: Wire): Promise<Pick<BatchIdentity, "producerId" | "producerEpoch">> {
  try {
    const answer = (await wire.send({
      ...wire.prepare("InitProducerId", { transactionTimeout: 60_000 }),
      logResponseError: false,
    })) as { producerId: string; producerEpoch: number };
    return { producerId: BigInt(answer.producerId), producerEpoch: answer.producerEpoch };
  } catch (error) {
    throw toBrokerFault(error);
  }
}

function toBrokerFault(error: unknown): Fault {
  return error instanceof Fault ? error : new Fault("BROKER_UNAVAILABLE", messageOf(error), { cause: error });
}

function lotName(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}

/** Map.groupBy came with Node 21. */
function groupBy<K, V>(values: readonly V[], keyOf: (value: V) => K): Map<K, V[]> {
  const groups = new Map<K, V[]>();
  for (const value of values) {
    const group = groups.get(keyOf(value));
    if (group === undefined) groups.set(keyOf(value), [value]);
    else group.push(value);
  }
  return groups;
}

function recordAt(records: readonly KafkaRecord[], index: number): KafkaRecord {
  const record = records[index];
  if (record === undefined) throw new Fault("INTERNAL", `no record ${index}`);
  return record;
}
