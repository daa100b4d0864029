import { describe, expect, it } from "vitest";
import type { AvroEnum, AvroField, AvroRecord, AvroSchema } from "./avro-json.ts";
import { eventTypes } from "./catalog.ts";
import { eventSchemas } from "./event-schemas.ts";
import { envelopeSource, sharedSources, summarySources } from "./generated/sources.ts";
import { toRecordName } from "./compose.ts";
import type { LintRule } from "./lint.ts";
import { lintRules, lintSchema, lintSummary, lintTopicName } from "./lint.ts";
import type { HistoryRule } from "./lint-history.ts";
import { historyRules, lintHistory } from "./lint-history.ts";

const record = (...fields: AvroField[]): AvroRecord => ({
  type: "record",
  name: "Ask",
  namespace: "fabric",
  fields,
});
const symbols = (name: string, ...list: string[]): AvroEnum => ({
  type: "enum",
  name,
  symbols: list,
  default: "unknown",
});
const rulesOf = (schema: AvroSchema): string[] => [
  ...new Set(lintSchema("ask.avsc", schema, new Set()).map((one) => one.rule)),
];
const field = (name: string, type: AvroSchema, rest: Partial<AvroField> = {}): AvroField => ({
  name,
  type,
  ...rest,
});
const odd = (schema: unknown): AvroSchema => schema as AvroSchema;

describe("lintSchema", () => {
  it("finds nothing in the current schemas", () => {
    const defined = new Set<string>();
    const findings = [
      ...sharedSources.flatMap((one) => lintSchema("shared.avsc", one, defined)),
      ...lintSchema("envelope.avsc", envelopeSource, defined),
      ...eventTypes.flatMap((type) => [
        ...lintSchema(`events/${type}.avsc`, summarySources[type], defined),
        ...lintSummary(`events/${type}.avsc`, type, summarySources[type], `${toRecordName(type)}Summary`),
        ...lintTopicName(type),
      ]),
    ];
    expect(findings).toEqual([]);
    for (const [type, schema] of eventSchemas) expect(lintSchema(type, schema, new Set())).toEqual([]);
  });

  const planted: readonly (readonly [LintRule, string, AvroSchema])[] = [
    [
      "ambiguous_union",
      "two types besides null",
      record(field("a", ["null", "string", "long"], { default: null })),
    ],
    ["ambiguous_union", "null last", record(field("a", ["string", "null"], { default: "" }))],
    ["ambiguous_union", "an optional field without a default", record(field("a", ["null", "string"]))],
    [
      "ambiguous_union",
      "a union inside an array",
      record(field("a", { type: "array", items: ["null", "string"] })),
    ],
    ["ambiguous_union", "one branch", record(field("a", ["null"], { default: null }))],
    [
      "enum_default",
      "no default",
      record(field("a", odd({ type: "enum", name: "Risk", symbols: ["unknown", "low"] }))),
    ],
    [
      "enum_default",
      "an open default",
      record(field("a", { ...symbols("Risk", "unknown", "low"), default: "low" })),
    ],
    ["enum_default", "a default that is no symbol", record(field("a", symbols("Risk", "low")))],
    [
      "inexact_number",
      "a decimal",
      record(field("a", { type: "bytes", logicalType: "decimal", precision: 11, scale: 2 })),
    ],
    ["inexact_number", "a double", record(field("a", "double"))],
    ["inexact_number", "a float in a union", record(field("a", ["null", "float"], { default: null }))],
    ["inexact_number", "bytes", record(field("a", "bytes"))],
    ["inexact_number", "a fixed", record(field("a", odd({ type: "fixed", name: "Four", size: 4 })))],
    ["money_in_micros", "a cost of another unit", record(field("cost_cents", "long"))],
    ["money_in_micros", "a price as text", record(field("price", "string"))],
    ["money_in_micros", "micros that are no long", record(field("cost_micros", "int"))],
    ["map_values", "a map of longs", record(field("a", { type: "map", values: "long" }))],
    ["type_name", "a record without a name", record(field("a", odd({ type: "record", fields: [] })))],
    [
      "type_name",
      "one name twice",
      record(field("a", symbols("Risk", "unknown")), field("b", symbols("Risk", "unknown"))),
    ],
    ["type_name", "a name in lower case", record(field("a", symbols("risk", "unknown")))],
    ["field_name", "camel case", record(field("toolName", "string"))],
    ["field_name", "a symbol in upper case", record(field("a", symbols("Risk", "unknown", "LOW")))],
    ["aliases", "on a field", record(field("a", "string", { aliases: ["b"] }))],
    ["aliases", "on a type", record(field("a", odd({ ...symbols("Risk", "unknown"), aliases: ["Danger"] })))],
    ["timestamp_form", "a long that ends in _at", record(field("expires_at", "long"))],
    [
      "timestamp_form",
      "text that ends in _at",
      record(field("expires_at", ["null", "string"], { default: null })),
    ],
    [
      "timestamp_form",
      "a timestamp of another name",
      record(field("expiry", { type: "long", logicalType: "timestamp-millis" })),
    ],
    [
      "timestamp_form",
      "microseconds",
      record(field("expires_at", { type: "long", logicalType: "timestamp-micros" })),
    ],
    ["id_form", "id alone", record(field("id", "string"))],
    ["id_form", "a uuid", record(field("task_uuid", "string"))],
    ["id_form", "a number as id", record(field("task_id", "long"))],
    ["bag_field", "metadata", record(field("metadata", { type: "map", values: "string" }))],
    ["bag_field", "payload", record(field("payload", "string"))],
    ["unknown_type", "a name that nobody defines", record(field("a", "Nothing"))],
  ];
  it.each(planted)("%s: finds %s", (rule, _what, schema) => {
    expect(rulesOf(schema)).toContain(rule);
  });

  it.each([
    "agent.tool",
    "agent.tool.use.requested",
    "shop.order.placed",
    "agent.Tool.requested",
    "agent.tool.updated",
    "fabric.task.done",
    "agent.state.changed",
    "fabric.letter.processed",
  ])("topic_name: refuses %s", (name) => {
    expect(lintTopicName(name).map((one) => one.rule)).toEqual(["topic_name"]);
  });

  it("names file, path and reason", () => {
    const inner: AvroRecord = { type: "record", name: "Inner", fields: [field("price", "double")] };
    expect(lintSchema("ask.avsc", record(field("a", inner)), new Set())[0]).toEqual({
      file: "ask.avsc",
      path: "a.price",
      rule: "inexact_number",
      text: "`double` is not allowed",
    });
  });

  it("has a planted schema for each rule", () => {
    expect(new Set([...planted.map(([rule]) => rule), "topic_name"])).toEqual(
      new Set(Object.keys(lintRules)),
    );
  });

  it("refuses a summary under another record's name", () => {
    expect(lintSummary("f", "agent.turn.started", record(), "AgentTurnStartedSummary")).toHaveLength(1);
  });
});

