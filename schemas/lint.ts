import type { AvroComplex, AvroField, AvroRecord, AvroSchema } from "./avro-json.ts";
import { isEnum, isRecord } from "./avro-json.ts";
import { fullNameOf, namespaceWithin, toFullName } from "./avro-names.ts";

/** One thing that a schema must not be. `path` is the field's, dotted, empty for the whole file. */
export interface Finding {
  readonly file: string;
  readonly path: string;
  readonly rule: LintRule;
  readonly text: string;
}

/** Every rule on a single schema or name, with what it is for. */
export const lintRules = {
  ambiguous_union:
    'a union is a field\'s `["null", X]` with default null, so that each reader sees the same value',
  enum_default: "an enum's default is `unknown`, so that a symbol of tomorrow fails closed",
  inexact_number: "no float, double, fixed, bytes or decimal: analysts see junk and sums drift",
  money_in_micros: "money is a long in millionths, and its name ends in `_micros`",
  map_values: "a map holds strings only",
  type_name: "records and enums have a name of their own in PascalCase",
  field_name: "fields and symbols are snake_case",
  aliases: "an alias renames in silence",
  timestamp_form: "a field ends in `_at` exactly when it is a timestamp-millis; no other logical type",
  id_form: "an id is a string, and its name ends in `_id`",
  bag_field: "a field says what it holds",
  unknown_type: "every name is defined",
  topic_name: "a topic is `agent|integration|fabric.<noun>.<past participle or intent>`",
} as const;
export type LintRule = keyof typeof lintRules;

const snakeCase = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const pascalCase = /^[A-Z][A-Za-z0-9]*$/;
const primitives = new Set(["null", "boolean", "int", "long", "string"]);
const inexact = new Set(["float", "double", "fixed", "bytes"]);
const bags = new Set([
  "data",
  "metadata",
  "meta",
  "attributes",
  "payload",
  "properties",
  "extra",
  "extras",
  "info",
  "misc",
  "custom",
]);
const moneyWord = /(^|_)(cost|price|amount|fee|charge|spend|spent|balance|money|usd|eur|cents|dollars)(_|$)/;
const oddId = /^(id|uuid|guid)$|_(uuid|guid|identifier)$/;

const topicForm = /^(agent|integration|fabric)\.[a-z]+\.[a-z]+$/;
const vagueEnding = /\.(updated|done|changed|processed|handled|event)$/;

/** Rules on a topic's name. */
export function lintTopicName(type: string): Finding[] {
  const at = { file: "catalog.ts", path: type, rule: "topic_name" } as const;
  if (!topicForm.test(type))
    return [{ ...at, text: `\`${type}\` is not of the form agent|integration|fabric.<noun>.<participle>` }];
  if (vagueEnding.test(type)) return [{ ...at, text: `\`${type}\` ends in a word that says nothing` }];
  return [];
}

/**
 * Rules on one schema file. `defined` are full names that other files define; names that this file defines are added
 * to it, so that the same set handed to every file finds duplicates across files.
 */
