import { describe, expect, it } from "vitest";
import { eventOf } from "../../processors/kit/given.ts";
import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { toLetter } from "./letter.ts";

const record = { offset: 7n, key: null, value: Buffer.from("x"), headers: {}, timestampMs: 5 };
const context = {
  processor: { name: "cost", version: "3" },
  source: { topic: "p.agent.session.ended", partition: 2 },
  type: "agent.session.ended",
  environment: "test",
  nowMs: 1_000,
} as const;
const event = eventOf(draft("agent.session.ended", { reason: null }), { tenantId: "acme" });

describe("toLetter", () => {
  it("has one id and one notice per record, whoever buries it and when", () => {
    const one = toLetter(record, event, new Fault("PROJECTION_FAILED"), 1, context);
    const other = toLetter(record, event, new Fault("DATABASE_REJECTED"), 4, { ...context, nowMs: 9_000 });
    expect(other.id).toBe(one.id);
    expect(other.notice?.event_id).toBe(one.notice?.event_id);
    const elsewhere = { ...context, source: { ...context.source, partition: 3 } };
    expect(toLetter(record, event, one.fault, 1, elsewhere).id).not.toBe(one.id);
  });

  it("masks what the fault says and cuts it", () => {
    const fault = new Fault("PROJECTION_FAILED", `--token=abcdefgh ${"x".repeat(2_000)}`);
    const { detail } = toLetter(record, event, fault, 1, context);
    expect(detail).not.toContain("abcdefgh");
    expect(detail).toHaveLength(512);
  });

  it("belongs to the tenant of the event, and to the system when there is none that the vault could have", () => {
    const fault = new Fault("NOT_AVRO");
    expect(toLetter(record, event, fault, 1, context)).toMatchObject({ tenantId: "acme", kind: "dead" });
    expect(toLetter(record, null, fault, 1, context)).toMatchObject({
      tenantId: "fabric",
      kind: "quarantine",
    });
    const strange = { ...event, tenant_id: "../acme" };
    expect(toLetter(record, strange, fault, 1, context).tenantId).toBe("fabric");
  });

  it("says nothing about a letter about a letter", () => {
    const letters = { ...context, type: "fabric.letter.buried" } as const;
    expect(toLetter(record, null, new Fault("NOT_AVRO"), 1, letters).notice).toBeNull();
  });
});
