import type { AvroEnum, AvroRecord, AvroSchema } from "./avro-json.ts";
import { isEnum, isRecord } from "./avro-json.ts";

/** TypeScript source for the shared envelope, every summary record and the map from event type to summary. */
export function emitTypes(
  envelope: AvroRecord,
  shared: readonly AvroEnum[],
  summaries: ReadonlyMap<string, AvroRecord>,
): string {
  const declared = new Map<string, string>();

  function refer(schema: AvroSchema): string {
    if (typeof schema === "string") return primitives[schema] ?? schema;
    if (Array.isArray(schema)) return schema.map(refer).join(" | ");
    if (isRecord(schema)) {
      declareRecord(schema, schema.name);
      return schema.name;
    }
    if (isEnum(schema)) {
      declare(
        schema.name,
        `export type ${schema.name} = ${schema.symbols.map((one) => JSON.stringify(one)).join(" | ")};`,
      );
      return schema.name;
    }
    if (schema.type === "array") return `readonly ${wrap(refer(schema.items))}[]`;
    if (schema.type === "map") return `Readonly<Record<string, ${refer(schema.values)}>>`;
    if (schema.logicalType === "timestamp-millis") return "EpochMs";
    return primitives[schema.type] ?? "never";
  }
  function declareRecord(record: AvroRecord, name: string): void {
    const fields = record.fields.map((field) => {
      const doc = field.doc === undefined ? "" : `  /** ${field.doc} */\n`;
      return `${doc}  ${field.name}: ${refer(field.type)};`;
    });
    const doc = record.doc === undefined ? "" : `/** ${record.doc} */\n`;
    declare(name, `${doc}export interface ${name} {\n${fields.join("\n")}\n}`);
  }
  function declare(name: string, source: string): void {
    const before = declared.get(name);
    if (before !== undefined && before !== source)
      throw new Error(`two different Avro types are named \`${name}\``);
    declared.set(name, source);
  }

  for (const one of shared) refer(one);
  declareRecord(envelope, "EnvelopeFields");
  for (const summary of summaries.values()) refer(summary);
  const map = [...summaries].map(([type, summary]) => `  ${JSON.stringify(type)}: ${summary.name};`);
  return [
    "// Generated from schemas/*.avsc by `fabric schema generate`. Do not edit.",
    "/** Milliseconds since 1970 UTC, an integer from 0 to 2^52. */\nexport type EpochMs = number;",
    ...declared.values(),
    `/** Event type → its own summary record. */\nexport interface Summaries {\n${map.join("\n")}\n}`,
    "",
  ].join("\n\n");
}

const primitives: Record<string, string> = {
  null: "null",
  boolean: "boolean",
  int: "number",
  long: "bigint",
  float: "number",
  double: "number",
  string: "string",
  bytes: "Uint8Array",
};

function wrap(source: string): string {
  return source.includes("|") ? `(${source})` : source;
}
