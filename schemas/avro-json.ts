/** Avro schema as JSON, as far as the catalogue uses it: named types, arrays, maps and `["null", X]`. */
export type AvroSchema = string | AvroUnion | AvroComplex;
export type AvroUnion = AvroSchema[];
export type AvroComplex = AvroRecord | AvroEnum | AvroArray | AvroMap | AvroAnnotated;

export interface AvroRecord {
  type: "record";
  name: string;
  namespace?: string;
  doc?: string;
  fields: AvroField[];
}
export interface AvroField {
  name: string;
  type: AvroSchema;
  doc?: string;
  default?: unknown;
  aliases?: string[];
  /** A consumer that does not know this field refuses the record. */
  must_understand?: boolean;
}
export interface AvroEnum {
  type: "enum";
  name: string;
  namespace?: string;
  doc?: string;
  symbols: string[];
  default?: string;
}
export interface AvroArray {
  type: "array";
  items: AvroSchema;
}
export interface AvroMap {
  type: "map";
  values: AvroSchema;
}
export interface AvroAnnotated {
  type: "long" | "int" | "string" | "bytes" | "boolean" | "double" | "float" | "fixed" | "null";
  logicalType?: string;
  name?: string;
  size?: number;
  precision?: number;
  scale?: number;
}

/** Whether the schema node is a record. */
export function isRecord(schema: AvroSchema): schema is AvroRecord {
  return typeof schema === "object" && !Array.isArray(schema) && schema.type === "record";
}
/** Whether the schema node is an enum. */
export function isEnum(schema: AvroSchema): schema is AvroEnum {
  return typeof schema === "object" && !Array.isArray(schema) && schema.type === "enum";
}
