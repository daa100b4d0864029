import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runtimeRooms } from "../../services/app/runtime-rooms.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { workPolicy } from "../harness/work-policy.ts";
import { installClient } from "./client-cache.ts";
import type { RuntimeRig } from "./runtime-rig.ts";
import { createRuntimeRig } from "./runtime-rig.ts";

/** Approvals beyond the ticket, on the real clients: a call that waits for its own, and a question that nobody can answer. */

let gates: GateRig;
let gate: RunningGate;
let token: string;
let approver: string;
beforeAll(async () => {
  gates = await createGateRig();
  const adapters = new Map([...runtimeRooms].map(([runtime, { adapter }]) => [runtime, adapter]));
  const policy = workPolicy({
    "approvals.yaml": `rules:
  - { id: ask.person, when: { signals_any: [work.ask] }, message: somebody has to agree, ttl: 15m }
  - { id: ask.user, by: user, when: { signals_any: [work.send] }, message: you have to agree, ttl: 15m }
`,
  });
  gate = await gates.gate({ policy: () => policy, isOnAgentsMachine: true, adapters });
  token = await gates.token({ lifetimeSeconds: 3_600 });
  approver = await gates.token({ roles: ["approver"], subject: "ada", lifetimeSeconds: 3_600 });
});
afterAll(() => gates.close());

const wanted = (process.env["FABRIC_TEST_RUNTIMES"] ?? "").split(" ").filter((name) => name !== "");
const rooms = [...runtimeRooms.values()].filter(
  ({ adapter }) => wanted.length === 0 || wanted.includes(adapter.runtime),
);

interface Waiting {
  readonly id: string;
  readonly plan_digest: string;
  readonly runtime: string;
}
/** Agrees to whatever waits for this runtime, until told to stop; how often. */
function agreeTo(runtime: string): { stop(): Promise<number> } {
  let isOver = false;
  const agreeing = (async (): Promise<number> => {
    let agreed = 0;
    while (!isOver) {
      const { json } = await gate.get("/v1/approvals?state=pending", approver);
      const open = (json as { approvals: readonly Waiting[] }).approvals.filter(
        (one) => one.runtime === runtime,
      );
      for (const { id, plan_digest } of open) {
        await gate.post(`/v1/approvals/${id}/approve`, { plan_digest }, approver);
        agreed += 1;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return agreed;
  })();
  return {
    stop() {
      isOver = true;
      return agreeing;
    },
  };
}

describe.each(rooms.map((room) => [room.adapter.runtime, room] as const))("%s", (runtime, room) => {
  let rig: RuntimeRig;
  beforeAll(() => {
    rig = createRuntimeRig(room, installClient(runtime, room.drive));
  });
  afterAll(() => rig.close());
  const { shell } = room.drive.tools;
  const form = room.setup.forms.find((one) => one !== "http") ?? room.setup.forms[0];

  it("holds a call while its approval is open, and the one call runs once somebody agreed", async () => {
    const approving = agreeTo(runtime);
    const outcome = await rig.run({
      script: { main: [{ calls: [shell("ask; echo ran > waited.txt")] }] },
      gateUrl: gate.url,
      token,
      form,
      approvalWaitMs: 60_000,
    });
    expect(await approving.stop()).toBe(1);
    expect(outcome.filesCreated, outcome.output.slice(-2_000)).toContain("waited.txt");
    expect(outcome.told).toHaveLength(1);
    expect(outcome.told[0]?.text).not.toContain("APPROVAL_REQUIRED");
  });

  it("runs nothing for a rule that leaves it to the user, where nobody sits, and the model reads what to do", async () => {
    const outcome = await rig.run({
      script: { main: [{ calls: [shell("send-out; echo ran > asked.txt")] }] },
      gateUrl: gate.url,
      token,
      form,
    });
    expect(outcome.callsAsked, outcome.output.slice(-2_000)).toBe(1);
    expect(outcome.filesCreated).not.toContain("asked.txt");
    expect(outcome.told[0]?.text).toMatch(/CONFIRMATION_REQUIRED|APPROVAL_REQUIRED/);
  });
});
