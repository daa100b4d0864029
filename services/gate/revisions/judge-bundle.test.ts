import { beforeAll, describe, expect, it } from "vitest";
import { gateRequestSchema } from "../../../schemas/gate.ts";
import type { Classify } from "../classified.ts";
import { createClassifier } from "../classifier.ts";
import type { Facts } from "../facts-of-call.ts";
import { givenBundle } from "../policy/given-bundle.ts";
import { loadBashParser } from "../shell/load-bash-parser.ts";
import { loadSqlParser } from "../sql/load-sql-parser.ts";
import { decide } from "../stages/decide.ts";
import type { BundleFiles } from "./bundle-judge.ts";
import { createBundleJudge } from "./judge-bundle.ts";
import { missingPolicy } from "./missing-policy.ts";

let classify: Classify;
beforeAll(async () => {
  const [bash, sql] = await Promise.all([loadBashParser(), loadSqlParser()]);
  classify = createClassifier({ bash, sql });
});

const forbidForce =
  '@id("deny.force")\n@message("no")\nforbid (principal, action, resource) when { context.signals.contains("git.push.force") };\n';
const forceCase = (expected: string): string =>
  `cases:\n  - name: by force\n    request: { tool: shell.run, input: { command: git push --force } }\n    expect: { decision: ${expected} }\n`;
const bundle = (changes: Record<string, string | null> = {}): BundleFiles => ({
  name: "given",
  files: givenBundle({ "static-deny.cedar": forbidForce, "cases/all.yaml": forceCase("deny"), ...changes }),
});

describe("judging a bundle", () => {
  it("names the same revision whether its cases are run or not, in every process", async () => {
    const checked = await createBundleJudge(classify).check(bundle());
    const loaded = createBundleJudge(classify).load(bundle());
    expect([loaded.revision, loaded.digest]).toEqual([checked.policy.revision, checked.policy.digest]);
    expect([checked.cases, checked.denies]).toEqual([1, 1]);
  });

  it("loads the policy that was checked, and not a second one", async () => {
    const judge = createBundleJudge(classify);
    const { policy } = await judge.check(bundle());
    expect(judge.load(bundle())).toBe(policy);
  });

  it("refuses a case that fails, and a bundle of which nothing proves that it denies", async () => {
    const judge = createBundleJudge(classify);
    await expect(judge.check(bundle({ "cases/all.yaml": forceCase("allow") }))).rejects.toThrow(
      /cases\/all\.yaml:2: by force: expected allow, found deny/,
    );
    await expect(judge.check(bundle({ "cases/all.yaml": null }))).rejects.toMatchObject({
      code: "POLICY_REFUSED",
    });
    // Every bundle denies what it cannot read.
    const unread = `cases:
  - { name: no text, request: { tool: shell.run, input: { command: 7 } }, expect: { decision: deny } }
`;
    await expect(judge.check(bundle({ "cases/all.yaml": unread }))).rejects.toThrow(
      /a bundle that can deny nothing is refused/,
    );
  });

  it("tells every fault at once", async () => {
    const judge = createBundleJudge(classify);
    const faulty = bundle({ "risk.yaml": "rules: 7\n", "labels.yaml": "rules: 8\n" });
    await expect(judge.check(faulty)).rejects.toThrow(/labels\.yaml:1:[^]*risk\.yaml:1:/);
    expect(() => judge.load(faulty)).toThrow(/labels\.yaml:1:[^]*risk\.yaml:1:/);
  });
});

describe("no policy", () => {
  it("denies every tool, and says that the policy is what is missing", () => {
    const facts: Facts = {
      nowMs: 0,
      environment: "test",
      tenant: { id: "acme", state: "active", version: 1 },
      session: { version: 0, labels: [], openApprovals: 0, deferredSinceMs: null },
      approval: null,
      isRevoked: false,
      counters: {},
      dated: {},
    };
    for (const tool of ["shell.run", "file.read", "no.such.tool"]) {
      const request = gateRequestSchema.parse({ runtime: "own", session_id: "s", tool, input: {} });
      const ruling = decide(request, facts, missingPolicy, { classify, operands: [] });
      expect([ruling.decision, ruling.reason, ruling.leadRule]).toEqual([
        "deny",
        "POLICY_MISSING",
        "policy.missing",
      ]);
    }
  });
});
