/** Kafka's murmur2, as in `org.apache.kafka.common.utils.Utils`; a signed 32-bit number. */
export function murmur2(key: Uint8Array): number {
  const m = 0x5bd1e995;
  let h = 0x9747b28c ^ key.length;
  let i = 0;
  for (; i + 4 <= key.length; i += 4) {
    let k = key[i]! | (key[i + 1]! << 8) | (key[i + 2]! << 16) | (key[i + 3]! << 24);
    k = Math.imul(k, m);
    k ^= k >>> 24;
    h = Math.imul(h, m) ^ Math.imul(k, m);
  }
  const rest = key.length - i;
  if (rest === 3) h ^= key[i + 2]! << 16;
  if (rest >= 2) h ^= key[i + 1]! << 8;
  if (rest >= 1) h = Math.imul(h ^ key[i]!, m);
  h ^= h >>> 13;
  h = Math.imul(h, m);
  return h ^ (h >>> 15);
}

/** Partition of a key: the one that Java's default partitioner, kafkajs and librdkafka's murmur2 choose. */
export function partitionOf(key: Uint8Array, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions;
}
