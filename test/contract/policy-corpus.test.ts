import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import type { DecisionName, GateRequest, JsonObject } from "../../schemas/gate.ts";
import { gateRequestSchema } from "../../schemas/gate.ts";
import { claudeCode } from "../../services/adapters/claude-code/claude-code.ts";
import { codex } from "../../services/adapters/codex/codex.ts";
import { isCommonlyThere } from "../../services/gate/classify-code.ts";
import type { Classify } from "../../services/gate/classified.ts";
import { createClassifier } from "../../services/gate/classifier.ts";
import type { Facts } from "../../services/gate/facts-of-call.ts";
import { checkBundle, loadPolicy } from "../../services/gate/policy/load-policy.ts";
import type { Judge } from "../../services/gate/policy/run-cases.ts";
import type { Policy } from "../../services/gate/policy/policy.ts";
import type { Ruling } from "../../services/gate/ruling.ts";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import { loadSqlParser } from "../../services/gate/sql/load-sql-parser.ts";
import { decide } from "../../services/gate/stages/decide.ts";
import { readCorpus, wrapCommand } from "../corpus/commands/corpus.ts";
import { readPolicyCorpus } from "../corpus/policy/corpus.ts";
import { projectDir } from "../harness/stack.ts";

/** The shipped bundles against every request of the corpora: parser, classifier, Cedar and stages, and no server. */

const policyDir = join(projectDir, "deploy", "policy");
/** Until the new bundle has the default's place it stands beside it. */
const defaultDir = join(policyDir, existsSync(join(policyDir, "next-default")) ? "next-default" : "default");
const strictDir = join(policyDir, "strict");
const strictness: readonly DecisionName[] = ["allow", "modify", "require_approval", "defer", "deny"];
const wrappings = 2_000;

const facts = (labels: readonly string[] = [], tenantState: "active" | "frozen" = "active"): Facts => ({
  nowMs: Date.UTC(2026, 0, 5, 12),
  environment: "development",
  tenant: { id: "acme", state: tenantState, version: 1 },
  session: { version: 1, labels, openApprovals: 0, deferredSinceMs: null },
  approval: null,
  isRevoked: false,
  counters: {},
  dated: {},
});
const toRequest = (command: string): GateRequest =>
  gateRequestSchema.parse({
    runtime: "own",
    session_id: "corpus",
    tool: "shell.run",
    input: { command },
    working_directory: "/project",
  });

let standard: Policy;
let strict: Policy;
let classify: Classify;

beforeAll(async () => {
  const [bash, sql] = await Promise.all([loadBashParser(), loadSqlParser()]);
  classify = createClassifier({ bash, sql, home: "/home/u" });
  [standard, strict] = await Promise.all([loadPolicy(defaultDir), loadPolicy(strictDir)]);
});

/** Decides with every operand at hand: a file that is there is no reason to ask. */
function answer(request: GateRequest, policy: Policy, given: Facts = facts()): Ruling {
  const operands = classify(request, policy).operandPaths.map((path) => ({
    path,
    digest: isCommonlyThere(path) ? `sha256:${path}` : null,
  }));
  return decide(request, given, policy, { classify, operands });
}
const judge: Judge = (request, given, policy) => answer(request, policy, given);
const toLine = (text: string, wanted: string, { decision, matchedRules }: Ruling): string =>
  `${wanted} but ${decision}: ${text}\n    by ${matchedRules.join(" ")}`;

