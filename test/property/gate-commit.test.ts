import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FaultCode } from "../../schemas/faults.ts";
import { Fault } from "../../schemas/faults.ts";
import type { GateAnswer } from "../../schemas/gate.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";

let rig: GateRig;
/** Faults that the next statements meet: position → code. */
const planned = new Map<number, FaultCode>();
let position = 0;
const disturb = (): void => {
  const code = planned.get(position);
  position += 1;
  if (code !== undefined) throw new Fault(code, "planted");
};
const disturbed = (inner: Database): Database => ({
  ...inner,
  async query(statement, values) {
    disturb();
    return inner.query(statement, values);
  },
  connected: (work) =>
    inner.connected((tx) =>
      work({
        async query(statement, values) {
          disturb();
          const result = await tx.query<never>(statement, values);
          // Written, and the gate does not hear of it.
          disturb();
          return result;
        },
      }),
    ),
});
let gates: RunningGate[] = [];
beforeAll(async () => {
  rig = await createGateRig();
  gates = [
    await rig.gate({ database: disturbed(rig.database()), maxGroup: 4 }),
    await rig.gate({ database: disturbed(rig.database()) }),
  ];
});
afterAll(() => rig.close());

const commands = ["ls", "make", "rm -rf /", "cat .env"];
const calls = fc.array(
  fc.record({
    gate: fc.nat(1),
    /** Few ids, so that the same call comes again. */
    id: fc.nat(5),
    command: fc.nat(commands.length - 1),
    waits: fc.boolean(),
  }),
  { minLength: 1, maxLength: 24 },
);
const faults = fc.array(
  fc.tuple(
    fc.nat(60),
    fc.constantFrom<FaultCode>("DATABASE_CONFLICT", "DATABASE_UNAVAILABLE", "DATABASE_REJECTED"),
  ),
  { maxLength: 5 },
);
let run = 0;

describe("any mix of calls, repeats and database faults", () => {
  it("leaves whole decisions, one per call, and an answer for each that says what is stored", async () => {
    await fc.assert(
      fc.asyncProperty(calls, faults, async (asked, planted) => {
        run += 1;
        const session = `run-${String(run)}`;
        const ask = async (one: (typeof asked)[number]): Promise<GateAnswer> => {
          const request = ownRequest(
            "shell.run",
            { command: commands[one.command] },
            { session_id: session, tool_call_id: `call-${String(one.id)}` },
          );
          const reply = await gates[one.gate]?.post("/v1/gate/decide", request);
          return reply?.json as GateAnswer;
        };
        position = 0;
        planned.clear();
        for (const [at, code] of planted) planned.set(at, code);
        const pending: Promise<GateAnswer>[] = [];
        for (const one of asked) {
          const answer = ask(one);
          pending.push(answer);
          if (one.waits) await answer;
        }
        const answers = await Promise.all(pending);
        planned.clear();

        // Asked again without faults, every call has the one answer that is stored.
        for (const [index, one] of asked.entries()) {
          const stored = await eventually(
            () => ask(one),
            (answer) => answer.plan_digest !== null,
          );
          const first = answers[index];
          if (first?.plan_digest != null) expect(first.decision_id).toBe(stored.decision_id);
          else expect(first?.decision).toBe("deny");
        }
        const distinct = new Set(asked.map((one) => `${String(one.id)} ${String(one.command)}`));
        const ofSession = `session_key IN (SELECT session_key FROM gate.sessions WHERE session_id = '${session}')`;
        expect(await rig.count(`gate.decisions WHERE ${ofSession}`)).toBe(distinct.size);
        const allowed = await rig.count(`gate.decisions WHERE decision = 'allow' AND ${ofSession}`);
        expect(await rig.count(`gate.capabilities WHERE ${ofSession}`)).toBe(allowed);
        const events = (await rig.events()).filter((one) => one.execution.session_id === session);
        expect(events).toHaveLength(distinct.size * 2 + allowed);
      }),
      { numRuns: 25 },
    );
  });
});
