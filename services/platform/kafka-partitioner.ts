/** Kafka's murmur2, as in `org.apache.kafka.common.utils.Utils`; a signed 32-bit number. */
export function murmur2(key: Uint8Array, length = key.length): number {
  const m = 0x5bd1e995;
  let h = 0x9747b28c ^ length;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    let k = key[i]! | (key[i + 1]! << 8) | (key[i + 2]! << 16) | (key[i + 3]! << 24);
    k = Math.imul(k, m);
    k ^= k >>> 24;
    h = Math.imul(h, m) ^ Math.imul(k, m);
  }
  const rest = length - i;
  if (rest === 3) h ^= key[i + 2]! << 16;
  if (rest >= 2) h ^= key[i + 1]! << 8;
  if (rest >= 1) h = Math.imul(h ^ key[i]!, m);
  h ^= h >>> 13;
  h = Math.imul(h, m);
  return h ^ (h >>> 15);
}

/** Keys are hashed in here; a longer one gets a buffer of its own. */
const scratch = Buffer.alloc(4096);

/** Partition of a key: the one that Java's default partitioner, kafkajs and librdkafka's murmur2 choose. */
export function partitionOf(key: string, partitions: number): number {
  // Three bytes of UTF-8 at most for each unit of the string.
  const bytes = key.length * 3 <= scratch.length ? scratch : Buffer.from(key);
  const length = bytes === scratch ? scratch.write(key) : bytes.length;
  return (murmur2(bytes, length) & 0x7fffffff) % partitions;
}
