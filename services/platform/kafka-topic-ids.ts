import { Fault } from "../../schemas/faults.ts";
import { toTopicFault } from "./kafka-metadata.ts";
import { errorName } from "./kafka-wire.ts";
import type { Wire } from "./kafka-wire.ts";

/** Metadata with topic ids; kafkajs ends at version 6. Versions 10 to 12 differ in fields that are not used here. */
const versionsWithIds = [12, 11, 10] as const;

/**
 * Asks one broker which of the named topics exist, and for Kafka's own id of each: a topic that was deleted and made anew
 * has the same name and another id. Null for a broker before 2.8, which gives none. Throws BROKER_UNAVAILABLE.
 */
export async function askTopicIds(
  wire: Wire,
  topics: readonly string[],
): Promise<ReadonlyMap<string, string> | null> {
  const offered = wire.offered("Metadata");
  const version = versionsWithIds.find(
    (one) => one >= (offered?.minVersion ?? 0) && one <= (offered?.maxVersion ?? 0),
  );
  if (version === undefined) return null;
  const body = encodeRequest(topics, version);
  const raw = await wire.sendRaw(
    "Metadata",
    (headerBytes) => {
      const buffer = Buffer.alloc(headerBytes + body.length);
      body.copy(buffer, headerBytes);
      return buffer;
    },
    { version, isFlexible: true },
  );
  return decodeAnswer(raw, version);
}

/** Topics by name, none to be created, no rights asked for. */
function encodeRequest(topics: readonly string[], version: number): Buffer {
  const parts: Buffer[] = [toVarint(topics.length + 1)];
  for (const topic of topics) {
    const name = Buffer.from(topic);
    parts.push(Buffer.alloc(16), toVarint(name.length + 1), name, Buffer.from([0]));
  }
  // allow_auto_topic_creation, include_cluster_authorized_operations (up to 10), include_topic_authorized_operations.
  parts.push(Buffer.from(version <= 10 ? [0, 0, 0] : [0, 0]), Buffer.from([0]));
  return Buffer.concat(parts);
}

function decodeAnswer(raw: Buffer, version: number): ReadonlyMap<string, string> {
  const read = new FlexibleReader(raw);
  read.tags();
  read.skip(4);
  for (let left = read.count(); left > 0; left -= 1) {
    read.skip(4);
    read.text();
    read.skip(4);
    read.text();
    read.tags();
  }
  read.text();
  read.skip(4);
  const found = new Map<string, string>();
  for (let left = read.count(); left > 0; left -= 1) {
    const code = read.int16();
    const name = read.text();
    const id = read.uuid();
    read.skip(1);
    for (let partitions = read.count(); partitions > 0; partitions -= 1) {
      read.skip(2 + 4 + 4 + 4);
      for (let list = 0; list < 3; list += 1) read.skip(4 * read.count());
      read.tags();
    }
    read.skip(4);
    read.tags();
    if (name === null) continue;
    if (code === 0) found.set(name, id);
    else {
      const fault = toTopicFault(name, errorName(code));
      // A topic that waits for a leader exists; its id comes with the next question.
      if (fault.code !== "TOPIC_MISSING" && fault.code !== "BROKER_REJECTED") throw fault;
    }
  }
  if (version <= 10) read.skip(4);
  return found;
}

/** Kafka's flexible encoding: lengths are varints plus one, and each structure may end in tagged fields. */
class FlexibleReader {
  readonly #raw: Buffer;
  #at = 0;
  constructor(raw: Buffer) {
    this.#raw = raw;
  }

  skip(bytes: number): void {
    this.#at += bytes;
    if (this.#at > this.#raw.length)
      throw new Fault("BROKER_UNAVAILABLE", "the broker's answer about topics ends too early");
  }

  int16(): number {
    this.skip(2);
    return this.#raw.readInt16BE(this.#at - 2);
  }

  uuid(): string {
    this.skip(16);
    const hex = this.#raw.toString("hex", this.#at - 16, this.#at);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }

  varint(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      this.skip(1);
      const byte = this.#raw[this.#at - 1] ?? 0;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
      if (shift > 28) throw new Fault("BROKER_UNAVAILABLE", "the broker's answer about topics is no answer");
    }
  }

  /** Entries of an array; a null array has none. */
  count(): number {
    return Math.max(0, this.varint() - 1);
  }

  text(): string | null {
    const length = this.varint() - 1;
    if (length < 0) return null;
    this.skip(length);
    return this.#raw.toString("utf8", this.#at - length, this.#at);
  }

  tags(): void {
    for (let left = this.varint(); left > 0; left -= 1) {
      this.varint();
      this.skip(this.varint());
    }
  }
}

function toVarint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  while (left >= 0x80) {
    bytes.push((left & 0x7f) | 0x80);
    left = Math.floor(left / 128);
  }
  return Buffer.from([...bytes, left]);
}
