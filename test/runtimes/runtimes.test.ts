import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runtimeRooms } from "../../services/app/runtime-rooms.ts";
import type { InstallPlan } from "../../services/install/plan-install.ts";
import type { Behaviour, HookForm, RuntimeRoom } from "../../services/platform/runtime-room.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { givenBundle } from "../../services/gate/policy/given-bundle.ts";
import { workPolicy } from "../harness/work-policy.ts";
import { installClient } from "./client-cache.ts";
import { createMatrix } from "./matrix.ts";
import type { RigOutcome, RuntimeRig } from "./runtime-rig.ts";
import { createRuntimeRig, deadAddress, startWrongGate } from "./runtime-rig.ts";
import type { Scenario } from "./scenarios.ts";
import { askedCommand, scenarioOf } from "./scenarios.ts";

const matrix = createMatrix();
let gates: GateRig;
let gate: RunningGate;
let token: string;
let approver: string;

beforeAll(async () => {
  gates = await createGateRig();
  const tools = givenBundle().get("tools.yaml") ?? "";
  const policy = workPolicy({
    "tools.yaml": `${tools}  - { tool: agent.spawn, effect: none, action: note, data_class: internal }\n`,
    "rewrites.yaml": `rules:
  - id: rewrite.other-file
    when: { signals_any: [work.rewrite] }
    set: { command: "echo rewritten > modified.txt" }
    message: writes the other file
`,
  });
  const adapters = new Map([...runtimeRooms].map(([runtime, { adapter }]) => [runtime, adapter]));
  gate = await gates.gate({ policy: () => policy, isOnAgentsMachine: true, adapters });
  token = await gates.token();
  approver = await gates.token({ roles: ["approver"], subject: "ada" });
});
afterAll(async () => {
  matrix.print();
  await gates.close();
});

/** Where the hooks point, for a scenario in which the gate is not what it should be. */
async function wrongGates(behaviour: Behaviour): Promise<{ urls: string[]; close(): void }> {
  if (behaviour === "gate_away") return { urls: [await deadAddress()], close: () => undefined };
  const kinds = behaviour === "gate_slow" ? (["silent"] as const) : (["garbage", "error", "cut"] as const);
  const servers = await Promise.all(kinds.map((kind) => startWrongGate(kind)));
  return {
    urls: servers.map(({ url }) => url),
    close() {
      for (const server of servers) server.close();
    },
  };
}

/** Ways in which the part inside the client breaks. */
const breakages: Readonly<Record<string, (plan: InstallPlan) => void>> = {
  "the shim is killed": ({ target }) => {
    writeFileSync(join(target.fabricDir, "hook.sh"), "kill -9 $$\n");
    writeFileSync(join(target.fabricDir, "hook.mjs"), "process.kill(process.pid, 'SIGKILL');\n");
  },
  "the shim is gone": ({ target }) => {
    rmSync(join(target.fabricDir, "hook.sh"), { force: true });
    rmSync(join(target.fabricDir, "hook.mjs"), { force: true });
  },
  "the shim hangs": ({ target }) => {
    writeFileSync(join(target.fabricDir, "hook.sh"), "sleep 60\n");
    writeFileSync(join(target.fabricDir, "hook.mjs"), "setTimeout(() => undefined, 60_000);\n");
  },
  "its settings are gone": ({ target }) => {
    for (const name of ["url", "token"]) rmSync(join(target.fabricDir, name), { force: true });
  },
};
/** Code inside the client that does not parse. */
const breakPlugin = (plan: InstallPlan): void => {
  for (const { path } of [...plan.changes, ...plan.ownFiles]) {
    if (/\.([cm]?[jt]s|py)$/.test(path)) writeFileSync(path, "this does not parse (\n");
  }
};
const shimForms: readonly HookForm[] = ["shell", "node"];

const textOf = (outcome: RigOutcome): string => outcome.told.map(({ text }) => text).join("\n");
const has = (outcome: RigOutcome, file: string): boolean => existsSync(join(outcome.workspace, file));

/** Names of the runtimes to prove; none: all. */
const wanted = (process.env["FABRIC_TEST_RUNTIMES"] ?? "").split(" ").filter((name) => name !== "");
const rooms = [...runtimeRooms.values()].filter(
  ({ adapter }) => wanted.length === 0 || wanted.includes(adapter.runtime),
);

