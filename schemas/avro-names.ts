import type { AvroComplex, AvroEnum, AvroRecord, AvroSchema, AvroUnion } from "./avro-json.ts";
import { isEnum, isRecord } from "./avro-json.ts";

/** A schema node with the namespace that it inherits. */
export interface Node {
  readonly schema: AvroSchema;
  readonly namespace: string;
}

/** The named types of one schema by full name, each with the namespace that holds inside it. */
export type NamedTypes = ReadonlyMap<
  string,
  { readonly schema: AvroRecord | AvroEnum | AvroComplex; readonly namespace: string }
>;

/** `Risk` in `fabric` → `fabric.Risk`; a dotted name is full already. */
export function toFullName(name: string, namespace: string): string {
  return name.includes(".") || namespace === "" ? name : `${namespace}.${name}`;
}

/** The namespace that names inside this type inherit. */
export function namespaceWithin(schema: { name?: string; namespace?: string }, inherited: string): string {
  const dot = schema.name?.lastIndexOf(".") ?? -1;
  if (dot > 0) return schema.name?.slice(0, dot) ?? "";
  return schema.namespace ?? inherited;
}

/** Full name of a named node; undefined for unions, arrays, maps and primitives. */
export function fullNameOf(node: Node): string | undefined {
  const { schema, namespace } = node;
  if (typeof schema === "string" || Array.isArray(schema)) return undefined;
  const name = "name" in schema ? schema.name : undefined;
  return name === undefined
    ? undefined
    : toFullName(name, namespaceWithin(schema as { name?: string; namespace?: string }, namespace));
}

/** Collects every named type that a schema defines, at any depth. */
export function toNamedTypes(root: AvroSchema): NamedTypes {
  const found = new Map<string, { schema: AvroComplex; namespace: string }>();
  const visit = (schema: AvroSchema, namespace: string): void => {
    if (typeof schema === "string") return;
    if (Array.isArray(schema)) {
      for (const branch of schema) visit(branch, namespace);
      return;
    }
    const fullName = fullNameOf({ schema, namespace });
    if (fullName !== undefined && !found.has(fullName)) found.set(fullName, { schema, namespace });
    if (isRecord(schema)) {
      const within = namespaceWithin(schema, namespace);
      for (const field of schema.fields) visit(field.type, within);
    } else if (schema.type === "array") visit(schema.items, namespace);
    else if (schema.type === "map") visit(schema.values, namespace);
  };
  visit(root, "");
  return found;
}

/** Follows a reference by name; a primitive stays a string, `{"type":"string"}` becomes one. */
export function resolveNode(
  node: Node,
  names: NamedTypes,
): { schema: string | AvroUnion | AvroComplex; namespace: string } {
  if (typeof node.schema === "string") {
    const found = names.get(toFullName(node.schema, node.namespace)) ?? names.get(node.schema);
    return found ?? { schema: node.schema, namespace: node.namespace };
  }
  return { schema: node.schema, namespace: node.namespace };
}

/** The kind of a resolved node: `record`, `enum`, `union`, `long`, … */
export function kindOf(schema: AvroSchema): string {
  if (typeof schema === "string") return schema;
  if (Array.isArray(schema)) return "union";
  return isEnum(schema) ? "enum" : schema.type;
}
