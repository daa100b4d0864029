import type { Envelope } from "../../schemas/envelope.ts";
import type { ConsumerPort } from "../platform/kafka-consumer.ts";
import type { OffsetsPort } from "../platform/kafka-offsets.ts";
import { readToEnd } from "../platform/read-to-end.ts";
import type { SealedHead } from "./verify.ts";

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
  const heads = new Map<string, SealedHead>();
  await readToEnd({
    openConsumer: options.openConsumer,
    offsets: options.offsets,
    topics: [`${options.topicPrefix}fabric.audit.sealed`],
    onRecord: ({ value }) => (value === null ? undefined : keep(value)),
  });
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
