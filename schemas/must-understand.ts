import type { AvroSchema } from "./avro-json.ts";
import { isRecord } from "./avro-json.ts";
import type { NamedTypes, Node } from "./avro-names.ts";
import { fullNameOf, kindOf, namespaceWithin, resolveNode, toNamedTypes } from "./avro-names.ts";

/**
 * Paths of the writer's fields that carry `must_understand` and that the reader does not have, at any depth.
 * A consumer refuses the writer's records when there is one.
 */
export function unknownMustUnderstand(writer: AvroSchema, reader: AvroSchema | null): string[] {
  const writerNames = toNamedTypes(writer);
  const readerNames: NamedTypes = reader === null ? new Map() : toNamedTypes(reader);
  const found: string[] = [];
  const seen = new Set<string>();

  const visit = (one: Node, other: Node | null, path: string): void => {
    const mine = resolveNode(one, writerNames);
    const theirs = other === null ? null : resolveNode(other, readerNames);
    if (Array.isArray(mine.schema)) {
      for (const branch of mine.schema) {
        const node = { schema: branch, namespace: mine.namespace };
        visit(node, theirs === null ? null : pickBranch(node, writerNames, theirs, readerNames), path);
      }
      return;
    }
    const facing =
      theirs !== null && Array.isArray(theirs.schema)
        ? pickBranch(mine, writerNames, theirs, readerNames)
        : theirs;
    if (typeof mine.schema === "string") return;
    if (isRecord(mine.schema)) {
      const known = facing !== null && isRecord(facing.schema) ? facing : null;
      const visited = `${fullNameOf(mine) ?? ""}/${known === null ? "unknown" : "known"}`;
      if (seen.has(visited)) return;
      seen.add(visited);
      const within = namespaceWithin(mine.schema, mine.namespace);
      for (const field of mine.schema.fields) {
        const fieldPath = path === "" ? field.name : `${path}.${field.name}`;
        const match =
          known !== null && isRecord(known.schema)
            ? known.schema.fields.find((at) => at.name === field.name)
            : undefined;
        if (match === undefined && field.must_understand === true) found.push(fieldPath);
        const readerNode =
          match === undefined || known === null || !isRecord(known.schema)
            ? null
            : { schema: match.type, namespace: namespaceWithin(known.schema, known.namespace) };
        visit({ schema: field.type, namespace: within }, readerNode, fieldPath);
      }
    } else if (mine.schema.type === "array") {
      const items =
        facing !== null && kindOf(facing.schema) === "array"
          ? (facing.schema as { items: AvroSchema }).items
          : null;
      visit(
        { schema: mine.schema.items, namespace: mine.namespace },
        items === null ? null : { schema: items, namespace: facing?.namespace ?? "" },
        `${path}[]`,
      );
    } else if (mine.schema.type === "map") {
      const values =
        facing !== null && kindOf(facing.schema) === "map"
          ? (facing.schema as { values: AvroSchema }).values
          : null;
      visit(
        { schema: mine.schema.values, namespace: mine.namespace },
        values === null ? null : { schema: values, namespace: facing?.namespace ?? "" },
        `${path}{}`,
      );
    }
  };
  visit({ schema: writer, namespace: "" }, reader === null ? null : { schema: reader, namespace: "" }, "");
  return found;
}

/** Paths of all fields of a schema that carry `must_understand`: what a reader with this schema knows. */
export function mustUnderstandFields(schema: AvroSchema): string[] {
  return unknownMustUnderstand(schema, null);
}

function pickBranch(node: Node, names: NamedTypes, union: Node, unionNames: NamedTypes): Node | null {
  const mine = resolveNode(node, names);
  const branches = Array.isArray(union.schema) ? union.schema : [union.schema];
  for (const branch of branches) {
    const candidate = resolveNode({ schema: branch, namespace: union.namespace }, unionNames);
    if (kindOf(candidate.schema) === kindOf(mine.schema) && fullNameOf(candidate) === fullNameOf(mine))
      return candidate;
  }
  return null;
}
