import * as cedar from "@cedar-policy/cedar-wasm/nodejs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countHeldSets, createCedarPolicies } from "./cedar-engine.ts";
import type { CedarRule } from "./cedar-rule.ts";
import { givenBundle } from "./given-bundle.ts";
import { parseCedarFile } from "./parse-cedar.ts";
import { parsePolicy } from "./parse-policy.ts";
import type { CedarAnswer, CedarQuestion, Policy } from "./policy.ts";
import type { PolicyProblem } from "./problem.ts";
import { toProblemLines } from "./problem.ts";
import { createRuleIds } from "./rule-ids.ts";

const question: CedarQuestion = {
  tenant: "acme",
  user: "ada",
  agent: "main",
  runtime: "claude-code",
  tool: "shell.run",
  action: "run",
  effect: "execute",
  dataClass: "internal",
  environment: "development",
  signals: [],
  labels: [],
};

function load(changes: Readonly<Record<string, string>> = {}): Policy {
  const parsed = parsePolicy(givenBundle(changes), "small");
  if (!parsed.ok) throw new Error(toProblemLines(parsed.problems));
  return parsed.policy;
}

/** The policies of the small bundle, or of one text in place of them. */
function readRules(text?: string): {
  readonly rules: readonly CedarRule[];
  readonly actions: readonly string[];
} {
  const files = givenBundle();
  const ids = createRuleIds([]);
  const names = { hasSignal: () => true, hasLabel: () => true, hasTool: () => true };
  const read = (file: string, content: string): readonly CedarRule[] => {
    const problems: PolicyProblem[] = [];
    const schema = files.get("schema.cedarschema") ?? "";
    const rules = parseCedarFile(
      file,
      content,
      { isStatic: file === "static-deny.cedar", schema, ids, names },
      problems,
    );
    return problems.length === 0 ? rules : [];
  };
  const rules =
    text === undefined
      ? ["static-deny.cedar", "authorization.cedar"].flatMap((file) => read(file, files.get(file) ?? ""))
      : read("authorization.cedar", text);
  return { rules, actions: ["run", "read", "write", "note"] };
}

const idsOf = (answer: CedarAnswer): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(answer).map(([list, matches]) => [
      list,
      (matches as CedarAnswer["denied"]).map(({ id, reason }) =>
        reason === "RULE_FAILED" ? `${id} failed` : id,
      ),
    ]),
  );
/** True for every question without signals, and an overflow for the others: the validator cannot see it. */
const failing = "if context.signals.isEmpty() then true else 9223372036854775807 + 1 > 0";