export function lintSchema(file: string, schema: AvroSchema, defined: Set<string>): Finding[] {
  const findings: Finding[] = [];
  const report = (path: string, rule: LintRule, text: string): void => {
    findings.push({ file, path, rule, text });
  };

  function visit(node: AvroSchema, namespace: string, path: string): void {
    if (typeof node === "string") return visitName(node, namespace, path);
    if (Array.isArray(node)) {
      report(path, "ambiguous_union", "a union stands only at the top of a field");
      for (const branch of node) visit(branch, namespace, path);
      return;
    }
    if (isRecord(node) || isEnum(node)) visitNamed(node, namespace, path);
    if (isRecord(node)) {
      const within = namespaceWithin(node, namespace);
      for (const field of node.fields)
        visitField(field, within, path === "" ? field.name : `${path}.${field.name}`);
    } else if (isEnum(node)) {
      if (node.default !== "unknown" || !node.symbols.includes("unknown"))
        report(path, "enum_default", `${node.name} has no default \`unknown\``);
      for (const symbol of node.symbols)
        if (!snakeCase.test(symbol)) report(path, "field_name", `symbol \`${symbol}\` is not snake_case`);
    } else if (node.type === "array") visit(node.items, namespace, `${path}[]`);
    else if (node.type === "map") {
      if (node.values !== "string") report(path, "map_values", "the map holds more than strings");
      visit(node.values, namespace, `${path}{}`);
    } else visitPrimitive(node, path);
  }

  function visitName(name: string, namespace: string, path: string): void {
    if (inexact.has(name)) return report(path, "inexact_number", `\`${name}\` is not allowed`);
    if (primitives.has(name) || defined.has(toFullName(name, namespace)) || defined.has(name)) return;
    report(path, "unknown_type", `\`${name}\` is defined nowhere before its use`);
  }

  function visitNamed(node: AvroComplex, namespace: string, path: string): void {
    const fullName = fullNameOf({ schema: node, namespace });
    const short = fullName?.slice(fullName.lastIndexOf(".") + 1);
    if (fullName === undefined || short === undefined || !pascalCase.test(short)) {
      report(
        path,
        "type_name",
        fullName === undefined ? "the type has no name" : `\`${short ?? ""}\` is not PascalCase`,
      );
      if (fullName === undefined) return;
    }
    if (defined.has(fullName)) report(path, "type_name", `\`${fullName}\` is defined twice`);
    defined.add(fullName);
    if ("aliases" in node) report(path, "aliases", `${fullName} has aliases`);
  }

  function visitPrimitive(node: AvroComplex, path: string): void {
    if (inexact.has(node.type) || ("logicalType" in node && node.logicalType === "decimal"))
      report(
        path,
        "inexact_number",
        `\`${"logicalType" in node ? node.logicalType : node.type}\` is not allowed`,
      );
    else if (!primitives.has(node.type)) report(path, "unknown_type", `\`${node.type}\` is no Avro type`);
    else if ("logicalType" in node && node.logicalType !== "timestamp-millis")
      report(path, "timestamp_form", `logical type \`${node.logicalType}\` is not allowed`);
  }

  function visitField(field: AvroField, namespace: string, path: string): void {
    const { name } = field;
    if (!snakeCase.test(name)) report(path, "field_name", `\`${name}\` is not snake_case`);
    if (field.aliases !== undefined) report(path, "aliases", `\`${name}\` has aliases`);
    if (bags.has(name)) report(path, "bag_field", `\`${name}\` could hold anything: name what is in it`);
    if (oddId.test(name)) report(path, "id_form", `\`${name}\` should end in \`_id\``);
    const inner = visitUnion(field, namespace, path);
    const kind = typeof inner === "string" ? inner : Array.isArray(inner) ? "union" : inner.type;
    const logical = typeof inner === "object" && "logicalType" in inner ? inner.logicalType : undefined;
    const money = moneyWord.test(name) || name.endsWith("_micros");
    if (money && (!name.endsWith("_micros") || kind !== "long" || logical !== undefined))
      report(path, "money_in_micros", `\`${name}\` should be a long whose name ends in \`_micros\``);
    if (name.endsWith("_at") !== (logical === "timestamp-millis"))
      report(
        path,
        "timestamp_form",
        name.endsWith("_at")
          ? `\`${name}\` should be a timestamp-millis`
          : `\`${name}\` is a time and should end in \`_at\``,
      );
    if (name.endsWith("_id") && kind !== "string") report(path, "id_form", `\`${name}\` should be a string`);
  }

  /** Checks the field's union, visits what is inside, and returns it. */
  function visitUnion(field: AvroField, namespace: string, path: string): AvroSchema {
    const union = field.type;
    if (!Array.isArray(union)) {
      visit(union, namespace, path);
      return union;
    }
    const [first, second, ...more] = union;
    if (first !== "null" || second === undefined || second === "null" || more.length > 0)
      report(path, "ambiguous_union", 'the union should be `["null", X]`');
    else if (field.default !== null) report(path, "ambiguous_union", "an optional field has default null");
    for (const branch of union) visit(branch, namespace, path);
    return second ?? "null";
  }

  visit(schema, "", "");
  return findings;
}

/** A record's own rules on top: what an event's summary file has to be. */
export function lintSummary(
  file: string,
  type: string,
  summary: AvroRecord,
  expectedName: string,
): Finding[] {
  return summary.name === expectedName && summary.namespace === "fabric"
    ? []
    : [{ file, path: "", rule: "type_name", text: `the record of ${type} should be fabric.${expectedName}` }];
}