describe.each(rooms.map((room) => [room.adapter.runtime, room] as const))(
  "%s",
  (runtime, room: RuntimeRoom) => {
    let rig: RuntimeRig;
    let version: string;
    const controls = new Map<string, RigOutcome>();
    beforeAll(() => {
      const client = installClient(runtime, room.drive);
      rig = createRuntimeRig(room, client);
      version = client.version;
    });
    afterAll(() => rig.close());

    /** The same scenario without the hook: what has to be stopped is seen to run. */
    async function controlOf(behaviour: Behaviour, scenario: Scenario): Promise<string | null> {
      if (scenario.stopped.length === 0) return null;
      const key = JSON.stringify([scenario.script, behaviour.startsWith("bypass_") ? behaviour : ""]);
      const known = controls.get(key) ?? (await rig.run({ script: scenario.script }));
      controls.set(key, known);
      expect(known.filesCreated, "without the hook it runs").toEqual(
        expect.arrayContaining([...scenario.stopped]),
      );
      return `${scenario.stopped.join(", ")} appeared`;
    }

    /** Held: what has to run ran, and what has to be stopped did not. A known limit: the suite shows it running. */
    async function prove(
      behaviour: Behaviour,
      form: HookForm,
      runs: (scenario: Scenario) => Promise<readonly RigOutcome[]>,
    ): Promise<readonly RigOutcome[]> {
      const scenario = scenarioOf(behaviour, room);
      if (scenario === null) return [];
      const limit = room.limits[behaviour] ?? null;
      const about = { runtime, version, form, behaviour, limit };
      try {
        const control = await controlOf(behaviour, scenario);
        const outcomes = await runs(scenario);
        for (const outcome of outcomes) {
          expect(outcome.isTimedOut, outcome.output.slice(-2000)).toBe(false);
          expect(outcome.callsAsked, outcome.output.slice(-2000)).toBeGreaterThan(0);
          for (const file of scenario.leaves)
            expect(has(outcome, file), `${file}: ${textOf(outcome)}`).toBe(true);
          for (const file of scenario.stopped) {
            expect(has(outcome, file), `${file}: ${textOf(outcome)}`).toBe(limit !== null);
          }
        }
        const told = outcomes.map(textOf).join("\n");
        matrix.add({ ...about, verdict: limit === null ? "held" : "not possible", control, told });
        return outcomes;
      } catch (error) {
        matrix.add({ ...about, verdict: "FAILED", control: null, told: String(error) });
        throw error;
      }
    }

    describe.each(room.setup.forms.map((form) => [form] as const))("by %s", (form) => {
      const usual = (scenario: Scenario): Promise<readonly RigOutcome[]> =>
        rig.run({ script: scenario.script, gateUrl: gate.url, token, form }).then((one) => [one]);

      it("runs an allowed call, and its events arrive", async () => {
        const before = (await gates.events()).length;
        await prove("allow", form, usual);
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

      it("stops a denied call and tells the model why", async () => {
        const [outcome] = await prove("deny", form, usual);
        if (outcome !== undefined) expect(textOf(outcome)).toContain("STATIC_DENY");
      });

      it("stops everything while the gate is away", async () => {
        const { urls } = await wrongGates("gate_away");
        const [outcome] = await prove("gate_away", form, (scenario) =>
          Promise.all(urls.map((gateUrl) => rig.run({ script: scenario.script, gateUrl, form }))),
        );
        if (outcome !== undefined && form !== "http") expect(textOf(outcome)).toContain("GATE_UNREACHABLE");
      });

      it("stops everything when the hook itself breaks", async () => {
        const server = await startWrongGate("cut");
        try {
          await prove("hook_crash", form, async (scenario) => {
            const { script } = scenario;
            if (form === "http") return [await rig.run({ script, gateUrl: server.url, form })];
            const ways = shimForms.includes(form) ? Object.values(breakages) : [breakPlugin];
            const outcomes: RigOutcome[] = [];
            for (const spoil of ways)
              outcomes.push(await rig.run({ script, gateUrl: gate.url, token, form, spoil }));
            return outcomes;
          });
        } finally {
          server.close();
        }
      });

      it("runs a changed call as it was changed", async () => {
        await prove("modify", form, usual);
      });

      if (form !== room.setup.forms[0]) return;

      it("holds a call until a person has agreed, and lets it pass once", async () => {
        const leaves = "approved.txt";
        let wasHeld = false;
        const outcome = await rig.run({
          gateUrl: gate.url,
          token,
          form,
          script: {
            main: [
              { calls: [room.drive.tools.shell(askedCommand)] },
              {
                async before() {
                  const { json } = await gate.get("/v1/approvals?state=pending", approver);
                  const { approvals } = json as { approvals: { id: string; plan_digest: string }[] };
                  const [open] = approvals;
                  wasHeld = open !== undefined;
                  if (open === undefined) return;
                  const { id, plan_digest } = open;
                  await gate.post(`/v1/approvals/${id}/approve`, { plan_digest }, approver);
                },
                calls: [room.drive.tools.shell(askedCommand)],
              },
            ],
          },
        });
        const [first, second] = outcome.told;
        const held = wasHeld && first?.text.includes("APPROVAL_REQUIRED") === true && has(outcome, leaves);
        matrix.add({
          ...{ runtime, version, form, behaviour: "approve", limit: null },
          verdict: held ? "held" : "FAILED",
          control: "the same call was refused before the approval",
          told: textOf(outcome),
        });
        expect(first?.text).toContain("APPROVAL_REQUIRED");
        expect(wasHeld).toBe(true);
        expect(has(outcome, leaves), second?.text).toBe(true);
      });

      it("stops everything while the gate is silent", async () => {
        const { urls, close } = await wrongGates("gate_slow");
        try {
          await prove("gate_slow", form, (scenario) =>
            Promise.all(urls.map((gateUrl) => rig.run({ script: scenario.script, gateUrl, form }))),
          );
        } finally {
          close();
        }
      });

      it("stops everything when something else answers in the gate's place", async () => {
        const { urls, close } = await wrongGates("gate_garbage");
        try {
          await prove("gate_garbage", form, async (scenario) => {
            const outcomes: RigOutcome[] = [];
            for (const gateUrl of urls)
              outcomes.push(await rig.run({ script: scenario.script, gateUrl, form }));
            return outcomes;
          });
        } finally {
          close();
        }
      });

      it("judges two calls of one reply each for itself", async () => {
        await prove("two_calls", form, usual);
      });

      it("judges a sub-agent's calls like its parent's", async () => {
        await prove("subagent", form, usual);
      });

      it("tells a failing command as it is, and goes on", async () => {
        const before = (await gates.events()).length;
        await prove("failing_command", form, usual);
        const completed = (await gates.events())
          .slice(before)
          .filter(({ type }) => type === "agent.tool.completed");
        expect(completed.length).toBeGreaterThanOrEqual(2);
        expect(completed[0]?.redacted_summary).not.toMatchObject({ outcome: "succeeded" });
      });

      for (const { behaviour } of room.bypasses) {
        it(`knows the way past the hooks: ${behaviour}`, async () => {
          await prove(behaviour, form, usual);
        });
      }
    });
  },
);