describe("lintHistory", () => {
  const past = record(
    field("requester", ["null", "string"], { default: null }),
    field("risk", symbols("Risk", "unknown", "low"), { default: "unknown" }),
    field("limit", ["null", "long"], { default: null }),
  );
  const lint = (current: AvroRecord, version = "1.1"): string[] =>
    lintHistory("ask", current, version, [{ version: "1.0", schema: past }]).map(
      (one) => `${one.path}: ${one.rule}`,
    );
  const change = (at: number, to: Partial<AvroField>): AvroRecord => {
    const copy = structuredClone(past);
    copy.fields[at] = { ...copy.fields[at], ...to } as AvroField;
    return copy;
  };
  const extended = (added: AvroField): AvroRecord => ({ ...past, fields: [...past.fields, added] });

  const planted: readonly (readonly [
    rule: HistoryRule,
    what: string,
    schema: AvroRecord,
    path: string,
    version: string,
  ])[] = [
    ["field_removed", "a field that is gone", record(...past.fields.slice(0, 2)), "limit", "1.1"],
    ["field_renamed", "a field with a new name", change(0, { name: "approver" }), "requester", "1.1"],
    ["type_changed", "another type", change(2, { type: ["null", "string"] }), "limit", "1.1"],
    ["type_changed", "a wider type", change(2, { type: ["null", "int"] }), "limit", "1.1"],
    ["type_changed", "another enum", change(1, { type: symbols("Danger", "unknown", "low") }), "risk", "1.1"],
    ["type_changed", "another record name", { ...past, name: "Question" }, "", "1.1"],
    [
      "default_changed",
      "another enum default",
      change(1, { type: { ...symbols("Risk", "unknown", "low"), default: "low" } }),
      "risk",
      "1.1",
    ],
    ["default_changed", "another field default", change(1, { default: "low" }), "risk", "1.1"],
    [
      "default_missing",
      "a new field that old records lack",
      extended(field("note", "string")),
      "note",
      "1.1",
    ],
    [
      "symbol_removed",
      "a symbol that is gone",
      change(1, { type: symbols("Risk", "unknown", "high") }),
      "risk",
      "1.1",
    ],
    [
      "must_understand_changed",
      "must_understand on an existing field",
      change(2, { must_understand: true }),
      "limit",
      "1.1",
    ],
    [
      "version_not_raised",
      "a change under the old version",
      extended(field("note", ["null", "string"], { default: null })),
      "",
      "1.0",
    ],
  ];
  it.each(planted)("%s: finds %s", (rule, _what, schema, path, version) => {
    expect(lint(schema, version)).toContain(`${path}: ${rule}`);
  });

  it("has a planted change for each rule", () => {
    expect(new Set(planted.map(([rule]) => rule))).toEqual(new Set(Object.keys(historyRules)));
  });

  it("lets docs change, optional fields come, symbols come, and must_understand come with a new field or a major", () => {
    const documented = { ...change(0, { doc: "who asks" }), doc: "a question" };
    expect(lint(documented, "1.0")).toEqual([]);
    expect(lint(extended(field("note", ["null", "string"], { default: null })))).toEqual([]);
    expect(
      lint(extended(field("note", ["null", "string"], { default: null, must_understand: true }))),
    ).toEqual([]);
    expect(lint(change(1, { type: symbols("Risk", "unknown", "low", "high") }))).toEqual([]);
    expect(lint(change(2, { must_understand: true }), "2.0")).toEqual([]);
  });

  it("compares with every version, not only the last", () => {
    const second = record(...past.fields.slice(0, 2));
    const findings = lintHistory("ask", second, "1.2", [
      { version: "1.0", schema: past },
      { version: "1.1", schema: second },
    ]);
    expect(findings.map((one) => one.rule)).toEqual(["field_removed"]);
  });

  it("orders versions by number", () => {
    const next = extended(field("note", ["null", "string"], { default: null }));
    const history = [
      { version: "1.9", schema: past },
      { version: "1.10", schema: past },
    ];
    expect(lintHistory("ask", next, "1.9", history).map((one) => one.rule)).toContain("version_not_raised");
    expect(lintHistory("ask", next, "1.11", history)).toEqual([]);
  });
});
