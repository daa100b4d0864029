import type { AvroField, AvroRecord, AvroSchema } from "./avro-json.ts";
import { isEnum, isRecord } from "./avro-json.ts";
import type { NamedTypes, Node } from "./avro-names.ts";
import { fullNameOf, namespaceWithin, resolveNode, toNamedTypes } from "./avro-names.ts";

/** One earlier version of an event type's full schema. */
export interface HistoricVersion {
  readonly version: string;
  readonly schema: AvroRecord;
}

/** Every rule on a schema against its past, with what it is for. */
export const historyRules = {
  field_removed: "a field that was once there stays",
  field_renamed:
    "a rename with defaults passes every compatibility check and reads null: a requester turns into nobody",
  type_changed: "a field keeps its type for good",
  default_changed: "a default is what old records are read as",
  default_missing: "a new field has a default, or old records cannot be read",
  symbol_removed: "an enum keeps its symbols",
  must_understand_changed: "an existing field changes its meaning only with a new major version",
  version_not_raised: "another schema is another version",
} as const;
export type HistoryRule = keyof typeof historyRules;

/** One way in which a schema breaks with an earlier version. */
export interface HistoryFinding {
  readonly file: string;
  readonly path: string;
  readonly rule: HistoryRule;
  readonly text: string;
}

/** Compares the current schema of a type, at `version`, with every earlier one. Docs may change freely. */
export function lintHistory(
  file: string,
  current: AvroRecord,
  version: string,
  history: readonly HistoricVersion[],
): HistoryFinding[] {
  const findings = history.flatMap((past) => lintAgainst(file, current, version, past));
  const same = history.find((past) => withoutDocs(past.schema) === withoutDocs(current));
  const newest = [...history].sort((one, other) => compareVersions(one.version, other.version)).at(-1);
  if (newest !== undefined && same?.version !== version && compareVersions(version, newest.version) <= 0) {
    findings.push({
      file,
      path: "",
      rule: "version_not_raised",
      text: `the schema differs from ${newest.version}: raise the version in catalog.ts above it`,
    });
  }
  const seen = new Set<string>();
  return findings.filter((one) => {
    const key = `${one.path}\n${one.rule}`;
    return seen.has(key) ? false : seen.add(key);
  });
}

/** Orders `major.minor` by number. */
export function compareVersions(one: string, other: string): number {
  const [major = 0, minor = 0] = one.split(".").map(Number);
  const [otherMajor = 0, otherMinor = 0] = other.split(".").map(Number);
  return major - otherMajor || minor - otherMinor;
}

/** The schema as text without docs: equal for schemas that mean the same. */
export function withoutDocs(schema: AvroSchema): string {
  return JSON.stringify(sortKeys(schema));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => key !== "doc");
  return Object.fromEntries(
    entries.sort(([one], [other]) => (one < other ? -1 : 1)).map(([key, inner]) => [key, sortKeys(inner)]),
  );
}

