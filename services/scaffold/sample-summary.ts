import type { AvroSchema } from "../../schemas/avro-json.ts";
import { isEnum, isRecord } from "../../schemas/avro-json.ts";
import type { EventType } from "../../schemas/catalog.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";

/** TypeScript of a summary of this type that compiles: nulls where they may be, else the smallest value. */
export function toSampleSummary(type: EventType): string {
  const schema = eventSchema(type);
  const named = new Map<string, AvroSchema>();
  remember(schema, named);
  const summary = schema.fields.find((field) => field.name === "redacted_summary");
  return summary === undefined ? "{}" : toText(summary.type, named);
}

function remember(schema: AvroSchema, named: Map<string, AvroSchema>): void {
  if (typeof schema === "string") return;
  if (Array.isArray(schema)) {
    for (const one of schema) remember(one, named);
    return;
  }
  if (isRecord(schema)) {
    named.set(schema.name, schema);
    for (const field of schema.fields) remember(field.type, named);
  } else if (isEnum(schema)) named.set(schema.name, schema);
  else if (schema.type === "array") remember(schema.items, named);
  else if (schema.type === "map") remember(schema.values, named);
}

function toText(schema: AvroSchema, named: ReadonlyMap<string, AvroSchema>): string {
  if (Array.isArray(schema)) return schema.includes("null") ? "null" : toText(schema[0] ?? "null", named);
  if (typeof schema === "string") {
    const known = named.get(schema.replace(/^fabric\./, ""));
    return known === undefined ? toPrimitive(schema) : toText(known, named);
  }
  if (isRecord(schema)) {
    const fields = schema.fields.map((field) => `${field.name}: ${toText(field.type, named)}`);
    return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
  }
  if (isEnum(schema)) return JSON.stringify(schema.symbols.find((one) => one !== "unknown") ?? "unknown");
  if (schema.type === "array") return "[]";
  if (schema.type === "map") return "{}";
  if (schema.type === "long" && schema.logicalType !== undefined) return "0";
  return toPrimitive(schema.type);
}

function toPrimitive(type: string): string {
  switch (type) {
    case "string":
      return '"x"';
    case "long":
      return "1n";
    case "int":
    case "float":
    case "double":
      return "1";
    case "boolean":
      return "false";
    case "bytes":
      return "new Uint8Array()";
    default:
      return "null";
  }
}
