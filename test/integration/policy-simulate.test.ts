import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { openPolicyEngine, readBundle } from "../../services/app/policy-engine.ts";
import type { PolicyEngine } from "../../services/app/policy-engine.ts";
import { createRightsEnder } from "../../services/gate/revisions/end-denied-rights.ts";
import { addPolicyRoutes, policyAccess } from "../../services/gate/revisions/routes.ts";
import { loadRevision } from "../../services/gate/revisions/revision-rows.ts";
import type { PolicyWatch } from "../../services/gate/revisions/watch-policy.ts";
import { watchPolicy } from "../../services/gate/revisions/watch-policy.ts";
import type { SimulationReport } from "../../services/gate/simulate.ts";
import { simulate } from "../../services/gate/simulate.ts";
import type { RecordedSource } from "../../services/gate/simulate-source.ts";
import {
  loadRecordedDecision,
  readRecordedDecisions,
  readRecordedFile,
} from "../../services/gate/simulate-source.ts";
import type { Policy } from "../../services/gate/policy/policy.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest, testCodec } from "../harness/gate-rig.ts";
import { projectDir } from "../harness/stack.ts";

let rig: GateRig;
let engine: PolicyEngine;
let auditor: Database;
const watches: PolicyWatch[] = [];
const policyDir = (name: string): string => join(projectDir, "deploy", "policy", name);

/** A gate as the product starts it: its policy is what was activated. */
const startGate = async (folder: string | null): Promise<RunningGate> => {
  const database = rig.database();
  const log = createLog({ service: "gate", level: "silent" });
  const records = { database, codec: testCodec(), clock: systemClock, environment: "test" };
  const rights = createRightsEnder({ ...records, keys: rig.keys, log, judge: engine.judgeRecord });
  const activation = { ...records, judge: engine.judge, rights };
  const watch = await watchPolicy({
    ...activation,
    log,
    metrics: createMetrics(),
    pollMs: 200,
    loadFolder: folder === null ? null : () => readBundle(folder),
  });
  watches.push(watch);
  return rig.gate({
    database,
    policy: watch.current,
    policyState: watch.state,
    classify: engine.classify,
    more: { access: policyAccess, register: (app) => addPolicyRoutes(app, activation, watch) },
  });
};
const decideAt = async (
  gate: RunningGate,
  tool: string,
  input: Record<string, unknown>,
): Promise<GateAnswer> => (await gate.post("/v1/gate/decide", ownRequest(tool, input))).json as GateAnswer;
const bundleBody = async (name: string): Promise<object> => {
  const { files } = await readBundle(policyDir(name));
  return { name, files: Object.fromEntries(files) };
};
/** The rig's key vouches for one role alone; an admin's token needs a gate that believes it. */
const asAdmin = (tenantId = "fabric"): Promise<string> =>
  rig.token({ roles: ["admin"], tenantId, subject: "ann" });

beforeAll(async () => {
  [rig, engine] = await Promise.all([createGateRig(), openPolicyEngine()]);
  auditor = openDatabase({ url: rig.test.roleUrl("fabric_auditor"), applicationName: "auditor-test" });
});
afterAll(async () => {
  for (const watch of watches) await watch.close();
  await auditor.end();
  await rig.close();
});

