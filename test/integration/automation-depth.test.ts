import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";

let rig: GateRig;
let gates: readonly RunningGate[];
beforeAll(async () => {
  rig = await createGateRig();
  gates = await Promise.all([rig.gate(), rig.gate()]);
});
afterAll(() => rig.close());

interface Answer {
  readonly decision: string;
  readonly reason_code: string;
  readonly matched_rules: readonly string[];
  readonly correlation_id: string;
}

/** One call of a session, at one gate or the other. */
async function ask(sessionId: string, parentId?: string, gate = 0): Promise<Answer> {
  const parent = parentId === undefined ? {} : { parent_session_id: parentId };
  const body = ownRequest("shell.run", { command: "ls" }, { session_id: sessionId, ...parent });
  const reply = await gates[gate]?.post("/v1/gate/decide", body);
  expect(reply?.status).toBe(200);
  return reply?.json as Answer;
}

const depthsOf = async (sessionPrefix: string): Promise<Record<string, number[]>> => {
  const found: Record<string, Set<number>> = {};
  for (const one of await rig.events()) {
    const id = one.execution.session_id;
    if (id?.startsWith(sessionPrefix) === true) (found[id] ??= new Set()).add(one.automation_depth);
  }
  return Object.fromEntries(Object.entries(found).map(([id, depths]) => [id, [...depths]]));
};

describe("agents that start agents", () => {
  it("are counted in each event, and denied by their rule past the limit, whichever gate they ask", async () => {
    const answers: Answer[] = [await ask("chain-0")];
    for (let depth = 1; depth <= 6; depth += 1) {
      answers.push(await ask(`chain-${String(depth)}`, `chain-${String(depth - 1)}`, depth % 2));
    }
    expect(answers.map((one) => one.reason_code)).toEqual([
      ...Array.from({ length: 5 }, () => "ALLOWED"),
      "AUTOMATION_TOO_DEEP",
      "AUTOMATION_TOO_DEEP",
    ]);
    expect(answers[5]?.matched_rules).toContain("automation.depth");
    // One goal: it is the breaker's to see how many they are.
    expect(new Set(answers.map((one) => one.correlation_id)).size).toBe(1);
    expect(await depthsOf("chain-")).toEqual(
      Object.fromEntries(answers.map((_one, depth) => [`chain-${String(depth)}`, [depth]])),
    );
    // A later call that does not name its parent again is as deep as before.
    expect((await ask("chain-6")).reason_code).toBe("AUTOMATION_TOO_DEEP");
  });

  it("count also when the whole chain asks in one moment, from their second call on", async () => {
    const chain = Array.from({ length: 7 }, (_, depth) => depth);
    const all = (): Promise<Answer[]> =>
      Promise.all(
        chain.map((depth) =>
          ask(`burst-${String(depth)}`, depth === 0 ? undefined : `burst-${String(depth - 1)}`),
        ),
      );
    await all();
    await eventually(all, (answers) => answers[6]?.reason_code === "AUTOMATION_TOO_DEEP");
    const last = await all();
    expect(last.slice(0, 5).map((one) => one.decision)).toEqual(Array.from({ length: 5 }, () => "allow"));
  });

  it("do not get deeper by naming each other as parents", async () => {
    for (let round = 0; round < 6; round += 1) {
      await ask("ring-a", "ring-b", round % 2);
      await ask("ring-b", "ring-a", round % 2);
    }
    expect((await ask("ring-a", "ring-b")).decision).toBe("allow");
    expect((await ask("ring-b", "ring-a")).decision).toBe("allow");
  });

  it("may be fewer where a bundle says so", async () => {
    const strict = await rig.gate({ policy: () => ({ ...rig.policy, automationDepthMax: 1 }) });
    const body = (id: string, parent: string) =>
      ownRequest("shell.run", { command: "ls" }, { session_id: id, parent_session_id: parent });
    await strict.post("/v1/gate/decide", body("few-1", "few-0"));
    const second = await strict.post("/v1/gate/decide", body("few-2", "few-1"));
    expect(second.json).toMatchObject({ decision: "deny", reason_code: "AUTOMATION_TOO_DEEP" });
  });
});