describe("the corpus of commands and the default bundle", () => {
  it.each([...new Set(readCorpus().map(({ family }) => family))])("answers each command of %s", (family) => {
    const commands = readCorpus().filter((one) => one.family === family);
    const wrong = commands.flatMap(({ text, decision }) => {
      const ruling = answer(toRequest(text), standard);
      return ruling.decision === decision ? [] : [toLine(text, decision, ruling)];
    });
    expect(wrong.join("\n")).toBe("");
  });

  it("allows at least two of five commands, and denies at least one of twenty", () => {
    const all = readCorpus();
    const share = (name: DecisionName) => all.filter(({ decision }) => decision === name).length / all.length;
    expect(share("allow")).toBeGreaterThanOrEqual(0.4);
    expect(share("deny")).toBeGreaterThanOrEqual(0.05);
  });

  it("never allows an opaque command that is more than a bound file of the workspace", () => {
    const allowed = readCorpus().filter(({ text, opaque }) => {
      const { decision, classified } = answer(toRequest(text), standard);
      const isBound =
        classified.signals.includes("code.workspace") && !classified.signals.includes("command.unbound");
      return opaque && decision === "allow" && !isBound;
    });
    expect(allowed.map(({ text }) => text)).toEqual([]);
  });

  it("never allows what it denies or asks for inside of generated wrappings", () => {
    // One that ends in an operator is no command of its own, and a wrapping would complete it.
    const dangerous = readCorpus().filter(({ text, decision }) => decision !== "allow" && !/&&$/.test(text));
    fc.assert(
      fc.property(
        fc.constantFrom(...dangerous),
        fc.array(fc.nat(1_000), { minLength: 1, maxLength: 4 }),
        ({ text }, layers) => {
          const wrapped = wrapCommand(text, layers).text;
          const ruling = answer(toRequest(wrapped), standard);
          if (ruling.decision === "allow" || ruling.decision === "modify") {
            throw new Error(toLine(wrapped, "not allowed", ruling));
          }
        },
      ),
      { numRuns: wrappings },
    );
  }, 180_000);
});

describe("the corpus of requests and the default bundle", () => {
  it.each(readPolicyCorpus())("$name", ({ request, tenantState, expect: owed }) => {
    const ruling = answer(request, standard, facts([], tenantState));
    expect({ decision: ruling.decision, reason_code: ruling.reason }).toEqual({
      decision: owed.decision,
      reason_code: owed.reason_code,
    });
    expect(ruling.matchedRules).toEqual(expect.arrayContaining([...owed.rules]));
  });

  it("validates the input of every recorded call", () => {
    const wrong: string[] = [];
    let calls = 0;
    for (const adapter of [claudeCode, codex]) {
      const dir = join(projectDir, "test", "corpus", "hooks", adapter.runtime);
      const files = readdirSync(dir, { recursive: true, encoding: "utf8" });
      for (const file of files.filter((name) => /\.jsonl?$/.test(name))) {
        const whole = readFileSync(join(dir, file), "utf8");
        const texts = file.endsWith("l") ? whole.split("\n").filter((line) => line !== "") : [whole];
        for (const text of texts) {
          const translation = adapter.translate(JSON.parse(text) as JsonObject, text.length);
          if (translation.kind !== "gated") continue;
          calls += 1;
          const { findings } = classify(translation.request, standard);
          if (findings.length > 0)
            wrong.push(`${file}: ${findings.map(({ message }) => message).join(", ")}`);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(calls).toBeGreaterThan(20);
  });
});

describe("the shipped bundles", () => {
  it.each([
    ["default", defaultDir],
    ["strict", strictDir],
  ])("%s answers its own cases", async (_, dir) => {
    const { problems, failures } = await checkBundle(dir, judge);
    expect(problems).toEqual([]);
    expect(failures).toEqual([]);
  });

  it("strict never answers less strictly than default", () => {
    const requests = [
      ...readCorpus().map(({ text }) => toRequest(text)),
      ...readPolicyCorpus().map(({ request }) => request),
    ];
    const looser: string[] = [];
    for (const labels of [[], ["untrusted.input"], ["secret.read"], ["production.touched"]]) {
      for (const request of requests) {
        const [one, other] = [standard, strict].map((policy) => answer(request, policy, facts(labels)));
        if (one === undefined || other === undefined) throw new Error("a bundle gave no answer");
        if (strictness.indexOf(other.decision) >= strictness.indexOf(one.decision)) continue;
        looser.push(toLine(JSON.stringify(request.input), one.decision, other));
      }
    }
    expect(looser).toEqual([]);
  }, 180_000);
});
