import { randomUUID } from "node:crypto";
import { Fault } from "../../schemas/faults.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { ConsumerPort } from "../platform/kafka-consumer.ts";
import type { OffsetsPort } from "../platform/kafka-offsets.ts";
import type { SealedHead } from "./verify.ts";

/** Longest wait for the whole topic: a block a second for a quarter is read in a few seconds. */
const readTimeoutMs = 60_000;

export interface SealedHeadsOptions {
  /** Opens a consumer of a throwaway group. */
  readonly openConsumer: (groupId: string) => ConsumerPort;
  readonly offsets: OffsetsPort;
  readonly decoder: { decode(bytes: Buffer): Promise<{ readonly envelope: Envelope }> };
  readonly topicPrefix: string;
}

/**
 * Reads the topic of seals from its beginning to its present end and keeps the last one of each tenant. Throws
 * TOPIC_MISSING or BROKER_UNAVAILABLE when it cannot be read; whoever verifies then says that heads were not checked.
 */
export async function readSealedHeads(options: SealedHeadsOptions): Promise<ReadonlyMap<string, SealedHead>> {
  const topic = `${options.topicPrefix}fabric.audit.sealed`;
  const ends = new Map(
    (await options.offsets.ends(topic)).map((one) => [one.partition, { ...one, next: one.earliest }]),
  );
  const heads = new Map<string, SealedHead>();
  const isDone = (): boolean => [...ends.values()].every((one) => one.next >= one.latest);
  if (isDone()) return heads;
  const consumer = options.openConsumer(`fabric-audit-verify-${randomUUID()}`);
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(
        () => reject(new Fault("BROKER_UNAVAILABLE", `${topic} was not read in ${readTimeoutMs} ms`)),
        readTimeoutMs,
      );
      consumer.start({
        topics: () => Promise.resolve([topic]),
        assigned: (partitions) =>
          Promise.resolve(partitions.map((one) => ({ ...one, offset: ends.get(one.partition)?.next ?? 0n }))),
        async batch(batch, control) {
          try {
            for (const { value } of batch.records) if (value !== null) await keep(value);
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
            return;
          }
          const end = ends.get(batch.partition);
          if (end !== undefined) end.next = batch.lastOffset + 1n;
          await control.commit(batch.lastOffset + 1n);
          if (isDone()) resolve();
        },
      });
    });
  } finally {
    clearTimeout(timer);
    await consumer.stop();
  }
  return heads;

  async function keep(value: Buffer): Promise<void> {
    const { envelope } = await options.decoder.decode(value);
    if (envelope.type !== "fabric.audit.sealed") return;
    const { block_number: blockNumber, block_digest: blockDigest } = envelope.redacted_summary;
    const known = heads.get(envelope.tenant_id);
    if (known === undefined || known.blockNumber < blockNumber) {
      heads.set(envelope.tenant_id, { blockNumber, blockDigest });
    }
  }
}
