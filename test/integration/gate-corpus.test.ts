import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer, GateRequest } from "../../schemas/gate.ts";
import type { Classify } from "../../services/gate/classified.ts";
import { createClassifier } from "../../services/gate/classifier.ts";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import { loadSqlParser } from "../../services/gate/sql/load-sql-parser.ts";
import { decide } from "../../services/gate/stages/decide.ts";
import { emptyFacts } from "../../services/gate/unavailable.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, rigTenant } from "../harness/gate-rig.ts";
import type { PolicyCase } from "../harness/policy-corpus.ts";
import { policyCases } from "../harness/policy-corpus.ts";

let rig: GateRig;
let running: RunningGate;
let frozen: string;
let classify: Classify;
beforeAll(async () => {
  rig = await createGateRig();
  const [bash, sql] = await Promise.all([loadBashParser(), loadSqlParser()]);
  classify = createClassifier({ bash, sql });
  running = await rig.gate();
  await rig.admin.query("UPDATE access.tenants SET state = 'frozen' WHERE tenant_id = 'other'");
  frozen = await rig.token({ tenantId: "other" });
});
afterAll(() => rig.close());

/** This gate cannot look at the agent's files: what a plan would bind is not there. */
function withoutFiles(request: GateRequest): PolicyCase["expect"] {
  const facts = emptyFacts({ tenantId: rigTenant, environment: "test", nowMs: Date.now() });
  const { decision, reason, matchedRules } = decide(request, facts, rig.policy, { classify, operands: [] });
  return { decision, reason_code: reason, rules: [...matchedRules] };
}

describe("the policy corpus over HTTP", () => {
  const cases = policyCases();
  it("has at least forty cases", () => {
    expect(cases.length).toBeGreaterThanOrEqual(40);
  });

  it.each(cases)(
    "decides $name as in process, and records it",
    async ({ name, request, facts, expect: expected }) => {
      const token = facts.tenant.state === "frozen" ? frozen : undefined;
      // A session of its own: what one case touches is a label for the next.
      const asked = { ...request, session_id: `corpus ${name}` };
      const answer = (await running.post("/v1/gate/decide", asked, token)).json as GateAnswer;
      const wanted =
        classify(request, rig.policy).operandPaths.length === 0 ? expected : withoutFiles(request);
      expect({
        decision: answer.decision,
        reason_code: answer.reason_code,
        rules: answer.matched_rules,
      }).toEqual({ ...wanted, rules: expect.arrayContaining(wanted.rules) as unknown });
      const stored = await rig.admin.query<{ answer: GateAnswer }>(
        "SELECT answer FROM gate.decisions WHERE decision_id = $1",
        [answer.decision_id.slice(4)],
      );
      const { capability } = answer;
      expect(stored.rows[0]?.answer).toEqual(
        capability === undefined ? answer : { ...answer, capability: { ...capability, token: null } },
      );
    },
  );

  it("leaves one requested event and one ruling per decision, and a capability per allowed effect", async () => {
    const events = await rig.events();
    const count = (type: string): number => events.filter((one) => one.type === type).length;
    const decisions = await rig.count("gate.decisions");
    expect(count("agent.tool.requested")).toBe(decisions);
    expect(count("agent.tool.authorized") + count("agent.tool.denied")).toBe(decisions);
    expect(count("agent.capability.issued")).toBe(await rig.count("gate.capabilities"));
    const ids = new Set(events.map((one) => one.event_id));
    expect(events.every((one) => one.causation_id === null || ids.has(one.causation_id))).toBe(true);
  });
});