describe("what Cedar says", () => {
  const { cedar: policies } = load();

  it("names every forbid and every permit that holds, in the order of their ids", () => {
    const signals = ["git.push.force", "network.send", "secret.read"];
    expect(policies.ask({ ...question, signals, labels: ["secret_read"] })).toEqual({
      denied: [
        { id: "deny.force-push", reason: "STATIC_DENY", message: "push without force", priority: 10 },
        {
          id: "deny.secret-file",
          reason: "STATIC_DENY",
          message: "ask for the value that is needed; this file holds secrets",
          priority: 0,
        },
      ],
      forbidden: [
        {
          id: "deny.after-secret",
          reason: "NOT_AUTHORIZED",
          message: "a secret was read in this session; nothing leaves from here",
          priority: 0,
        },
      ],
      permitted: [
        {
          id: "allow.run",
          reason: "ALLOWED",
          message: "a rule of the catalogue allows this tool",
          priority: 0,
        },
      ],
    });
  });

  it("permits nothing that no permit is about", () => {
    expect(idsOf(policies.ask({ ...question, environment: "production" }))).toEqual({
      denied: [],
      forbidden: [],
      permitted: [],
    });
  });

  it("still denies what it denies to everybody when the action is unknown, and permits nothing", () => {
    const answer = policies.ask({ ...question, action: "", signals: ["secret.read"] });
    expect(idsOf(answer)).toEqual({ denied: ["deny.secret-file"], forbidden: [], permitted: [] });
    const open = load({ "authorization.cedar": '@id("allow.all") permit(principal, action, resource);' });
    expect(open.cedar.ask({ ...question, action: "nope" }).permitted).toEqual([]);
  });

  it("is the same for the same question, asked first or again", () => {
    const one = { ...question, signals: ["git.push.force"] };
    expect(policies.ask(one)).toEqual(policies.ask({ ...one }));
    expect(load().cedar.ask(one)).toEqual(policies.ask(one));
  });

  it("is not the same for another user when a policy reads the user", () => {
    const text =
      '@id("allow.ada") permit(principal, action == Action::"run", resource) when { principal.user == "ada" };';
    const named = load({ "authorization.cedar": text }).cedar;
    expect(idsOf(named.ask(question)).permitted).toEqual(["allow.ada"]);
    expect(idsOf(named.ask({ ...question, user: "bob" })).permitted).toEqual([]);
    expect(idsOf(named.ask(question)).permitted).toEqual(["allow.ada"]);
  });

  it("never throws, whatever is asked", () => {
    const odd = ["", "\ud800", "\u0000", '"', "__proto__", "x".repeat(100_000)];
    for (const text of odd) {
      const asked = {
        ...question,
        tenant: text,
        user: text,
        agent: text,
        tool: text,
        signals: [text],
        labels: [text],
      };
      expect(policies.ask(asked).denied).toEqual([]);
    }
    const broken = { ...question, signals: null } as unknown as CedarQuestion;
    expect(policies.ask(broken)).toMatchObject({
      denied: [{ id: "cedar", reason: "RULE_FAILED" }],
      permitted: [],
    });
  });
});

describe("a policy that fails in evaluation", () => {
  const asked = { ...question, signals: ["deploy"] };

  it("denies by its name when it forbids", () => {
    const text = `@id("deny.broken") @message("no") forbid(principal, action, resource) when { ${failing} };`;
    const denied = load({ "static-deny.cedar": text }).cedar.ask(asked);
    expect(denied.denied).toMatchObject([{ id: "deny.broken", reason: "RULE_FAILED" }]);
    const forbidden = load({ "authorization.cedar": text }).cedar.ask(asked);
    expect(forbidden.forbidden).toMatchObject([{ id: "deny.broken", reason: "RULE_FAILED" }]);
  });

  it("denies by its name when it permits, beside the permits that hold", () => {
    const text = `@id("allow.broken") permit(principal, action, resource) when { ${failing} };
@id("allow.run") permit(principal, action == Action::"run", resource);`;
    const { forbidden, permitted } = load({ "authorization.cedar": text }).cedar.ask(asked);
    expect(forbidden).toMatchObject([{ id: "allow.broken", reason: "RULE_FAILED" }]);
    expect(permitted).toMatchObject([{ id: "allow.run" }]);
  });
});

describe("a policy that asks for a signal that is not there", () => {
  const broken = (conditions: string): string =>
    `@id("deny.broken") @message("no") forbid(principal, action, resource) ${conditions};`;
  const absent = 'context.signals.contains("git.push")';

  it.each([
    `when { (${failing}) && ${absent} }`,
    `when { ${failing} } when { ${absent} }`,
    `unless { !(${failing}) } when { ${absent} }`,
  ])("still fails when it fails before it asks: %s", (conditions) => {
    const policies = load({ "static-deny.cedar": broken(conditions) }).cedar;
    expect(idsOf(policies.ask({ ...question, signals: ["deploy"] })).denied).toEqual(["deny.broken failed"]);
  });

  it("does not fail when it asks first", () => {
    const policies = load({ "static-deny.cedar": broken(`when { ${absent} && (${failing}) }`) }).cedar;
    expect(policies.ask({ ...question, signals: ["deploy"] }).denied).toEqual([]);
    expect(idsOf(policies.ask({ ...question, signals: ["git.push"] })).denied).toEqual([
      "deny.broken failed",
    ]);
  });
});

