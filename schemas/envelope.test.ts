import { describe, expect, it } from "vitest";
import { catalog } from "./catalog.ts";
import { draft, toEnvelope, toKey } from "./envelope.ts";

const context = {
  eventId: "evt_1",
  recordedAtMs: 1_700_000_000_000,
  tenantId: "acme",
  environment: "local",
  runtime: {
    kind: "codex",
    adapter_version: "1",
    runtime_version: null,
    permission_mode: null,
    sandbox: null,
  },
  correlationId: "cor_1",
  origin: "agent",
} as const;

describe("toEnvelope", () => {
  it("fills in what the rim knows, and leaves the rest null", () => {
    const event = toEnvelope(draft("agent.turn.started", { trigger: "prompt" }), context);
    expect(event).toMatchObject({
      type: "agent.turn.started",
      schema_version: catalog["agent.turn.started"].version,
      occurred_at: context.recordedAtMs,
      recorded_at: context.recordedAtMs,
      causation_id: null,
      policy: null,
      trace: null,
    });
    expect(event.execution).toEqual({
      task_id: null,
      session_id: null,
      turn_id: null,
      tool_call_id: null,
      attempt: 1,
    });
  });

  it("keeps what the draft says over what the rim says", () => {
    const one = draft(
      "agent.turn.started",
      { trigger: "prompt" },
      { occurred_at: 5, user_id: "u1", causation_id: "evt_0", execution: { attempt: 2 } },
    );
    const event = toEnvelope(one, { ...context, userId: "u2", causationId: "evt_9", attempt: 1 });
    expect(event).toMatchObject({
      occurred_at: 5,
      causation_id: "evt_0",
      actor: { user_id: "u1" },
      execution: { attempt: 2 },
    });
  });
});

describe("toKey", () => {
  it("orders by tenant and correlation unless the type says otherwise", () => {
    expect(toKey(toEnvelope(draft("agent.turn.started", { trigger: "prompt" }), context))).toBe("acme/cor_1");
    const gap = draft("fabric.gap.found", {
      consumer: "audit",
      source_topic: "agent.turn.started",
      source_partition: 0,
      expected_offset: 1n,
      found_offset: 9n,
      cause: "retention",
    });
    expect(toKey(toEnvelope(gap, context))).toBe("audit");
  });
});
