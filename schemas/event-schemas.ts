import type { AvroRecord } from "./avro-json.ts";
import type { EventType } from "./catalog.ts";
import { composeSchema } from "./compose.ts";
import { envelopeSource, sharedSources, summarySources } from "./generated/sources.ts";

/** Event type → its full Avro schema, the same that `generated/<type>.avsc` holds; needs no file at run time. */
export const eventSchemas: ReadonlyMap<EventType, AvroRecord> = new Map(
  (Object.keys(summarySources) as EventType[]).map((type) => [
    type,
    composeSchema(type, envelopeSource, summarySources[type], sharedSources),
  ]),
);

/** The full schema of one event type. */
export function eventSchema(type: EventType): AvroRecord {
  return composeSchema(type, envelopeSource, summarySources[type], sharedSources);
}