describe("bundles side by side", () => {
  it("do not disturb each other, though their policies have the same names", () => {
    const text = (signal: string): Record<string, string> => ({
      "static-deny.cedar": `@id("deny.x") @message("no") forbid(principal, action, resource) when { context.signals.contains("${signal}") };`,
    });
    const [one, other] = [load(text("deploy")), load(text("git.push"))];
    for (const signal of ["deploy", "git.push"]) {
      const asked = { ...question, signals: [signal] };
      expect(one.cedar.ask(asked).denied.length).toBe(signal === "deploy" ? 1 : 0);
      expect(other.cedar.ask(asked).denied.length).toBe(signal === "deploy" ? 0 : 1);
    }
  });

  it("that are the same are held once, however often they are loaded", () => {
    const { rules, actions } = readRules();
    const ask = (): unknown =>
      createCedarPolicies(rules, actions).ask({ ...question, signals: ["secret.read", "network.send"] });
    ask();
    const before = countHeldSets();
    for (let time = 0; time < 1000; time += 1) ask();
    load().cedar.ask(question);
    expect(countHeldSets()).toBe(before);
  });

  it("hold no more sets than a bound, whatever is asked, and answer the same past it", () => {
    const names = ["deploy", "git.push", "git.commit", "secret.read", "network.send", "network.fetch"].concat(
      ...[["file.delete", "infra.change", "cron.change", "process.kill", "disk.write", "package.install"]],
    );
    const text = names
      .map(
        (name) =>
          `@id("deny.${name}") @message("no") forbid(principal, action == Action::"run", resource) when { context.signals.contains("${name}") };`,
      )
      .join("\n");
    const { cedar: policies } = load({ "static-deny.cedar": text });
    const before = countHeldSets();
    for (let mask = 0; mask < 1 << names.length; mask += 7) {
      const signals = names.filter((_, bit) => (mask >> bit) & 1).sort();
      expect(policies.ask({ ...question, signals }).denied.map(({ id }) => id)).toEqual(
        signals.map((name) => `deny.${name}`),
      );
    }
    expect(countHeldSets() - before).toBeLessThanOrEqual(256);
  }, 60_000);
});

/** Cedar as its book says: the forbids alone under a permit of everything, and the permits alone. */
function plainAnswer(texts: ReadonlyMap<string, string>, asked: CedarQuestion): Record<string, string[]> {
  const { tenant, user, agent, runtime, tool, action, effect, dataClass, environment, signals, labels } =
    asked;
  const evaluate = (policies: Record<string, string>): string[] => {
    const answer = cedar.isAuthorized({
      principal: { type: "Agent", id: agent },
      action: { type: "Action", id: action },
      resource: { type: "Tool", id: tool },
      context: {
        signals: [...signals],
        labels: [...labels],
        tool,
        effect,
        runtime,
        environment,
        tenant,
        user,
      },
      policies: { staticPolicies: policies },
      entities: [
        { uid: { type: "Agent", id: agent }, attrs: { tenant, user, runtime }, parents: [] },
        {
          uid: { type: "Tool", id: tool },
          attrs: { effect, data_class: dataClass, environment },
          parents: [],
        },
      ],
    });
    if (answer.type === "failure") throw new Error(JSON.stringify(answer.errors));
    const { reason, errors } = answer.response.diagnostics;
    return [
      ...reason.filter((id) => id !== "everything"),
      ...errors.map(({ policyId }) => `${policyId} failed`),
    ];
  };
  const those = (effectWord: string): Record<string, string> =>
    Object.fromEntries([...texts].filter(([, text]) => text.includes(`${effectWord}(`)));
  const forbids = evaluate({ ...those("forbid"), everything: "permit(principal, action, resource);" });
  const permits = evaluate(those("permit"));
  const failed = permits.filter((id) => id.endsWith(" failed"));
  return {
    denied: [],
    forbidden: [...forbids, ...failed].sort(),
    permitted: permits.filter((id) => !failed.includes(id)).sort(),
  };
}

