import type { Envelope } from "../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import { derivedUuid } from "../platform/ids.ts";
import type { Gap } from "./gap.ts";
import type { Position } from "./host-store.ts";
import { hostRuntime, systemTenant } from "./letter.ts";
import { keyOf } from "./records.ts";

/** The event that tells of a gap: the same one however often it is found, and another after a person resumed. Pure. */
export function toGapFinding(
  one: Position,
  gap: Gap,
  {
    processor,
    environment,
    nowMs,
  }: { readonly processor: string; readonly environment: string; readonly nowMs: number },
): Envelope {
  const place = keyOf(one);
  const identity = [
    ...["gap", processor, place],
    ...[String(gap.expectedOffset), String(gap.foundOffset), gap.cause, String(one.epoch)],
  ];
  return toEnvelope(
    draft("fabric.gap.found", {
      consumer: processor,
      source_topic: one.topic,
      source_partition: one.partition,
      expected_offset: gap.expectedOffset,
      found_offset: gap.foundOffset,
      cause: gap.cause,
    }),
    {
      eventId: `evt_${derivedUuid(JSON.stringify(identity))}`,
      recordedAtMs: nowMs,
      tenantId: systemTenant,
      environment,
      runtime: hostRuntime,
      correlationId: `cor_${derivedUuid(`gap/${processor}/${place}`)}`,
      origin: `processor:${processor}`,
    },
  );
}