describe("gates and the policy in force", () => {
  it("deny everything while no policy was ever activated, say so, and are not ready", async () => {
    const gate = await startGate(null);
    for (const [tool, input] of [
      ["shell.run", { command: "ls" }],
      ["no.such.tool", {}],
      ["file.read", { file_path: "/work-place/a" }],
    ] as const) {
      expect(await decideAt(gate, tool, input)).toMatchObject({
        decision: "deny",
        reason_code: "POLICY_MISSING",
        policy_revision: "policy@none",
      });
    }
    const ready = await fetch(`${gate.url}/readyz`);
    expect(ready.status).toBe(503);
  });

  it("let only an admin of the fabric's own tenant change it", async () => {
    const gate = await startGate(null);
    const body = await bundleBody("default");
    expect((await gate.post("/v1/policy/activate", body)).status).toBe(403);
    expect((await gate.post("/v1/policy/activate", body, await asAdmin("acme"))).status).toBe(403);
    const unknown = await gate.post("/v1/policy/activate", { revision: "policy@1999" }, await asAdmin());
    expect([unknown.status, unknown.json]).toMatchObject([404, { code: "POLICY_UNKNOWN" }]);
    expect((await gate.post("/v1/policy/rollback", {}, await asAdmin())).status).toBe(404);
  });

  it("follow an activation over HTTP, refuse a bad bundle, and go back", { timeout: 120_000 }, async () => {
    const gates = [await startGate(null), await startGate(null)];
    const [first, second] = gates as [RunningGate, RunningGate];
    const admin = await asAdmin();
    const done = await first.post("/v1/policy/activate", await bundleBody("default"), admin);
    expect([done.status, done.json]).toMatchObject([
      201,
      { changed: true, name: "default", activated_by: "ann" },
    ]);
    expect((await decideAt(first, "shell.run", { command: "ls" })).decision).toBe("allow");
    await eventually(
      async () => (await decideAt(second, "shell.run", { command: "ls" })).decision,
      (decision) => decision === "allow",
      { deadlineMs: 3_000 },
    );
    expect((await fetch(`${second.url}/readyz`)).status).toBe(200);

    const { files } = await readBundle(policyDir("default"));
    const broken = { name: "default", files: { ...Object.fromEntries(files), "risk.yaml": "rules: [" } };
    const refused = await first.post("/v1/policy/activate", broken, admin);
    expect([refused.status, refused.json]).toMatchObject([
      422,
      { code: "POLICY_REFUSED", detail: expect.stringContaining("risk.yaml:1:") as string },
    ]);
    const escaping = await first.post(
      "/v1/policy/activate",
      { name: "default", files: { "../a": "" } },
      admin,
    );
    expect(escaping.status).toBe(400);
    expect((await decideAt(first, "shell.run", { command: "ls" })).decision).toBe("allow");

    const strict = await first.post("/v1/policy/activate", await bundleBody("strict"), admin);
    expect(strict.status).toBe(201);
    expect(await decideAt(first, "shell.run", { command: "sudo ls" })).toMatchObject({ decision: "deny" });
    const back = await second.post("/v1/policy/rollback", { note: "too strict" }, admin);
    expect(back.json).toMatchObject({ revision: (done.json as { revision: string }).revision });
    const shown = await second.get("/v1/policy");
    expect(shown.json).toMatchObject({ state: "up", note: "too strict", activated_by: "ann" });
  });
});

const recorded = async (source: RecordedSource, policy: Policy, sinceMs: number): Promise<SimulationReport> =>
  simulate(readRecordedDecisions(source, { sinceMs, tenantId: "acme", limit: null }), {
    policy,
    judge: engine.judgeRecord,
    detailsMax: 100,
    policyOf: async (revision) => {
      const stored = await loadRevision(auditor, revision);
      return stored === null ? null : engine.judge.load(stored);
    },
  });

