import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { answerLocally, localProfileSchema } from "../../schemas/local-profile.ts";
import type { LocalProfile } from "../../schemas/local-profile.ts";
import type { Policy } from "../../services/gate/policy/policy.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import { workPolicy } from "../harness/work-policy.ts";

let rig: GateRig;
let gate: RunningGate;
let policy: Policy;
const metrics = createMetrics();
const stored = new Map<string, Policy>();
beforeAll(async () => {
  rig = await createGateRig();
  policy = rig.policy;
  gate = await rig.gate({
    policy: () => policy,
    policyOf: (revision) => Promise.resolve(stored.get(revision) ?? null),
    metrics,
  });
});
afterAll(() => rig.close());

const profileOf = async (): Promise<LocalProfile> =>
  localProfileSchema.parse((await gate.get("/v1/gate/local-profile")).json);
const todo = (session: string, id: string, tool = "todo.write"): object =>
  ownRequest(tool, { todos: [] }, { session_id: session, tool_call_id: id });
const entry = (request: object, revision: string): object => ({
  request,
  policy_revision: revision,
  decided_at: new Date().toISOString(),
});
const report = (decisions: readonly object[]): ReturnType<RunningGate["post"]> =>
  gate.post("/v1/gate/local-decisions", { decisions });
const typesOf = async (session: string): Promise<string[]> =>
  (await rig.events()).filter((event) => event.execution.session_id === session).map(({ type }) => type);

/** What the default bundle names in `local_tools`. */
const localTools = ["todo.write", "todo.read", "plan.present", "user.ask", "tool.search"];

