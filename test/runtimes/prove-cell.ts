import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Attempt, Behaviour, HookForm, RuntimeRoom } from "../../services/platform/runtime-room.ts";
import type { CellResult } from "./matrix.ts";
import type { RigOutcome, RigRun, RuntimeRig } from "./runtime-rig.ts";
import type { Scenario } from "./scenarios.ts";
import { scenarioOf } from "./scenarios.ts";

/** All that the model was told in one run. */
export const textOf = (outcome: RigOutcome): string => outcome.told.map(({ text }) => text).join("\n");
const has = (outcome: RigOutcome, file: string): boolean => existsSync(join(outcome.workspace, file));

/** What a prover works on. */
export interface ProverOptions {
  readonly room: RuntimeRoom;
  readonly rig: RuntimeRig;
  readonly version: string;
  readonly add: (cell: CellResult) => void;
}
/** One run of the client with everything that the scenario wants of it. */
export type ScenarioRun = (rest?: Partial<RigRun>) => Promise<RigOutcome>;

/** Proves cells of one client. */
export interface Prover {
  prove(
    behaviour: Behaviour,
    form: HookForm,
    runs: (run: ScenarioRun, scenario: Scenario) => Promise<readonly RigOutcome[]>,
  ): Promise<readonly RigOutcome[]>;
}

export function createProver({ room, rig, version, add }: ProverOptions): Prover {
  const controls = new Map<string, RigOutcome>();

  function runOf(scenario: Scenario, attempt?: Attempt): ScenarioRun {
    const { script, bypass } = scenario;
    const damage = bypass?.damage;
    const start = bypass?.start ?? ("child" in script ? room.drive.prepareForSubagent : undefined);
    return (rest = {}) =>
      rig.run({
        script,
        ...(start === undefined ? {} : { start }),
        // Without an installation there is nothing to damage.
        ...(damage === undefined || rest.gateUrl === undefined ? {} : { damage }),
        ...(attempt === undefined ? {} : { attempt }),
        ...rest,
      });
  }

  /** The same scenario without the hook: what has to be stopped is seen to run. */
  async function controlOf(scenario: Scenario, run: ScenarioRun): Promise<string> {
    // Where nothing is to be stopped, the control shows that the client itself gets there.
    const wanted = scenario.stopped.length > 0 ? scenario.stopped : scenario.leaves;
    const key = JSON.stringify([scenario.script, scenario.bypass?.behaviour ?? ""]);
    const known = controls.get(key) ?? (await run());
    controls.set(key, known);
    expect(
      known.filesCreated,
      `without the hook it runs: ${known.output.slice(-2000)}\n${textOf(known)}`,
    ).toEqual(expect.arrayContaining([...wanted]));
    return `without the hook: ${wanted.join(", ")}`;
  }

  function judge(outcome: RigOutcome, scenario: Scenario, isLimited: boolean): void {
    const tail = outcome.output.slice(-2000);
    expect(outcome.isTimedOut, tail).toBe(false);
    // A client that does not start without its hooks asks for nothing.
    const mayAskNothing = scenario.bypass?.damage !== undefined || scenario.bypass?.turns.length === 0;
    if (!mayAskNothing) expect(outcome.callsAsked, tail).toBeGreaterThan(0);
    for (const file of scenario.leaves)
      expect(has(outcome, file), `${file}: ${textOf(outcome)}\n${tail}`).toBe(true);
    for (const file of scenario.stopped)
      expect(has(outcome, file), `${file}: ${textOf(outcome)}\n${tail}`).toBe(isLimited);
    if (scenario.tells !== null) expect(textOf(outcome)).toMatch(scenario.tells);
  }

  return {
    /** Held: what has to run ran, and what has to be stopped did not. A known limit: the suite shows it running. */
    async prove(behaviour, form, runs) {
      const limit = room.limits[behaviour] ?? null;
      const about = { runtime: room.adapter.runtime, version, form, behaviour, limit };
      const scenario = scenarioOf(behaviour, room, form);
      let control: string | null = null;
      try {
        if (scenario === null) throw new Error(`no tool of this client leads to ${behaviour}`);
        control = await controlOf(scenario, runOf(scenario));
        const outcomes = await runs(runOf(scenario), scenario);
        for (const outcome of outcomes) judge(outcome, scenario, limit !== null);
        const told = outcomes.map(textOf).join("\n");
        let attempt: string | null = null;
        if (limit?.attempt !== undefined) {
          const [tried] = await runs(runOf(scenario, limit.attempt), scenario);
          if (tried === undefined) throw new Error("the attempt did not run");
          const ran = scenario.stopped.some((file) => has(tried, file));
          expect(ran, `${limit.attempt.setting}: ${textOf(tried)}\n${tried.output.slice(-2000)}`).toBe(
            !limit.attempt.helps,
          );
          attempt = `${limit.attempt.setting}: ${ran ? "the tool ran all the same" : "the tool did not run"}`;
        }
        add({ ...about, verdict: limit === null ? "held" : "not possible", control, told, attempt });
        return outcomes;
      } catch (error) {
        add({ ...about, verdict: "FAILED", control, told: String(error), attempt: null });
        throw error;
      }
    },
  };
}
