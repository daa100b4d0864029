import { own, semantic } from "./conventions.ts";
import { toSpanId } from "./ids.ts";
import type { Delivered, StoredTrace, TraceSpan } from "./tree.ts";

/** Consumer group of the processor that took the event's times. */
const group = "trace";

/**
 * Two spans below the event's own: `send`, from the commit to the record's timestamp (the wait in the outbox), and
 * `process`, from there to the projection (broker, queue and batch). One of each per message, in the message's own trace,
 * so that a batch of many traces loses no parent. The producing span of the message is the parent of its `process`, and
 * those of other messages of the batch are links; the size of the batch is an attribute.
 */
export function toDeliverySpans(
  { tenantId, correlationId }: Pick<StoredTrace, "tenantId" | "correlationId">,
  one: Delivered,
  starts: ReadonlyMap<string, number>,
): readonly TraceSpan[] {
  const floorMs = starts.get(one.spanId);
  if (floorMs === undefined) return [];
  const sendId = toSendId({ tenantId, correlationId }, one.eventId);
  const processId = toSpanId(tenantId, correlationId, JSON.stringify(["process", one.eventId]));
  const recordedAt = Math.max(one.recordedAt, floorMs);
  const publishedAt = Math.max(one.publishedAt ?? recordedAt, recordedAt);
  const sendSkewMs = publishedAt - (one.publishedAt ?? publishedAt) + recordedAt - one.recordedAt;
  const shared = {
    [semantic.ATTR_MESSAGING_SYSTEM]: semantic.MESSAGING_SYSTEM_VALUE_KAFKA,
    [semantic.ATTR_MESSAGING_DESTINATION_NAME]: one.destination,
    [semantic.ATTR_MESSAGING_DESTINATION_PARTITION_ID]: String(one.partition),
    [semantic.ATTR_MESSAGING_MESSAGE_ID]: `evt_${one.eventId}`,
    [semantic.ATTR_MESSAGING_KAFKA_OFFSET]: Number(one.offset),
  };
  const base = { status: "unset", errorType: null, links: [], isSynthetic: false, isComplete: true } as const;
  return [
    {
      ...base,
      spanId: sendId,
      parentId: one.spanId,
      topic: "send",
      kind: "producer",
      name: `send ${one.eventType}`,
      startMs: recordedAt,
      endMs: publishedAt,
      attributes: {
        ...shared,
        [semantic.ATTR_MESSAGING_OPERATION_NAME]: "send",
        [semantic.ATTR_MESSAGING_OPERATION_TYPE]: semantic.MESSAGING_OPERATION_TYPE_VALUE_SEND,
        ...(sendSkewMs > 0 ? { [own.clampedMs]: sendSkewMs } : {}),
      },
    },
    {
      ...base,
      spanId: processId,
      parentId: sendId,
      topic: "process",
      kind: "consumer",
      name: `process ${one.eventType}`,
      links: one.batchLinks,
      startMs: publishedAt,
      endMs: Math.max(one.projectedAt, publishedAt),
      attributes: {
        ...shared,
        [semantic.ATTR_MESSAGING_OPERATION_NAME]: "process",
        [semantic.ATTR_MESSAGING_OPERATION_TYPE]: semantic.MESSAGING_OPERATION_TYPE_VALUE_PROCESS,
        [semantic.ATTR_MESSAGING_CONSUMER_GROUP_NAME]: group,
        [semantic.ATTR_MESSAGING_BATCH_MESSAGE_COUNT]: one.batchMessages,
        ...(one.projectedAt < publishedAt ? { [own.clampedMs]: publishedAt - one.projectedAt } : {}),
      },
    },
  ];
}

/** The span of an event's sending. */
export function toSendId(
  { tenantId, correlationId }: Pick<StoredTrace, "tenantId" | "correlationId">,
  eventId: string,
): string {
  return toSpanId(tenantId, correlationId, JSON.stringify(["send", eventId]));
}