describe("judging recorded requests again", () => {
  const secret = `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`;
  let source: RecordedSource;
  let sinceMs = 0;
  let denied: GateAnswer;
  beforeAll(async () => {
    const gate = await startGate(policyDir("default"));
    source = { database: auditor, keys: rig.keys, environment: "test" };
    sinceMs = Date.now();
    for (const command of [
      "ls",
      "git push",
      "npm install left-pad",
      "sudo apt-get install x",
      `echo ${secret}`,
    ]) {
      await decideAt(gate, "shell.run", { command });
    }
    denied = await decideAt(gate, "shell.run", { command: "git push --force" });
    await decideAt(gate, "shell.run", { command: `echo ${"x".repeat(70_000)}` });
    await decideAt(gate, "no.such.tool", {});
  });

  it("makes every decision again as it was, also of sealed requests", { timeout: 60_000 }, async () => {
    const report = await recorded(source, engine.judge.load(await readBundle(policyDir("default"))), sinceMs);
    expect(report.reproduced).toEqual({ same: 8, different: 0, unknown: 0, examples: [] });
    expect([report.judged, report.changed, report.partial, report.left_out]).toEqual([8, 0, 0, {}]);
  });

  it("shows what a stricter bundle would change, and by which rules", async () => {
    const report = await recorded(source, engine.judge.load(await readBundle(policyDir("strict"))), sinceMs);
    expect(report.changed).toBeGreaterThan(0);
    const install = report.changes.find(({ appeared }) => appeared.includes("deny.package-install"));
    expect(install).toMatchObject({
      tool: "shell.run",
      before: { decision: "require_approval" },
      after: { decision: "deny", reason_code: "STATIC_DENY" },
    });
    expect(report.rules.find(({ rule }) => rule === "deny.package-install")).toMatchObject({ before: 0 });
    expect(JSON.stringify(report)).not.toContain(secret);
  });

  it("leaves sealed requests out without the key, and says so", async () => {
    const report = await recorded(
      { ...source, keys: null },
      engine.judge.load(await readBundle(policyDir("default"))),
      sinceMs,
    );
    expect(report.left_out).toEqual({ "its request is sealed, and no key was given": 2 });
  });

  it("counts what an earlier version stored in part", async () => {
    await rig.admin.query(
      `INSERT INTO gate.decisions (decision_id, tenant_id, session_key, correlation_id, requested_event_id, runtime, phase,
         tool, effect_class, decision, reason_code, policy_revision, matched_rules, request, facts, answer, decided_at)
       SELECT gen_random_uuid(), 'old', session_key, correlation_id, requested_event_id, runtime, phase, tool,
         effect_class, decision, reason_code, policy_revision, matched_rules, request,
         '{"tenant": {"state": "active", "version": 1}, "session": {"version": 0, "labels": []}}', answer, decided_at
       FROM gate.decisions WHERE decision_id = $1`,
      [denied.decision_id.slice(4)],
    );
    const policy = engine.judge.load(await readBundle(policyDir("default")));
    const report = await simulate(
      readRecordedDecisions(source, { sinceMs: null, tenantId: "old", limit: null }),
      {
        policy,
        judge: engine.judgeRecord,
        detailsMax: 1,
        policyOf: () => Promise.resolve(policy),
      },
    );
    expect([report.judged, report.partial, report.changed, report.reproduced.unknown]).toEqual([1, 1, 0, 1]);
  });

  it("reads one decision by its own id, and by the runtime's id of the call", async () => {
    const byId = await loadRecordedDecision(source, denied.decision_id, Date.now());
    expect(byId).toMatchObject({ kind: "decision", record: { decisionId: denied.decision_id } });
    if (byId?.kind !== "decision") throw new Error("it was read");
    const byCall = await loadRecordedDecision(source, byId.record.request.tool_call_id ?? "", Date.now());
    expect(byCall).toMatchObject({ kind: "decision", record: { answer: { decision: "deny" } } });
    expect(await loadRecordedDecision(source, "toolu_nobody", Date.now())).toBeNull();
  });

  it("reads a file of JSON lines, and counts the lines that are none", async () => {
    const dir = await mkdtemp(join(tmpdir(), "policy-simulate-"));
    try {
      const file = join(dir, "requests.jsonl");
      const request = ownRequest("shell.run", { command: "git push --force" });
      await writeFile(
        file,
        [
          JSON.stringify({ request, answer: { decision: "allow", matched_rules: [] } }),
          JSON.stringify(request),
          "not json",
          "",
        ].join("\n"),
      );
      const policy = engine.judge.load(await readBundle(policyDir("default")));
      const neutral = { nowMs: Date.now(), tenantId: "acme", environment: "test" };
      const report = await simulate(readRecordedFile(file, neutral), {
        policy,
        judge: engine.judgeRecord,
        detailsMax: 10,
        policyOf: () => Promise.resolve(null),
      });
      expect(report).toMatchObject({
        judged: 2,
        changed: 1,
        left_out: { "its line is no JSON object": 1 },
        changes: [{ decision_id: "line 1", before: { decision: "allow" }, after: { decision: "deny" } }],
      });
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});
