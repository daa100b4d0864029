import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gateRequestSchema } from "../../schemas/gate.ts";
import { createPolicyOfNow } from "../../services/gate/capability/policy-of-now.ts";
import { createClassifier } from "../../services/gate/classifier.ts";
import type { Classify } from "../../services/gate/classified.ts";
import type { Facts } from "../../services/gate/facts-of-call.ts";
import { parsePolicy } from "../../services/gate/policy/parse-policy.ts";
import type { Policy } from "../../services/gate/policy/policy.ts";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import type { JudgeRecord } from "../../services/gate/simulate.ts";
import { loadSqlParser } from "../../services/gate/sql/load-sql-parser.ts";
import { decide } from "../../services/gate/stages/decide.ts";
import { systemClock } from "../../services/platform/clock.ts";
import type { CapabilityRig, IssuedRight } from "../harness/capability-rig.ts";
import { createCapabilityRig } from "../harness/capability-rig.ts";

let rig: CapabilityRig;
let classify: Classify;
beforeAll(async () => {
  rig = await createCapabilityRig();
  const [bash, sql] = await Promise.all([loadBashParser(), loadSqlParser()]);
  classify = createClassifier({ bash, sql });
});
afterAll(() => rig.close());

const base: Record<string, string> = {
  "bundle.yaml": "revision: policy@2026-11-30.1\ndescription: a store\nlocal_tools: []\n",
  "tools.yaml":
    "tools:\n  - tool: store.put\n    effect: write\n    action: put\n    data_class: internal\n    resource: { kind: text, fields: [order] }\n",
  "schema.cedarschema":
    'entity Agent = { "tenant": String, "user": String, "runtime": String };\n' +
    'entity Tool = { "effect": String, "data_class": String, "environment": String };\n' +
    "action put appliesTo { principal: [Agent], resource: [Tool], context: { signals: Set<String>, labels: Set<String>, " +
    "tool: String, effect: String, runtime: String, environment: String, tenant: String, user: String } };\n",
  "static-deny.cedar":
    '@id("deny.production")\n@message("not in production")\nforbid (principal, action, resource) when { context.environment == "production" };\n',
  "authorization.cedar": '@id("allow.put")\npermit (principal, action == Action::"put", resource);\n',
};
const policyOf = (changes: Record<string, string> = {}): Policy => {
  const parsed = parsePolicy(new Map(Object.entries({ ...base, ...changes })), "store");
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.policy;
};
const revision = (n: number): Record<string, string> => ({
  "bundle.yaml": (base["bundle.yaml"] ?? "").replace("30.1", `30.${String(n)}`),
});
const judge: JudgeRecord = ({ request, facts, operands }, policy) =>
  decide(request, facts, policy, { classify, operands: operands ?? [] });

const request = gateRequestSchema.parse({
  runtime: "own",
  session_id: "s-1",
  tool: "store.put",
  input: { order: "orders/7" },
});
const facts: Facts = {
  nowMs: Date.UTC(2026, 10, 30),
  environment: "test",
  tenant: { id: "acme", state: "active", version: 1 },
  session: { version: 1, labels: [], openApprovals: 0, deferredSinceMs: null },
  approval: null,
  isRevoked: false,
  counters: {},
  dated: {},
};

/** A right that the first revision gave. */
const issueUnder = async (policy: Policy, storedFacts: unknown = facts): Promise<IssuedRight> => {
  const ruling = decide(request, facts, policy, { classify, operands: [] });
  expect([ruling.decision, ruling.needsCapability]).toEqual(["allow", true]);
  return rig.issue({
    maxCalls: 5,
    revision: policy.revision,
    decided: { request, facts: storedFacts, planDigest: ruling.planDigest ?? "" },
  });
};
const spendUnder = async (policy: Policy, right: IssuedRight): Promise<unknown> => {
  const gate = await rig.gate({
    policy: createPolicyOfNow({
      database: rig.database(),
      keys: null,
      environment: "test",
      clock: systemClock,
      current: () => policy,
      judge,
    }),
  });
  const answer = await gate.call("POST", "/v1/capabilities/spend", {
    token: right.token,
    plan_digest: right.planDigest,
    idempotency_key: "k",
  });
  return answer.json["spent"] ?? answer.json["differs"];
};

describe("a right of an earlier revision", () => {
  it("holds where the revision of now allows the same plan", async () => {
    const first = policyOf();
    const right = await issueUnder(first);
    const second = policyOf(revision(2));
    expect(second.revision).not.toBe(first.revision);
    expect(await spendUnder(second, right)).toBe(true);
  });

  it("ends where the revision of now denies the plan", async () => {
    const stricter = policyOf({
      ...revision(3),
      "static-deny.cedar": `${base["static-deny.cedar"] ?? ""}@id("deny.put")\n@message("closed")\nforbid (principal, action == Action::"put", resource);\n`,
    });
    const right = await issueUnder(policyOf());
    expect(await spendUnder(stricter, right)).toBe("policy_revision");
    expect(await spendUnder(policyOf(), right)).toBe("revoked");
  });

  it("ends where the revision of now allows it with other limits, or asks a person", async () => {
    const limited = policyOf({
      ...revision(4),
      "constraints.yaml":
        "rules:\n  - id: narrow.put\n    when: { tools: [store.put] }\n    constraints: { network: none }\n",
    });
    expect(await spendUnder(limited, await issueUnder(policyOf()))).toBe("policy_revision");
    const asking = policyOf({
      ...revision(5),
      "approvals.yaml":
        "rules:\n  - id: approve.put\n    when: { tools: [store.put] }\n    message: a person looks at it\n    ttl: 15m\n",
    });
    expect(await spendUnder(asking, await issueUnder(policyOf()))).toBe("policy_revision");
  });

  it("ends where its decision cannot be made again", async () => {
    const right = await issueUnder(policyOf(), {});
    expect(await spendUnder(policyOf(revision(6)), right)).toBe("policy_revision");
  });
});
