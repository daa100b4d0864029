import { own, semantic } from "./conventions.ts";
import { toSpanId } from "./ids.ts";
import type { Delivered, StoredTrace, TraceSpan } from "./tree.ts";

/** Consumer group of the processor that took the event's times. */
const group = "trace";

/**
 * Three spans below the event's own, each the parent of the next: `send`, from the commit to the record's timestamp (the
 * wait in the outbox), `receive`, from there to where the host took the record up (broker and fetch), and `process`, from
 * there to the projection. One of each per message, in the message's own trace, so that a batch of many traces loses no
 * parent; `process` links to the producing spans of other messages of the batch, whose size is an attribute. Where the host
 * did not tell when it took the record up, `process` holds the broker too.
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
  const receivedAt = one.receivedAt === null ? null : Math.max(one.receivedAt, publishedAt);
  const receiveId = toSpanId(tenantId, correlationId, JSON.stringify(["receive", one.eventId]));
  const takenAt = receivedAt ?? publishedAt;
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
    ...(receivedAt === null
      ? []
      : [
          {
            ...base,
            spanId: receiveId,
            parentId: sendId,
            topic: "receive",
            kind: "client",
            name: `receive ${one.eventType}`,
            startMs: publishedAt,
            endMs: receivedAt,
            attributes: {
              ...shared,
              [semantic.ATTR_MESSAGING_OPERATION_NAME]: "poll",
              [semantic.ATTR_MESSAGING_OPERATION_TYPE]: semantic.MESSAGING_OPERATION_TYPE_VALUE_RECEIVE,
              [semantic.ATTR_MESSAGING_CONSUMER_GROUP_NAME]: group,
              ...(receivedAt > (one.receivedAt ?? receivedAt)
                ? { [own.clampedMs]: receivedAt - (one.receivedAt ?? receivedAt) }
                : {}),
            },
          } as const,
        ]),
    {
      ...base,
      spanId: processId,
      parentId: receivedAt === null ? sendId : receiveId,
      topic: "process",
      kind: "consumer",
      name: `process ${one.eventType}`,
      links: one.batchLinks,
      startMs: takenAt,
      endMs: Math.max(one.projectedAt, takenAt),
      attributes: {
        ...shared,
        [semantic.ATTR_MESSAGING_OPERATION_NAME]: "process",
        [semantic.ATTR_MESSAGING_OPERATION_TYPE]: semantic.MESSAGING_OPERATION_TYPE_VALUE_PROCESS,
        [semantic.ATTR_MESSAGING_CONSUMER_GROUP_NAME]: group,
        [semantic.ATTR_MESSAGING_BATCH_MESSAGE_COUNT]: one.batchMessages,
        ...(one.projectedAt < takenAt ? { [own.clampedMs]: takenAt - one.projectedAt } : {}),
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
