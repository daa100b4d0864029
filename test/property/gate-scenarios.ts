import type { JsonObject } from "../../schemas/gate.ts";
import type { Condition, CountRule, Limits, RuleSet, Scenario, ToolSpec } from "./gate-reference.ts";

/** Numbers from a seed: a failing case is made again from its number alone. */
export class Dice {
  #state: number;
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }
  /** mulberry32: 0 to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }
  chance(part: number): boolean {
    return this.next() < part;
  }
  pick<T>(all: readonly T[]): T {
    return all[this.below(all.length)] as T;
  }
  some<T>(all: readonly T[], part: number): T[] {
    return all.filter(() => this.chance(part));
  }
  list<T>(max: number, make: (at: number) => T): T[] {
    return Array.from({ length: this.below(max + 1) }, (_, at) => make(at));
  }
  shuffled<T>(all: readonly T[]): T[] {
    const copy = [...all];
    for (let at = copy.length - 1; at > 0; at -= 1) {
      const other = this.below(at + 1);
      [copy[at], copy[other]] = [copy[other] as T, copy[at] as T];
    }
    return copy;
  }
}

const signals = ["net", "rm", "push"];
const allSignals = [...signals, "operand.unreadable"];
const labels = ["secret", "untrusted"];
const runtimes = ["own", "codex"];
const environments = ["dev", "prod"];
const facts = ["freeze", "release"];
const paths = ["/w", "/w/a", "/w/a/b", "/w/c", "/x"];
const hour = 3_600_000;
const now = 1_800_000_123_456;

const specs: readonly Omit<ToolSpec, "limits">[] = [
  {
    tool: "shell.run",
    effect: "execute",
    action: "run",
    kind: "command",
    field: "command",
    volatile: ["note"],
    refuses: "bad",
  },
  {
    tool: "file.write",
    effect: "write",
    action: "write",
    kind: "path",
    field: "path",
    volatile: ["note"],
    refuses: "bad",
  },
  {
    tool: "file.read",
    effect: "read",
    action: "read",
    kind: "path",
    field: "path",
    volatile: [],
    refuses: "bad",
  },
];
const toolNames = specs.map((one) => one.tool);

type RandomPolicy = Pick<Scenario, "tools" | "rules" | "levels" | "isCedarDown">;

/** Requests that are put to one policy before the next one is made. */
const requestsPerPolicy = 10;
let made: { readonly seed: number; readonly policy: RandomPolicy } | null = null;

function makePolicy(seed: number): RandomPolicy {
  if (made?.seed === seed) return made.policy;
  const dice = new Dice(-seed);
  const tools = specs.map((one) => ({ ...one, limits: dice.chance(0.4) ? makeLimits(dice) : {} }));
  const levels = { medium: 20, high: 50, critical: 80 };
  made = { seed, policy: { tools, rules: makeRules(dice), levels, isCedarDown: dice.chance(0.005) } };
  return made.policy;
}

