import type { AvroEnum, AvroField, AvroRecord, AvroSchema } from "./avro-json.ts";
import { isEnum, isRecord } from "./avro-json.ts";

/** `agent.tool.requested` → `AgentToolRequested`, the Avro record's name. */
export function toRecordName(type: string): string {
  return type
    .split(".")
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join("");
}

/**
 * The full Avro schema of one event type: the shared envelope with the type's own record as `redacted_summary`.
 * Shared named types are written out at their first use, as Avro asks.
 */
export function composeSchema(
  type: string,
  envelope: AvroRecord,
  summary: AvroRecord,
  shared: readonly AvroEnum[],
): AvroRecord {
  const sharedByName = new Map(shared.map((one) => [one.name, one]));
  const written = new Set<string>();

  function inline(schema: AvroSchema): AvroSchema {
    if (typeof schema === "string") {
      const found = sharedByName.get(schema);
      if (found === undefined || written.has(schema)) return schema;
      written.add(schema);
      return inherit(found);
    }
    if (Array.isArray(schema)) return schema.map(inline);
    if (isRecord(schema)) {
      written.add(schema.name);
      return { ...inherit(schema), fields: schema.fields.map(inlineField) };
    }
    if (isEnum(schema)) {
      written.add(schema.name);
      return inherit(schema);
    }
    if (schema.type === "array") return { ...schema, items: inline(schema.items) };
    if (schema.type === "map") return { ...schema, values: inline(schema.values) };
    return schema;
  }
  function inlineField(field: AvroField): AvroField {
    return { ...field, type: inline(field.type) };
  }

  return {
    type: "record",
    name: toRecordName(type),
    namespace,
    ...(summary.doc === undefined ? {} : { doc: summary.doc }),
    fields: [...envelope.fields.map(inlineField), { name: "redacted_summary", type: inline(summary) }],
  };
}

/** The one namespace of all our records and enums. */
const namespace = "fabric";

/** Leaves out the namespace that the outer record gives anyway: a registry would, and hand back another text. */
function inherit<T extends AvroRecord | AvroEnum>(schema: T): T {
  const { namespace: own, ...rest } = schema;
  return own === undefined || own === namespace ? (rest as T) : schema;
}
