import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ThrottleRule } from "../../services/gate/throttle/throttle-rules.ts";
import type { GateRig } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { claudeResult } from "../harness/hook-payloads.ts";
import { projectDir } from "../harness/stack.ts";

let rig: GateRig;
beforeAll(async () => {
  rig = await createGateRig();
});
afterAll(() => rig.close());

const drop: ThrottleRule = {
  id: "noise",
  scope: "agent",
  types: ["agent.lifecycle.observed"],
  windowMs: 3_600_000,
  limit: 3,
  action: { kind: "drop" },
};

describe("observing hooks past a limit", () => {
  it("are left out, told with their number, and touch neither decisions nor what came of calls", async () => {
    const gate = await rig.gate({ throttle: [drop] });
    const corpus = `${projectDir}/test/corpus/hooks/claude-code/Notification.json`;
    const notification = JSON.parse(await readFile(corpus, "utf8")) as Record<string, unknown>;
    for (let index = 0; index < 10; index += 1) {
      const body = { ...notification, session_id: "noisy", message: `note ${String(index)}` };
      expect((await gate.post("/v1/hooks/claude-code", body)).status).toBe(200);
    }
    for (let index = 0; index < 5; index += 1) {
      const result = claudeResult({ session_id: "noisy", tool_use_id: `call-${String(index)}` });
      expect((await gate.post("/v1/hooks/claude-code", result)).status).toBe(200);
    }
    // The end of a gate tells what its windows hold.
    await gate.gate.close();
    const events = (await rig.events()).filter(
      (one) => one.execution.session_id === "noisy" || one.type === "fabric.throttle.applied",
    );
    const count = (type: string): number => events.filter((one) => one.type === type).length;
    expect(count("agent.lifecycle.observed")).toBe(3);
    expect(count("agent.tool.completed")).toBe(5);
    expect(events.filter((one) => one.type === "fabric.throttle.applied")).toMatchObject([
      {
        tenant_id: "acme",
        redacted_summary: {
          rule: "noise",
          action: "drop",
          scope: "agent",
          scope_id: "claude-code/noisy/",
          event_type: "agent.lifecycle.observed",
          limit: 3n,
          events: 7n,
        },
      },
    ]);
  });
});
