import type { EffectClass } from "../../../schemas/generated/types.ts";
import type { When } from "./policy.ts";
import { toolFits } from "./tool-pattern.ts";

/** What a rule's `when` looks at. */
export interface WhenView {
  readonly tool: string;
  readonly effect: EffectClass;
  readonly runtime: string;
  readonly environment: string;
  readonly signals: ReadonlySet<string>;
  readonly labels: ReadonlySet<string>;
  /** 0-100. */
  readonly riskScore: number;
}

type Test = (view: WhenView) => boolean;

/** A `when` is an object of a loaded bundle, so its compiled form lives exactly as long as it. */
const compiled = new WeakMap<When, Test>();

/** Whether all parts that are given hold. A `when` without parts always holds. */
export function whenHolds(when: When, view: WhenView): boolean {
  let test = compiled.get(when);
  if (test === undefined) {
    test = compile(when);
    compiled.set(when, test);
  }
  return test(view);
}

function compile(when: When): Test {
  const tests: Test[] = [];
  // What fails most often, and costs least, is asked first.
  const { signalsAny, signalsAll, signalsNone, labelsAny, labelsNone, riskAtLeast } = when;
  if (signalsAny.length > 0) tests.push(({ signals }) => signalsAny.some((id) => signals.has(id)));
  if (signalsAll.length > 0) tests.push(({ signals }) => signalsAll.every((id) => signals.has(id)));
  if (when.tools.length > 0) {
    const names = new Set(when.tools.filter((one) => !one.endsWith("*")));
    const patterns = when.tools.filter((one) => one.endsWith("*"));
    tests.push(({ tool }) => names.has(tool) || patterns.some((one) => toolFits(one, tool)));
  }
  if (when.effects.length > 0) {
    const effects = new Set(when.effects);
    tests.push(({ effect }) => effects.has(effect));
  }
  if (when.runtimes.length > 0) {
    const runtimes = new Set(when.runtimes);
    tests.push(({ runtime }) => runtimes.has(runtime));
  }
  if (when.environments.length > 0) {
    const environments = new Set(when.environments);
    tests.push(({ environment }) => environments.has(environment));
  }
  if (labelsAny.length > 0) tests.push(({ labels }) => labelsAny.some((label) => labels.has(label)));
  if (signalsNone.length > 0) tests.push(({ signals }) => !signalsNone.some((id) => signals.has(id)));
  if (labelsNone.length > 0) tests.push(({ labels }) => !labelsNone.some((label) => labels.has(label)));
  if (riskAtLeast !== null) tests.push(({ riskScore }) => riskScore >= riskAtLeast);
  return (view) => tests.every((test) => test(view));
}