describe("the local profile", () => {
  it("lists the tools without effect that no rule can reach, for a minute, to runtimes", async () => {
    const profile = await profileOf();
    expect(profile).toMatchObject({
      policy_revision: policy.revision,
      digest: policy.digest,
      tools: localTools,
    });
    const leftMs = Date.parse(profile.expires_at) - Date.now();
    expect(leftMs).toBeGreaterThan(50_000);
    expect(leftMs).toBeLessThanOrEqual(60_000);
    const auditor = await rig.token({ roles: ["auditor"] });
    expect((await gate.get("/v1/gate/local-profile", auditor)).status).toBe(403);
  });

  it("lists nothing for a tenant that is frozen, nor a tool that a rule forbids once a secret was read", async () => {
    await rig.admin.query("UPDATE access.tenants SET state = 'frozen' WHERE tenant_id = 'acme'");
    expect((await profileOf()).tools).toEqual([]);
    await rig.admin.query("UPDATE access.tenants SET state = 'active' WHERE tenant_id = 'acme'");
    expect((await profileOf()).tools).toEqual(localTools);
    const before = policy;
    policy = workPolicy({
      "authorization.cedar": `@id("allow.all")
permit(principal, action, resource);

@id("deny.note-after-secret")
@message("nothing is noted any more")
forbid(principal, action == Action::"note", resource)
when { context.labels.contains("secret_read") };
`,
    });
    expect((await profileOf()).tools).toEqual([]);
    policy = before;
  });

  it.each([
    [
      "labels",
      "labels.yaml",
      "rules:\n  - { id: label.note, when: { tools: [todo.write] }, labels: [secret_read] }\n",
    ],
    [
      "labels whatever the tool",
      "labels.yaml",
      "rules:\n  - { id: label.all, when: {}, labels: [secret_read] }\n",
    ],
    [
      "approvals",
      "approvals.yaml",
      "rules:\n  - { id: ask.note, when: { tools: [todo.write] }, message: ask, ttl: 15m }\n",
    ],
    [
      "limits",
      "limits.yaml",
      "rates:\n  - { id: rate.note, when: { effects: [none] }, scope: session, window: 1m, limit: 5, message: slow down }\n",
    ],
  ])("does not list a tool that a rule for %s can reach", async (_, file, text) => {
    const before = policy;
    policy = workPolicy({ [file]: text });
    expect((await profileOf()).tools).toEqual([]);
    policy = before;
  });

  it("is what a plugin answers by, and what it answered is recorded once as a decision with its events", async () => {
    const profile = await profileOf();
    const request = todo("lp-one", "lp-call-1") as { tool: string; tool_call_id: string };
    const answer = answerLocally(profile, request, Date.now());
    expect(answer).toMatchObject({ decision: "allow", reason_code: "LOCAL_PROFILE" });
    const sent = [
      entry(request, profile.policy_revision),
      entry(todo("lp-one", "lp-call-2"), profile.policy_revision),
    ];
    expect((await report(sent)).json).toEqual({ recorded: 2, repeated: 0, ungated: 0, failed: [] });
    expect((await report(sent)).json).toEqual({ recorded: 0, repeated: 2, ungated: 0, failed: [] });
    const rows = await rig.admin.query<{ answer: GateAnswer; policy_revision: string }>(
      `SELECT answer, policy_revision FROM gate.decisions JOIN gate.sessions AS s USING (session_key)
        WHERE s.session_id = 'lp-one'`,
    );
    expect(rows.rows).toHaveLength(2);
    for (const row of rows.rows) {
      expect(row.policy_revision).toBe(profile.policy_revision);
      expect(row.answer).toMatchObject({
        decision: "allow",
        reason_code: "LOCAL_PROFILE",
        labels: ["local_profile"],
      });
    }
    expect(await typesOf("lp-one")).toEqual([
      "agent.tool.requested",
      "agent.tool.authorized",
      "agent.tool.requested",
      "agent.tool.authorized",
    ]);
    expect(await metrics.render()).toContain('fabric_gate_local_decisions_total{outcome="recorded"} 2');
    expect(rig.logLines.some((line) => line.includes("answered by the local profile"))).toBe(true);
  });

  it("records a tool that it did not list as an effect without a gate, and what it labels", async () => {
    const revision = policy.revision;
    const read = ownRequest(
      "file.read",
      { file_path: ".env" },
      { session_id: "lp-un", tool_call_id: "lp-un-1" },
    );
    const sent = [entry(read, revision)];
    expect((await report(sent)).json).toEqual({ recorded: 0, repeated: 0, ungated: 1, failed: [] });
    expect((await report(sent)).json).toEqual({ recorded: 0, repeated: 1, ungated: 0, failed: [] });
    expect(await typesOf("lp-un")).toEqual(["agent.effect.ungated"]);
    const session = await rig.admin.query<{ labels: string[] }>(
      "SELECT labels FROM gate.sessions WHERE session_id = 'lp-un'",
    );
    expect(session.rows[0]?.labels).toContain("secret.read");
    expect(rig.logLines.some((line) => line.includes("does not list"))).toBe(true);
  });

  it("is the one of the revision that was answered by, in force or not", async () => {
    const before = policy;
    const other = workPolicy({
      "bundle.yaml": "revision: policy@2026-01-31.2\ndescription: none is local\n",
    });
    stored.set(before.revision, before);
    policy = other;
    const old = await report([entry(todo("lp-old", "lp-old-1"), before.revision)]);
    expect(old.json).toEqual({ recorded: 1, repeated: 0, ungated: 0, failed: [] });
    const now = await report([entry(todo("lp-now", "lp-now-1"), other.revision)]);
    expect(now.json).toEqual({ recorded: 0, repeated: 0, ungated: 1, failed: [] });
    const unknown = await report([entry(todo("lp-what", "lp-what-1"), "policy@2020-01-01.1+000000000000")]);
    expect(unknown.json).toEqual({ recorded: 0, repeated: 0, ungated: 1, failed: [] });
    const rows = await rig.admin.query<{ policy_revision: string }>(
      "SELECT policy_revision FROM gate.decisions JOIN gate.sessions AS s USING (session_key) WHERE s.session_id = 'lp-old'",
    );
    expect(rows.rows).toEqual([{ policy_revision: before.revision }]);
    // A repeated report under another policy in force changes nothing.
    expect((await report([entry(todo("lp-old", "lp-old-1"), before.revision)])).json).toMatchObject({
      repeated: 1,
    });
    policy = before;
  });

  it("takes 500 decisions at once, and not one more, nor one without a call id", async () => {
    const revision = policy.revision;
    const many = Array.from({ length: 500 }, (_, index) =>
      entry(todo("lp-many", `m-${String(index)}`), revision),
    );
    expect((await report(many)).json).toEqual({ recorded: 500, repeated: 0, ungated: 0, failed: [] });
    expect((await report([...many, entry(todo("lp-many", "m-500"), revision)])).status).toBe(400);
    const nameless = { ...todo("lp-many", "x"), tool_call_id: undefined };
    expect((await report([entry(nameless, revision)])).status).toBe(400);
  });
});