describe("the engine and plain Cedar", () => {
  const signals = ["deploy", "git.push", "secret.read"];
  const labels = ["secret_read", "local_profile"];
  const name = fc.constantFrom(...signals);
  const atom = fc.oneof(
    name.map((one) => `context.signals.contains("${one}")`),
    fc.subarray(signals).map((some) => `context.signals.containsAny(${JSON.stringify(some)})`),
    fc
      .subarray(signals, { minLength: 1 })
      .map((some) => `context.signals.containsAll(${JSON.stringify(some)})`),
    fc.constantFrom(...labels).map((one) => `context.labels.contains("${one}")`),
    fc.constantFrom(
      'context.environment == "production"',
      '"acme" == principal.tenant',
      'resource.data_class == "secret"',
      'resource.environment != "production"',
      'principal == Agent::"main"',
      'resource == Tool::"shell.run"',
      'context.user like "a*"',
      'context.tool == "file.read"',
      'context.effect == "execute"',
      "context has tool",
      "context.labels.isEmpty()",
      `(${failing})`,
      '(if context.labels.contains("secret_read") then context.signals.contains("deploy") else 9223372036854775807 * 2 == 0)',
    ),
  );
  const { condition } = fc.letrec<{ condition: string }>((tie) => ({
    condition: fc.oneof(
      { depthSize: "small" },
      atom,
      fc
        .tuple(tie("condition"), fc.constantFrom("&&", "||"), tie("condition"))
        .map(([a, op, b]) => `(${a} ${op} ${b})`),
      tie("condition").map((one) => `!(${one})`),
    ),
  }));
  const clause = fc
    .tuple(fc.constantFrom("when", "unless"), condition)
    .map(([word, one]) => `${word} { ${one} }`);
  const scope = fc.tuple(
    fc.constantFrom("principal", 'principal == Agent::"main"', "principal is Agent"),
    fc.constantFrom("action", 'action == Action::"run"', 'action in [Action::"run", Action::"read"]'),
    fc.constantFrom("resource", 'resource == Tool::"shell.run"'),
  );
  const policy = fc
    .tuple(fc.constantFrom("permit", "forbid"), scope, fc.array(clause, { maxLength: 3 }))
    .map(([effect, parts, clauses]) => `${effect}(${parts.join(", ")}) ${clauses.join(" ")};`);
  const asked = fc.record({
    tenant: fc.constantFrom("acme", "other"),
    user: fc.constantFrom("ada", "bob"),
    agent: fc.constantFrom("main", "child"),
    runtime: fc.constantFrom("claude-code", "codex"),
    tool: fc.constantFrom("shell.run", "file.read"),
    action: fc.constantFrom("run", "read"),
    effect: fc.constantFrom("execute" as const, "read" as const),
    dataClass: fc.constantFrom("internal" as const, "secret" as const),
    environment: fc.constantFrom("production", "development"),
    signals: fc.subarray(signals),
    labels: fc.subarray(labels),
  });

  it("agree on any policies and any questions", () => {
    let compared = 0;
    fc.assert(
      fc.property(
        fc.array(policy, { minLength: 1, maxLength: 6 }),
        fc.array(asked, { minLength: 8, maxLength: 8 }),
        (texts, questions) => {
          const named = new Map(texts.map((text, index) => [`p.${String(index)}`, text]));
          const file = [...named].map(([id, text]) => `@id("${id}") @message("m")\n${text}`).join("\n");
          // What the strict validator refuses, such as a policy that can never match, is no policy.
          const { rules, actions } = readRules(file);
          if (rules.length === 0) return;
          const policies = createCedarPolicies(rules, actions);
          for (const one of questions) {
            compared += 1;
            expect(idsOf(policies.ask(one)), file).toEqual(plainAnswer(named, one));
          }
        },
      ),
      { numRuns: 250 },
    );
    expect(compared).toBeGreaterThan(400);
  }, 120_000);
});
