import type { Config } from "../platform/config.ts";
import { toTopicName } from "../platform/kafka-admin.ts";
import { createKafkaConsumer } from "../platform/kafka-consumer.ts";
import type { LogRecord } from "../platform/kafka-consumer.ts";
import { createKafkaOffsets } from "../platform/kafka-offsets.ts";
import { createLog } from "../platform/log.ts";
import { readToEnd } from "../platform/read-to-end.ts";
import { kafkaEndpoint } from "./wiring.ts";

/** A record as it stands on a topic. */
export interface TopicRecord {
  readonly eventId: string;
  readonly type: string;
  readonly tenantId: string;
  readonly key: string;
  readonly value: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Every record of the topics up to their present ends; with `wanted`, those event ids alone. */
export async function readTopicRecords(
  config: Config,
  types: readonly string[],
  wanted?: ReadonlySet<string>,
): Promise<TopicRecord[]> {
  const endpoint = kafkaEndpoint(config, "fabric-reader");
  const log = createLog({ service: "reader", level: "error" });
  const offsets = createKafkaOffsets({ endpoint, log });
  const typeOf = new Map(types.map((type) => [toTopicName(config.kafka.topicPrefix, type), type]));
  const found: TopicRecord[] = [];
  try {
    await readToEnd({
      openConsumer: (groupId) => createKafkaConsumer({ endpoint, groupId, log, maxWaitMs: 100 }),
      offsets,
      topics: [...typeOf.keys()],
      onRecord(record, { topic }) {
        const one = toTopicRecord(typeOf.get(topic) ?? topic, record);
        if (wanted === undefined || wanted.has(one.eventId)) found.push(one);
      },
    });
  } finally {
    await offsets.close();
  }
  return found;
}

function toTopicRecord(type: string, record: LogRecord): TopicRecord {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(record.headers)) {
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) headers[name] = first.toString();
  }
  const key = record.key?.toString("utf8") ?? "";
  return {
    eventId: headers["ce_id"] ?? "",
    type,
    tenantId: key.split("/")[0] ?? "",
    key,
    value: record.value ?? Buffer.alloc(0),
    headers,
  };
}
