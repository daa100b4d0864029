import type { AvroField, AvroRecord, AvroSchema } from "../../schemas/avro-json.ts";
import { isEnum, isRecord } from "../../schemas/avro-json.ts";
import type { EventType, TopicEntry } from "../../schemas/catalog.ts";
import { catalog, isEventType } from "../../schemas/catalog.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { Fault } from "../../schemas/faults.ts";
import { schemaFingerprint } from "../platform/contract-tables.ts";

/** What `fabric schema show` knows of one type. */
export interface SchemaDetail {
  readonly type: EventType;
  readonly entry: TopicEntry;
  readonly fingerprint: string;
  readonly schema: AvroRecord;
}

/** The full schema of one type and its place in the catalogue. */
export function showSchema(type: string): SchemaDetail {
  if (!isEventType(type))
    throw new Fault("USAGE", `no event type is called \`${type}\`: see \`fabric schema list\``);
  const schema = eventSchema(type);
  return { type, entry: catalog[type], fingerprint: schemaFingerprint(schema), schema };
}

/** For a person: fields as a tree, with their docs. */
export function renderShow({ type, entry, fingerprint, schema }: SchemaDetail): string {
  return [
    `${type} ${entry.version}: ${entry.summary}`,
    `${entry.class} ${entry.nature}, key ${entry.key}, ${entry.partitions} partitions, ${entry.dataClass}, owned by ${entry.owner}`,
    fingerprint,
    "",
    ...fieldLines(schema.fields, "  "),
    "",
  ].join("\n");
}

function fieldLines(fields: readonly AvroField[], indent: string): string[] {
  return fields.flatMap((field) => {
    const flags = field.must_understand === true ? " (must understand)" : "";
    const doc = field.doc === undefined ? "" : `  ${field.doc}`;
    const inner = recordIn(field.type);
    return [
      `${indent}${field.name}: ${typeText(field.type)}${flags}${doc}`,
      ...(inner === null ? [] : fieldLines(inner.fields, `${indent}  `)),
    ];
  });
}

function recordIn(schema: AvroSchema): AvroRecord | null {
  if (Array.isArray(schema)) return schema.map(recordIn).find((one) => one !== null) ?? null;
  return isRecord(schema) ? schema : null;
}

function typeText(schema: AvroSchema): string {
  if (typeof schema === "string") return schema;
  if (Array.isArray(schema)) {
    const text = schema
      .filter((branch) => branch !== "null")
      .map(typeText)
      .join(" | ");
    return text.includes(" ") ? `(${text})?` : `${text}?`;
  }
  if (isRecord(schema)) return schema.name;
  if (isEnum(schema)) return schema.symbols.join(" | ");
  if (schema.type === "array") return `${typeText(schema.items)}[]`;
  if (schema.type === "map") return `map of ${typeText(schema.values)}`;
  return schema.logicalType ?? schema.type;
}