function lintAgainst(
  file: string,
  current: AvroRecord,
  version: string,
  past: HistoricVersion,
): HistoryFinding[] {
  const findings: HistoryFinding[] = [];
  const names = toNamedTypes(current);
  const pastNames = toNamedTypes(past.schema);
  const newMajor = Number.parseInt(version, 10) > Number.parseInt(past.version, 10);
  const seen = new Set<string>();
  const report = (path: string, rule: HistoryRule, text: string): void => {
    findings.push({ file, path, rule, text: `${text} (since ${past.version})` });
  };

  function compare(mine: Node, theirs: Node, path: string): void {
    const now = resolveNode(mine, names);
    const then = resolveNode(theirs, pastNames);
    if (signature(now, names) !== signature(then, pastNames)) {
      report(
        path,
        "type_changed",
        `the type was ${signature(then, pastNames)} and is ${signature(now, names)}`,
      );
      return;
    }
    const name = fullNameOf(now);
    if (name !== undefined) {
      if (seen.has(name)) return;
      seen.add(name);
    }
    const { schema } = now;
    const before = then.schema;
    if (typeof schema === "string" || typeof before === "string") return;
    if (Array.isArray(schema) || Array.isArray(before)) {
      if (!Array.isArray(schema) || !Array.isArray(before)) return;
      for (const [at, branch] of schema.entries())
        compare(
          { schema: branch, namespace: now.namespace },
          { schema: before[at] ?? "null", namespace: then.namespace },
          path,
        );
    } else if (isRecord(schema) && isRecord(before)) {
      compareFields(
        schema,
        namespaceWithin(schema, now.namespace),
        before,
        namespaceWithin(before, then.namespace),
        path,
      );
    } else if (isEnum(schema) && isEnum(before)) {
      const gone = before.symbols.filter((symbol) => !schema.symbols.includes(symbol));
      if (gone.length > 0) report(path, "symbol_removed", `${schema.name} lost ${gone.join(", ")}`);
      if (schema.default !== before.default)
        report(path, "default_changed", `the default of ${schema.name} changed`);
    } else if ("items" in schema && "items" in before) {
      compare(
        { schema: schema.items, namespace: now.namespace },
        { schema: before.items, namespace: then.namespace },
        `${path}[]`,
      );
    } else if ("values" in schema && "values" in before) {
      compare(
        { schema: schema.values, namespace: now.namespace },
        { schema: before.values, namespace: then.namespace },
        `${path}{}`,
      );
    }
  }

  function compareFields(
    now: AvroRecord,
    nowSpace: string,
    then: AvroRecord,
    thenSpace: string,
    path: string,
  ): void {
    const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
    const added = now.fields.filter((field) => !then.fields.some((one) => one.name === field.name));
    for (const before of then.fields) {
      const field = now.fields.find((one) => one.name === before.name);
      if (field === undefined) reportGone(before, added, at(before.name), nowSpace, thenSpace);
      else {
        compare(
          { schema: field.type, namespace: nowSpace },
          { schema: before.type, namespace: thenSpace },
          at(field.name),
        );
        if (JSON.stringify(field.default) !== JSON.stringify(before.default))
          report(at(field.name), "default_changed", "the default changed");
        if ((field.must_understand === true) !== (before.must_understand === true) && !newMajor)
          report(at(field.name), "must_understand_changed", "must_understand of an existing field changed");
      }
    }
    for (const field of added)
      if (field.default === undefined)
        report(at(field.name), "default_missing", `\`${field.name}\` is new and has no default`);
  }

  function reportGone(
    before: AvroField,
    added: readonly AvroField[],
    path: string,
    nowSpace: string,
    thenSpace: string,
  ): void {
    const type = signature(resolveNode({ schema: before.type, namespace: thenSpace }, pastNames), pastNames);
    const heir = added.find(
      (field) => signature(resolveNode({ schema: field.type, namespace: nowSpace }, names), names) === type,
    );
    if (heir === undefined) report(path, "field_removed", `\`${before.name}\` is gone`);
    else
      report(
        path,
        "field_renamed",
        `\`${before.name}\` is gone and \`${heir.name}\` of the same type is new`,
      );
  }

  compare({ schema: current, namespace: "" }, { schema: past.schema, namespace: "" }, "");
  return findings;
}

/** A type as text, named types by full name. */
function signature(node: Node, names: NamedTypes): string {
  const { schema, namespace } = resolveNode(node, names);
  if (typeof schema === "string") return schema;
  if (Array.isArray(schema)) {
    return `[${schema.map((branch) => signature({ schema: branch, namespace }, names)).join(", ")}]`;
  }
  if (isRecord(schema) || isEnum(schema)) return `${schema.type} ${fullNameOf({ schema, namespace }) ?? ""}`;
  if (schema.type === "array") return `array of ${signature({ schema: schema.items, namespace }, names)}`;
  if (schema.type === "map") return `map of ${signature({ schema: schema.values, namespace }, names)}`;
  return "logicalType" in schema && schema.logicalType !== undefined
    ? `${schema.type} (${schema.logicalType})`
    : schema.type;
}
