import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gateRequestSchema } from "../../schemas/gate.ts";
import type { Classify } from "../../services/gate/classified.ts";
import { createClassifier } from "../../services/gate/classifier.ts";
import type { Facts } from "../../services/gate/facts-of-call.ts";
import { parsePolicy } from "../../services/gate/policy/parse-policy.ts";
import type { Policy } from "../../services/gate/policy/policy.ts";
import type { ActivationContext } from "../../services/gate/revisions/activate.ts";
import { activateBundle } from "../../services/gate/revisions/activate.ts";
import type { BundleFiles } from "../../services/gate/revisions/bundle-judge.ts";
import type { RightsEnder } from "../../services/gate/revisions/end-denied-rights.ts";
import { createRightsEnder } from "../../services/gate/revisions/end-denied-rights.ts";
import { createBundleJudge } from "../../services/gate/revisions/judge-bundle.ts";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import { loadSqlParser } from "../../services/gate/sql/load-sql-parser.ts";
import { decide } from "../../services/gate/stages/decide.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { eventually } from "../harness/eventually.ts";
import type { CapabilityRig, IssuedRight } from "../harness/capability-rig.ts";
import { createCapabilityRig } from "../harness/capability-rig.ts";

let rig: CapabilityRig;
let classify: Classify;
let rights: RightsEnder;
let context: ActivationContext;
beforeAll(async () => {
  rig = await createCapabilityRig();
  const [bash, sql] = await Promise.all([loadBashParser(), loadSqlParser()]);
  classify = createClassifier({ bash, sql });
  const { codec } = rig.deps;
  const database = rig.database();
  rights = createRightsEnder({
    database,
    keys: null,
    environment: "test",
    codec,
    clock: systemClock,
    log: createLog({ service: "gate", level: "silent" }),
    judge: ({ request, facts, operands }, policy) =>
      decide(request, facts, policy, { classify, operands: operands ?? [] }),
  });
  context = {
    database,
    codec,
    clock: systemClock,
    environment: "test",
    judge: createBundleJudge(classify),
    rights,
  };
});
afterAll(async () => {
  await rights.close();
  await rig.close();
});

const files: Record<string, string> = {
  "tools.yaml":
    "tools:\n  - tool: store.put\n    effect: write\n    action: put\n    data_class: internal\n    resource: { kind: text, fields: [order] }\n",
  "schema.cedarschema":
    'entity Agent = { "tenant": String, "user": String, "runtime": String };\n' +
    'entity Tool = { "effect": String, "data_class": String, "environment": String };\n' +
    "action put appliesTo { principal: [Agent], resource: [Tool], context: { signals: Set<String>, labels: Set<String>, " +
    "tool: String, effect: String, runtime: String, environment: String, tenant: String, user: String } };\n",
  "signals.yaml": "signals:\n  - id: order.of-bob\n    field: order\n    matches: 'bob/'\n",
  "authorization.cedar": '@id("allow.put")\npermit (principal, action == Action::"put", resource);\n',
  "cases/own.yaml":
    "cases:\n  - name: nothing in production\n    request: { tool: store.put, input: { order: a/1 } }\n    facts: { environment: production }\n    expect: { decision: deny }\n",
};
const production =
  '@id("deny.production")\n@message("not in production")\nforbid (principal, action, resource) when { context.environment == "production" };\n';
const bob =
  '@id("deny.bob")\n@message("bob is closed")\nforbid (principal, action, resource) when { context.signals.contains("order.of-bob") };\n';
const bundle = (n: number, deny: string): BundleFiles => ({
  name: "store",
  files: new Map(
    Object.entries({
      ...files,
      "bundle.yaml": `revision: policy@2026-11-30.${String(n)}\ndescription: a store\nlocal_tools: []\n`,
      "static-deny.cedar": deny,
    }),
  ),
});
const policyOf = (one: BundleFiles): Policy => {
  const parsed = parsePolicy(one.files, one.name);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.policy;
};
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
const issue = (policy: Policy, order: string): Promise<IssuedRight> => {
  const request = gateRequestSchema.parse({
    runtime: "own",
    session_id: "s-1",
    tool: "store.put",
    input: { order },
  });
  const { planDigest } = decide(request, facts, policy, { classify, operands: [] });
  return rig.issue({ revision: policy.revision, decided: { request, facts, planDigest: planDigest ?? "" } });
};
const revoked = async (): Promise<string[]> => {
  const { rows } = await rig.admin.query<{ id: string }>(
    "SELECT 'cap_' || capability_id AS id FROM gate.capabilities WHERE revoked_at IS NOT NULL",
  );
  return rows.map((row) => row.id);
};

describe("a policy that denies what an earlier one allowed", () => {
  it("ends the rights of the denied plans with its activation, and no others", async () => {
    const first = bundle(1, production);
    await activateBundle(context, first, { by: "ann", note: null });
    const kept = await issue(policyOf(first), "alice/1");
    const ended = await issue(policyOf(first), "bob/1");
    const second = bundle(2, production + bob);
    const done = await activateBundle(context, second, { by: "ann", note: "bob left" });
    expect(done.revoked_capabilities).toBe(1);
    expect(await revoked()).toEqual([ended.id]);
    expect(kept.id).not.toBe(ended.id);
    expect(await rig.events("agent.capability.revoked")).toMatchObject([
      {
        tenant_id: "acme",
        capability_id: ended.id,
        origin: "processor:gate",
        redacted_summary: { reason: `policy ${done.revision} denies the plan` },
      },
    ]);
  });

  it("ends more of them than one transaction holds, the rest after it", { timeout: 120_000 }, async () => {
    const third = bundle(3, production);
    await activateBundle(context, third, { by: "ann", note: null });
    const right = await issue(policyOf(third), "bob/2");
    // Copies of one right, with ids around it.
    await rig.admin.query(
      `INSERT INTO gate.capabilities
        SELECT (jsonb_populate_record(c, jsonb_build_object('capability_id',
          left(c.capability_id::text, 24) || lpad(to_hex(n), 12, '0')))).*
        FROM gate.capabilities AS c, generate_series(1, 2500) AS n WHERE 'cap_' || capability_id = $1`,
      [right.id],
    );
    const fourth = bundle(4, production + bob);
    const done = await activateBundle(context, fourth, { by: "ann", note: null });
    expect(done.revoked_capabilities).toBeLessThan(2_501);
    await eventually(
      async () => (await revoked()).length,
      (count) => count === 2_502,
      { deadlineMs: 60_000 },
    );
    expect((await rig.events("agent.capability.revoked")).length).toBe(2_502);
  });
});

describe("a bundle", () => {
  it("is refused when a case of its own fails, or when it can deny nothing", async () => {
    const broken = bundle(9, production);
    const text = broken.files.get("cases/own.yaml") ?? "";
    const wrong = new Map([...broken.files, ["cases/own.yaml", text.replace("deny", "allow")]]);
    await expect(
      activateBundle(context, { name: "store", files: wrong }, { by: "ann", note: null }),
    ).rejects.toThrow(/cases\/own\.yaml:2: nothing in production: expected allow, found deny/);
    const silent = new Map([...broken.files].filter(([file]) => !file.startsWith("cases/")));
    await expect(
      activateBundle(context, { name: "store", files: silent }, { by: "ann", note: null }),
    ).rejects.toThrow(/can deny nothing/);
  });
});