/** A random policy with a random request and random facts. */
export function makeScenario(seed: number): Scenario {
  const dice = new Dice(seed);
  const policy = makePolicy(Math.floor(seed / requestsPerPolicy));
  const { rules } = policy;
  const tool = dice.chance(0.03) ? "odd.tool" : dice.pick(toolNames);
  const askingRules = rules.approvals.map(({ id }) => id);
  const counted = [...rules.rates, ...rules.budgets];
  return {
    ...policy,
    tool,
    input: makeInput(dice, tool),
    isDialog: dice.chance(0.1),
    hasDialog: dice.chance(0.5),
    runtime: dice.pick(runtimes),
    folder: dice.chance(0.9) ? "/w" : null,
    nowMs: now,
    environment: dice.pick(environments),
    isFrozen: dice.chance(0.02),
    isRevoked: dice.chance(0.02),
    sessionLabels: dice.some(labels, 0.3),
    openApprovals: dice.chance(0.8) ? dice.below(9) : 9 + dice.below(3),
    deferredSinceMs: dice.chance(0.6) ? null : now - dice.below(4) * (hour / 2),
    approval: dice.chance(0.4)
      ? null
      : {
          id: `apr-${String(dice.below(3))}`,
          state: dice.chance(0.55)
            ? "approved"
            : dice.pick(["pending", "refused", "expired", "consumed", "voided"]),
          isOfThisPlan: dice.chance(0.75),
          shownRules: dice.chance(0.85) ? askingRules : dice.some(askingRules, 0.5),
          expiresAtMs: now + dice.pick([-1, 0, 1, hour, hour, hour, hour]),
        },
    spent: Object.fromEntries(
      counted.flatMap((rule) =>
        dice.chance(0.6) ? [[rule.id, dice.below(rule.limit + (dice.chance(0.2) ? 2 : 0))]] : [],
      ),
    ),
    dated: Object.fromEntries(
      dice.some(facts, 0.5).map((fact) => [
        fact,
        {
          value: dice.pick<string | boolean>(["on", "off", true, "near", "off"]),
          atMs: now - dice.pick([0, 1, hour, hour + 1, -1, -hour - 1]),
        },
      ]),
    ),
    contents: dice
      .some(["/w/run.sh", "/w/other.sh"], 0.8)
      .map((path) => ({ path, digest: dice.chance(0.9) ? `sha256:${String(dice.below(3))}` : null })),
  };
}

function makeInput(dice: Dice, tool: string): JsonObject {
  const words = dice.some(signals, 0.25).map((word) => `!${word}`);
  const input: Record<string, JsonObject[string]> = {};
  if (tool !== "file.read") input.note = dice.pick(["", "please", "now"]);
  input[tool === "shell.run" ? "command" : "path"] = [dice.pick(["/w/a", "/w/b"]), ...words].join(" ");
  if (dice.chance(0.2)) input.script = dice.pick(["/w/run.sh", "/w/other.sh"]);
  if (dice.chance(0.3)) input.sandbox = dice.chance(0.5);
  if (dice.chance(0.02)) input.garbage = true;
  return input;
}

function makeLimits(dice: Dice): Limits {
  return {
    ...(dice.chance(0.4) ? { network: dice.pick(["none", "listed", "any"]) } : {}),
    ...(dice.chance(0.4) ? { max_runtime_seconds: 1 + dice.below(100) } : {}),
    ...(dice.chance(0.5) ? { paths: dice.some(paths, 0.4) } : {}),
    ...(dice.chance(0.3) ? { max_calls: 1 + dice.below(5) } : {}),
  };
}

function makeCondition(dice: Dice, often: number): Condition {
  const parts = {
    ...(dice.chance(often) ? { tools: dice.some(toolNames, 0.5) } : {}),
    ...(dice.chance(often / 3) ? { effects: dice.some(["read", "write", "execute"], 0.6) } : {}),
    ...(dice.chance(often / 4) ? { runtimes: [dice.pick(runtimes)] } : {}),
    ...(dice.chance(often / 3) ? { environments: [dice.pick(environments)] } : {}),
    ...(dice.chance(often) ? { any: dice.some(allSignals, 0.5) } : {}),
    ...(dice.chance(often / 5) ? { all: dice.some(signals, 0.4) } : {}),
    ...(dice.chance(often / 4) ? { none: dice.some(signals, 0.4) } : {}),
    ...(dice.chance(often / 3) ? { labelsAny: dice.some(labels, 0.6) } : {}),
    ...(dice.chance(often / 5) ? { labelsNone: dice.some(labels, 0.5) } : {}),
    ...(dice.chance(0.004) ? { broken: true as const } : {}),
  };
  // An empty list is a part that is not given.
  return Object.fromEntries(
    Object.entries(parts).filter(([, part]) => !Array.isArray(part) || part.length > 0),
  );
}

