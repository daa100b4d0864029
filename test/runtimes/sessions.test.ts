import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runtimeRooms } from "../../services/app/runtime-rooms.ts";
import { findSessions } from "../../services/app/session-findings.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { workPolicy } from "../harness/work-policy.ts";
import { installClient } from "./client-cache.ts";
import { createRuntimeRig } from "./runtime-rig.ts";

let gates: GateRig;
let gate: RunningGate;
let token: string;
beforeAll(async () => {
  gates = await createGateRig();
  const policy = workPolicy();
  const adapters = new Map([...runtimeRooms].map(([runtime, { adapter }]) => [runtime, adapter]));
  gate = await gates.gate({ policy: () => policy, isOnAgentsMachine: true, adapters });
  token = await gates.token({ lifetimeSeconds: 3_600 });
});
afterAll(() => gates.close());

const wanted = (process.env["FABRIC_TEST_RUNTIMES"] ?? "").split(" ").filter((name) => name !== "");
const rooms = [...runtimeRooms.values()].filter(
  ({ adapter, records }) =>
    records !== undefined && (wanted.length === 0 || wanted.includes(adapter.runtime)),
);
const ungatedSessions = async (): Promise<readonly (string | null)[]> =>
  (await gates.events()).flatMap((event) =>
    event.type === "agent.effect.ungated" && event.redacted_summary.evidence === "session_without_gate"
      ? [event.execution.session_id]
      : [],
  );

describe.each(rooms.map((room) => [room.adapter.runtime, room] as const))(
  "sessions of %s",
  { timeout: 600_000 },
  (runtime, room) => {
    it("that ran with the hooks are known call by call; one that ran without them is named, and told once", async () => {
      const rig = createRuntimeRig(room, installClient(runtime, room.drive));
      try {
        const script = { main: [{ calls: [room.drive.tools.shell("echo with-the-hooks")] }] };
        const find = (home: string): ReturnType<typeof findSessions> =>
          findSessions(room, { home, gateUrl: gate.url, token }, 0, AbortSignal.timeout(30_000));

        const gated = await rig.run({ script, gateUrl: gate.url, token });
        expect(await find(gated.home)).toMatchObject({
          isWell: true,
          sessions: [{ calls: 1, isKnown: true, unknownTools: {} }],
        });

        const bare = await rig.run({ script });
        const before = await ungatedSessions();
        const found = await find(bare.home);
        expect(found).toMatchObject({ isWell: false, sessions: [{ calls: 1, isKnown: false }] });
        const id = found.sessions[0]?.sessionId ?? "";
        expect(found.lines.join("\n")).toContain(`OPEN     session ${id}: 1 tool call`);
        await find(bare.home);
        expect((await ungatedSessions()).slice(before.length)).toEqual([id]);
      } finally {
        rig.close();
      }
    });
  },
);
