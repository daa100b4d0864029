import { randomUUID } from "node:crypto";
import type { EventType } from "../../schemas/catalog.ts";
import { eventTypes, isEventType } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Common } from "../cli/actions.ts";
import type { Report } from "../cli/report.ts";
import { EventCodec } from "../platform/avro.ts";
import type { Config } from "../platform/config.ts";
import { toTopicName } from "../platform/kafka-admin.ts";
import { createKafkaConsumer } from "../platform/kafka-consumer.ts";
import { createKafkaOffsets } from "../platform/kafka-offsets.ts";
import { createLog } from "../platform/log.ts";
import { kafkaEndpoint, registryOf } from "./wiring.ts";

export interface TailOptions {
  readonly types: readonly string[];
  readonly fromBeginning: boolean;
  readonly limit: number | undefined;
}

/** Follows topics with a group of its own that commits nothing; ends at the limit or with the signal. */
export async function tail(config: Config, common: Common, options: TailOptions): Promise<Report> {
  const types = toTypes(options.types);
  const endpoint = kafkaEndpoint(config, "fabric-tail");
  const log = createLog({ service: "tail", level: "fatal" });
  const offsets = createKafkaOffsets({ endpoint, log });
  const registry = registryOf(config);
  const codec = new EventCodec({ source: registry });
  const consumer = createKafkaConsumer({
    endpoint,
    groupId: `fabric-tail-${randomUUID()}`,
    log,
    maxWaitMs: 100,
  });
  const wanted = types.map((type) => toTopicName(config.kafka.topicPrefix, type));
  let count = 0;
  try {
    // Nobody there is an answer, not something to wait for.
    await offsets.existing(wanted);
    await new Promise<void>((resolve) => {
      const end = (): void => resolve();
      common.signal.addEventListener("abort", end, { once: true });
      if (common.signal.aborted) end();
      consumer.start({
        topics: async () => {
          const existing = await offsets.existing(wanted);
          return wanted.filter((topic) => existing.has(topic));
        },
        assigned: async (partitions) => {
          const ends = new Map<string, bigint>();
          for (const topic of new Set(partitions.map((one) => one.topic))) {
            for (const { partition, earliest, latest } of await offsets.ends(topic)) {
              ends.set(`${topic}/${String(partition)}`, options.fromBeginning ? earliest : latest);
            }
          }
          return partitions.map((one) => ({
            ...one,
            offset: ends.get(`${one.topic}/${String(one.partition)}`) ?? 0n,
          }));
        },
        batch: async (batch, control) => {
          for (const record of batch.records) {
            if (options.limit !== undefined && count >= options.limit) break;
            if (record.value === null) continue;
            await codec.decode(record.value).then(
              ({ envelope }) => common.screen.record(envelope, toLine(envelope)),
              (error: unknown) => {
                const place = `${batch.topic}/${String(batch.partition)} @${String(record.offset)}`;
                const why = error instanceof Error ? error.message : String(error);
                common.screen.record({ unreadable: place, error: why }, `${place}: ${why}`);
              },
            );
            count += 1;
          }
          if (options.limit !== undefined && count >= options.limit) resolve();
          await control.heartbeat();
          // Nothing is committed: the position of a tail ends with it.
          consumer.resume(batch, batch.lastOffset + 1n);
        },
      });
    });
  } finally {
    await consumer.stop();
    await offsets.close();
    registry.close();
  }
  return { text: "" };
}

function toTypes(names: readonly string[]): readonly EventType[] {
  if (names.length === 0) return eventTypes;
  return names.map((name) => {
    if (!isEventType(name)) {
      throw new Fault("USAGE", `\`${name}\` is no event type; \`fabric schema list\` shows them`);
    }
    return name;
  });
}

/** One event on one line: when, what, about what, decided how. */
export function toLine(event: Envelope): string {
  return [
    new Date(event.recorded_at).toISOString(),
    event.type.padEnd(28),
    toSubjectText(event),
    `${event.tenant_id}/${event.correlation_id.slice(-12)}`,
  ]
    .filter((part) => part !== "")
    .join("  ");
}

/** What an event is about, for one line: decision and reason, tool, session. */
export function toSubjectText(event: Pick<Envelope, "policy" | "subject" | "execution">): string {
  return [
    event.policy?.decision ?? "",
    event.policy?.reason_code ?? "",
    event.subject?.tool ?? "",
    event.execution.tool_call_id ?? event.execution.session_id ?? "",
  ]
    .filter((part) => part !== "")
    .join(" ");
}
