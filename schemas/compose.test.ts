import { describe, expect, it } from "vitest";
import type { AvroEnum, AvroRecord } from "./avro-json.ts";
import { composeSchema, toRecordName } from "./compose.ts";
import { emitTypes } from "./emit-types.ts";

const risk: AvroEnum = {
  type: "enum",
  name: "Risk",
  namespace: "fabric",
  symbols: ["unknown", "low"],
  default: "unknown",
};
const envelope: AvroRecord = {
  type: "record",
  name: "Envelope",
  namespace: "fabric",
  fields: [
    { name: "event_id", type: "string", doc: "The key." },
    { name: "risk", type: ["null", "Risk"], default: null },
  ],
};
const summary: AvroRecord = {
  type: "record",
  name: "AgentTurnStartedSummary",
  namespace: "fabric",
  doc: "A turn began.",
  fields: [
    { name: "risk", type: "Risk" },
    { name: "sizes", type: { type: "array", items: "long" } },
    { name: "started_at", type: { type: "long", logicalType: "timestamp-millis" } },
    { name: "notes", type: ["null", { type: "map", values: "string" }], default: null },
  ],
};

describe("composeSchema", () => {
  it("puts the summary into the envelope and writes a shared type out once, at its first use", () => {
    const { namespace: _envelope, ...innerRisk } = risk;
    const { namespace: _summary, ...innerSummary } = summary;
    expect(composeSchema("agent.turn.started", envelope, summary, [risk])).toEqual({
      type: "record",
      name: "AgentTurnStarted",
      namespace: "fabric",
      doc: "A turn began.",
      fields: [
        envelope.fields[0],
        { name: "risk", type: ["null", innerRisk], default: null },
        { name: "redacted_summary", type: innerSummary },
      ],
    });
  });

  it("names the record after the type", () => {
    expect(toRecordName("fabric.adapter.unrecognized")).toBe("FabricAdapterUnrecognized");
  });
});

describe("emitTypes", () => {
  it("gives longs as bigint, timestamps as numbers, and each type its summary", () => {
    const source = emitTypes(envelope, [risk], new Map([["agent.turn.started", summary]]));
    expect(source).toContain("sizes: readonly bigint[];");
    expect(source).toContain("started_at: EpochMs;");
    expect(source).toContain("notes: null | Readonly<Record<string, string>>;");
    expect(source).toContain('export type Risk = "unknown" | "low";');
    expect(source).toContain('"agent.turn.started": AgentTurnStartedSummary;');
    expect(source).toContain("/** The key. */");
  });

  it("refuses two types of one name", () => {
    const other: AvroRecord = { ...summary, fields: [] };
    const both = new Map([
      ["agent.turn.started", summary],
      ["agent.turn.completed", other],
    ]);
    expect(() => emitTypes(envelope, [risk], both)).toThrow("AgentTurnStartedSummary");
  });
});
