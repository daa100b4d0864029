import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runtimeRooms } from "../../services/app/runtime-rooms.ts";
import { givenBundle } from "../../services/gate/policy/given-bundle.ts";
import type { Behaviour, HookForm, RuntimeRoom } from "../../services/platform/runtime-room.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { workPolicy } from "../harness/work-policy.ts";
import { breakagesOf } from "./breakages.ts";
import { installClient } from "./client-cache.ts";
import { createMatrix } from "./matrix.ts";
import type { Prover } from "./prove-cell.ts";
import { createProver, textOf } from "./prove-cell.ts";
import type { RigOutcome, RuntimeRig } from "./runtime-rig.ts";
import { createRuntimeRig, deadAddress, startWrongGate } from "./runtime-rig.ts";
import { askedCommand } from "./scenarios.ts";

const matrix = createMatrix();
let gates: GateRig;
let gate: RunningGate;
/** A gate whose bundle lets programs run: what they do inside is then in question. */
let permittingGate: RunningGate;
let token: string;
let approver: string;

const listed = (tools: readonly string[]): string =>
  tools.map((tool) => `  - { tool: ${tool}, effect: none, action: note, data_class: internal }\n`).join("");

beforeAll(async () => {
  gates = await createGateRig();
  const tools = givenBundle().get("tools.yaml") ?? "";
  const policyWith = (more: readonly string[]): ReturnType<typeof workPolicy> =>
    workPolicy({
      "tools.yaml": `${tools}${listed(["agent.spawn", "tool.search", ...more])}`,
      "rewrites.yaml": `rules:
  - id: rewrite.other-file
    when: { signals_any: [work.rewrite] }
    set: { command: "echo rewritten > modified.txt" }
    message: writes the other file
`,
    });
  const adapters = new Map([...runtimeRooms].map(([runtime, { adapter }]) => [runtime, adapter]));
  const [usual, permitting] = [policyWith([]), policyWith(["code.run"])];
  gate = await gates.gate({ policy: () => usual, isOnAgentsMachine: true, adapters });
  permittingGate = await gates.gate({ policy: () => permitting, isOnAgentsMachine: true, adapters });
  token = await gates.token({ lifetimeSeconds: 3_600 });
  approver = await gates.token({ roles: ["approver"], subject: "ada", lifetimeSeconds: 3_600 });
});
afterAll(async () => {
  matrix.print();
  await gates.close();
});

/** Names of the runtimes to prove; none: all. */
const wanted = (process.env["FABRIC_TEST_RUNTIMES"] ?? "").split(" ").filter((name) => name !== "");
const rooms = [...runtimeRooms.values()].filter(
  ({ adapter }) => wanted.length === 0 || wanted.includes(adapter.runtime),
);

/** A client that starts slowly on a busy machine, several times in one test, is no failure. */
const testTimeoutMs = 1_200_000;

describe.each(rooms.map((room) => [room.adapter.runtime, room] as const))(
  "%s",
  { timeout: testTimeoutMs },
  (runtime, room: RuntimeRoom) => {
    let rig: RuntimeRig;
    let prover: Prover;
    beforeAll(() => {
      const client = installClient(runtime, room.drive);
      rig = createRuntimeRig(room, client);
      prover = createProver({ room, rig, version: client.version, add: matrix.add });
    });
    afterAll(() => rig.close());

    describe.each(room.setup.forms.map((form) => [form] as const))("by %s", (form: HookForm) => {
      const usual = (behaviour: Behaviour): Promise<readonly RigOutcome[]> =>
        prover.prove(behaviour, form, async (run, { bypass }) => {
          const { url } = bypass?.isToolPermitted === true ? permittingGate : gate;
          return [await run({ gateUrl: url, token, form })];
        });
      /** The same with something else in the gate's place, one after the other. */
      const withWrongGates = async (
        behaviour: Behaviour,
        kinds: readonly Parameters<typeof startWrongGate>[0][],
      ): Promise<void> => {
        const servers = await Promise.all(kinds.map((kind) => startWrongGate(kind)));
        try {
          await prover.prove(behaviour, form, async (run) => {
            const outcomes: RigOutcome[] = [];
            for (const { url } of servers) outcomes.push(await run({ gateUrl: url, form }));
            return outcomes;
          });
        } finally {
          for (const server of servers) server.close();
        }
      };

      it("runs an allowed call, and its events arrive", async () => {
        const before = (await gates.events()).length;
        await usual("allow");
        const types = (await gates.events()).slice(before).map(({ type }) => type);
        expect(types).toEqual(
          expect.arrayContaining([
            "agent.session.started",
            "agent.turn.started",
            "agent.tool.requested",
            "agent.tool.authorized",
            "agent.tool.completed",
            "agent.turn.completed",
          ]),
        );
      });

      it("stops a denied call and tells the model why", () => usual("deny"));

      it("stops everything while the gate is away", async () => {
        const gateUrl = await deadAddress();
        await prover.prove("gate_away", form, async (run) => [await run({ gateUrl, form })]);
      });

      it("stops everything when the hook itself breaks", async () => {
        const breakages = breakagesOf(form);
        if (breakages.length === 0) await withWrongGates("hook_crash", ["cut"]);
        else
          await prover.prove("hook_crash", form, async (run) => {
            const outcomes: RigOutcome[] = [];
            for (const [, spoil] of breakages)
              outcomes.push(await run({ gateUrl: gate.url, token, form, spoil }));
            return outcomes;
          });
      });

      it("runs a changed call as it was changed", () => usual("modify"));

      it("holds a call until a person has agreed, and lets it pass once", async () => {
        const call = room.drive.tools.shell(askedCommand);
        let wasHeld = false;
        await prover.prove("approve", form, async (run) => {
          const outcome = await run({
            gateUrl: gate.url,
            token,
            form,
            script: { main: [{ calls: [call] }, { before: agree, calls: [call] }] },
          });
          async function agree(): Promise<void> {
            const { json } = await gate.get("/v1/approvals?state=pending", approver);
            const { approvals } = json as { approvals: { id: string; plan_digest: string }[] };
            const [open] = approvals;
            wasHeld = open !== undefined && !existsSync(join(rig.lastWorkspace(), "approved.txt"));
            if (open === undefined) return;
            const { id, plan_digest } = open;
            await gate.post(`/v1/approvals/${id}/approve`, { plan_digest }, approver);
          }
          expect(outcome.told[0]?.text).toContain("APPROVAL_REQUIRED");
          expect(wasHeld, textOf(outcome)).toBe(true);
          return [outcome];
        });
      });

      it("stops everything while the gate is silent", () => withWrongGates("gate_slow", ["silent"]));

      it("stops everything when something else answers in the gate's place", () =>
        withWrongGates("gate_garbage", ["garbage", "error", "cut"]));

      it("judges two calls of one reply each for itself", () => usual("two_calls"));

      it("judges a sub-agent's calls like its parent's", () => usual("subagent"));

      it("tells a failing command as it is, and goes on", async () => {
        const before = (await gates.events()).length;
        await usual("failing_command");
        const completed = (await gates.events())
          .slice(before)
          .filter(({ type }) => type === "agent.tool.completed");
        expect(completed.length).toBeGreaterThanOrEqual(2);
        expect(completed[0]?.redacted_summary).not.toMatchObject({ outcome: "succeeded" });
      });

      for (const { behaviour } of room.bypasses)
        it(`knows the way past the hooks: ${behaviour}`, () => usual(behaviour));
    });
  },
);