/** Priorities meet often, and ids are not in the order of the rules. */
function makeRules(dice: Dice): RuleSet {
  const taken = new Set<string>();
  const named = (kind: string, part: number, isScored = true) => {
    let id = "";
    do id = `${dice.pick(["a", "m", "z"])}.${kind}.${String(dice.below(1_000))}`;
    while (taken.has(id));
    taken.add(id);
    const when = makeCondition(dice, part);
    return {
      id,
      when: isScored && dice.chance(0.15) ? { ...when, risk: dice.below(100) } : when,
      priority: dice.pick([0, 0, 0, 10, -10, 1_000]),
      message: `says ${id}`,
    };
  };
  const counting = (kind: string, cost: () => number, windowMs: () => number | null): CountRule => ({
    ...named(kind, 0.5),
    scope: dice.pick(["tenant", "session", "agent", "user", "tool"]),
    windowMs: windowMs(),
    limit: 1 + dice.below(6),
    cost: cost(),
  });
  const maybe = <T>(part: number, max: number, make: () => T): T[] =>
    dice.chance(part) ? dice.list(max, make) : [];
  return {
    staticDeny: maybe(0.4, 2, () => named("static", 0.9, false)),
    forbid: maybe(0.3, 2, () => named("forbid", 0.9, false)),
    permit: [...dice.list(2, () => named("permit", 0.4, false)), named("permit", dice.pick([0, 0.3]), false)],
    risk: dice.list(3, () => ({ ...named("risk", 0.5, false), points: 1 + dice.below(60) })),
    approvals: maybe(0.6, 2, () => ({
      ...named("approval", 0.6),
      ttlMs: (1 + dice.below(4)) * 60_000,
      by: dice.chance(0.3) ? ("user" as const) : ("approver" as const),
    })),
    facts: maybe(0.6, 2, () => ({
      ...named("fact", 0.5),
      fact: dice.pick(facts),
      maxAgeMs: hour,
      deadlineMs: dice.pick([hour / 2, hour, 2 * hour]),
      denyWhen: dice.some(["on", true], 0.5),
      warnWhen: dice.some(["on", "near"], 0.4),
      by: null,
    })),
    limits: maybe(0.5, 3, () => ({ ...named("limits", 0.3), limits: makeLimits(dice) })),
    labels: maybe(0.5, 2, () => ({ ...named("labels", 0.5), labels: dice.some([...labels, "prod"], 0.6) })),
    rewrites: maybe(0.5, 3, () => ({ ...named("rewrite", 0.3), ...makeRewrite(dice) })),
    rates: maybe(0.3, 2, () =>
      counting(
        "rate",
        () => 1,
        () => dice.pick([60_000, hour]),
      ),
    ),
    budgets: maybe(0.3, 2, () =>
      counting(
        "budget",
        () => 1 + dice.below(3),
        () => dice.pick([null, 24 * hour]),
      ),
    ),
  };
}

function makeRewrite(dice: Dice): { set: JsonObject; remove: string[] } {
  const set: Record<string, JsonObject[string]> = {};
  if (dice.chance(0.5)) set.sandbox = dice.chance(0.7);
  if (dice.chance(0.3)) set.content = dice.pick(["short", "!net"]);
  if (dice.chance(0.15)) set.command = dice.pick(["/w/a", "/w/a !rm", "/w/b"]);
  if (dice.chance(0.05)) set.path = dice.pick(["/w/a", "/w/z"]);
  if (dice.chance(0.04)) set.bad = true;
  if (dice.chance(0.04)) set.garbage = true;
  if (dice.chance(0.1)) set.script = "/w/run.sh";
  return { set, remove: dice.some(["note", "sandbox", "script"], 0.2) };
}

/** One more rule of any kind but permits; they are what turns silence into a yes. */
export function addRule(scenario: Scenario, seed: number, isRewriteToo: boolean): Scenario {
  const dice = new Dice(seed);
  const more = makeRules(dice);
  const kinds = Object.keys(more).filter((kind) => isRewriteToo || kind !== "rewrites") as (keyof RuleSet)[];
  const kind = dice.pick(kinds);
  return {
    ...scenario,
    rules: { ...scenario.rules, [kind]: dice.shuffled([...scenario.rules[kind], ...more[kind]]) },
  };
}
