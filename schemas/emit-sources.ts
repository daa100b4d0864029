import type { AvroEnum, AvroRecord } from "./avro-json.ts";

/** TypeScript source that carries the hand-written schemas, so that running code reads no file. */
export function emitSources(
  envelope: AvroRecord,
  shared: readonly AvroEnum[],
  summaries: ReadonlyMap<string, AvroRecord>,
): string {
  return [
    "// Generated from schemas/*.avsc by `fabric schema generate`. Do not edit.",
    "import type { AvroEnum, AvroRecord } from '../avro-json.ts';\nimport type { EventType } from '../catalog.ts';",
    `export const envelopeSource: AvroRecord = ${show(envelope)};`,
    `export const sharedSources: readonly AvroEnum[] = ${show(shared)};`,
    `export const summarySources: Readonly<Record<EventType, AvroRecord>> = ${show(Object.fromEntries(summaries))};`,
    "",
  ].join("\n\n");
}

function show(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
