import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { createActions } from "../../services/app/actions.ts";
import { createLocalAuthenticator } from "../../services/app/local-authenticator.ts";
import { openPolicyEngine, readBundle } from "../../services/app/policy-engine.ts";
import { addPolicyRoutes, policyAccess } from "../../services/gate/revisions/routes.ts";
import type { PolicyWatch } from "../../services/gate/revisions/watch-policy.ts";
import { watchPolicy } from "../../services/gate/revisions/watch-policy.ts";
import { issueLocalToken } from "../../services/platform/auth.ts";
import { createAuthKeysFile, loadAuthKeysFile } from "../../services/platform/auth-keys.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { openTenantKeys } from "../../services/platform/vault-seal.ts";
import { createKekFile, loadKekFile } from "../../services/vault/kek-file.ts";
import type { TypedCommand } from "../harness/command-line.ts";
import { typeCommand } from "../harness/command-line.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest, testCodec } from "../harness/gate-rig.ts";
import { projectDir } from "../harness/stack.ts";

/** The command line against a gate and a database, in this process: as an operator at a terminal types it. */

let rig: GateRig;
let gate: RunningGate;
let watch: PolicyWatch;
let root: string;
let runtimeToken: string;
const defaultDir = join(projectDir, "deploy", "policy", "default");
const strictDir = join(projectDir, "deploy", "policy", "strict");
const passphrase = "correct horse battery";

beforeAll(async () => {
  rig = await createGateRig();
  root = await mkdtemp(join(tmpdir(), "policy-commands-"));
  const dir = join(root, ".fabric", "local", "services");
  await mkdir(dir, { recursive: true });
  const keysFile = join(dir, "token-keys.json");
  const kekFile = join(dir, "kek.json");
  const tokenFile = join(dir, "runtime.token");
  await createAuthKeysFile(keysFile);
  await createKekFile(kekFile);
  runtimeToken = await issueLocalToken({
    tenantId: "acme",
    subject: "developer",
    roles: ["runtime"],
    lifetimeSeconds: 3_600,
    privateKey: (await loadAuthKeysFile(keysFile)).signing,
    clock: systemClock,
  });
  await writeFile(tokenFile, runtimeToken);
  const engine = await openPolicyEngine();
  const database = rig.database();
  const log = createLog({ service: "gate", level: "silent" });
  const activation = {
    database,
    codec: testCodec(),
    clock: systemClock,
    environment: "test",
    judge: engine.judge,
  };
  watch = await watchPolicy({
    ...activation,
    log,
    metrics: createMetrics(),
    loadFolder: () => readBundle(defaultDir),
  });
  gate = await rig.gate({
    database,
    keys: openTenantKeys(database, await loadKekFile(kekFile)),
    policy: watch.current,
    policyState: watch.state,
    classify: engine.classify,
    more: { access: policyAccess, register: (app) => addPolicyRoutes(app, activation, watch) },
    authenticator: await createLocalAuthenticator({ keysFile, oidc: undefined, clock: systemClock, log }),
  });
  await writeFile(
    join(dir, "fabric.env"),
    [
      "FABRIC_KAFKA_BROKERS=127.0.0.1:1",
      "FABRIC_REGISTRY_URL=http://127.0.0.1:1",
      `FABRIC_GATE_URL=${gate.url}`,
      `FABRIC_TOKEN_FILE=${tokenFile}`,
      `FABRIC_AUTH_KEYS_FILE=${keysFile}`,
      `FABRIC_KEK_FILE=${kekFile}`,
      `FABRIC_DATABASE_URL_AUDITOR=${rig.test.roleUrl("fabric_auditor")}`,
      "",
    ].join("\n"),
  );
});
afterAll(async () => {
  await watch.close();
  await rig.close();
  await rm(root, { recursive: true });
});

const fabric = (argv: readonly string[], typed: TypedCommand = {}) =>
  typeCommand(argv, createActions({ packageDir: projectDir, rootDir: root }), { secrets: [], ...typed });
const decideAt = async (command: string, rest: Record<string, unknown> = {}): Promise<GateAnswer> => {
  const answer = await gate.post("/v1/gate/decide", ownRequest("shell.run", { command }, rest), runtimeToken);
  return answer.json as GateAnswer;
};

describe("tokens of people", () => {
  it("are refused to an agent's own token, with the way to one", async () => {
    const { exit, stderr } = await fabric(["policy", "activate", strictDir]);
    expect([exit, stderr]).toEqual([4, expect.stringMatching(/fabric tokens issue --role admin/)]);
  });

  it("need a passphrase that is entered twice the same the first time, and right from then on", async () => {
    const issue = ["tokens", "issue", "--role", "approver"];
    expect((await fabric(issue, { secrets: [passphrase, "another passphrase"] })).exit).toBe(2);
    expect((await fabric(issue, { secrets: ["short", "short"] })).exit).toBe(2);
    const made = await fabric(issue, { secrets: [passphrase, passphrase] });
    expect([made.exit, made.stdout]).toEqual([0, expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)]);
    expect((await fabric(issue, { secrets: ["wrong wrong wrong"] })).exit).toBe(4);
    expect((await fabric([...issue, "--ttl", "90000"], { secrets: [passphrase] })).exit).toBe(2);
  });
});

describe("fabric policy", () => {
  it("checks and tests a folder, and names each fault with file and line", { timeout: 60_000 }, async () => {
    expect(await fabric(["policy", "check", defaultDir])).toMatchObject({
      exit: 0,
      stdout: expect.stringMatching(
        /^ok policy@\S+: \d+ tools, \d+ signals, \d+ programs, \d+ cases; all cases/,
      ) as string,
    });
    expect((await fabric(["policy", "test", strictDir])).exit).toBe(0);
    const broken = join(root, "broken");
    const { files } = await readBundle(defaultDir);
    await mkdir(join(broken, "cases"), { recursive: true });
    for (const [path, text] of files) await writeFile(join(broken, path), text);
    await writeFile(join(broken, "risk.yaml"), "rules:\n  - { id: risk.x, points: many, when: {} }\n");
    const checked = await fabric(["policy", "check", broken]);
    expect([checked.exit, checked.stdout]).toEqual([1, expect.stringMatching(/risk\.yaml:2: .*points/)]);
    expect((await fabric(["policy", "check", join(root, "nothing")])).exit).toBe(1);
  });

  it("activates, lists, shows and goes back", { timeout: 120_000 }, async () => {
    const active = await fabric(["policy", "activate", strictDir, "--note", "audit week"], {
      secrets: [passphrase],
    });
    expect([active.exit, active.stderr]).toEqual([0, ""]);
    expect(active.stdout).toMatch(
      /^active policy@\S+, bundle strict, \d+ cases as expected\nbefore: policy@/,
    );
    expect((await decideAt("sudo ls")).decision).toBe("deny");
    const again = await fabric(["policy", "activate", strictDir], { secrets: [passphrase] });
    expect([again.exit, again.stdout]).toEqual([0, expect.stringMatching(/is active already/)]);
    const list = await fabric(["--json", "policy", "list"]);
    expect(list.json).toMatchObject([
      { name: "strict", is_active: true },
      { name: "default", is_active: false, activated_by: "bootstrap" },
    ]);
    expect((await fabric(["policy", "list"])).stdout).toMatch(/^\s+REVISION .*\n.*\n\*\s+policy@/);
    const shown = await fabric(["policy", "show", "--file", "bundle.yaml"]);
    expect(shown.stdout).toMatch(/revision: policy@/);
    expect((await fabric(["policy", "show", "policy@1999"])).exit).toBe(1);
    expect((await fabric(["policy", "rollback"], { secrets: [passphrase] })).stdout).toMatch(
      /bundle default/,
    );
    expect(await fabric(["policy", "rollback"], { secrets: [passphrase] })).toMatchObject({ exit: 1 });
  });

  it(
    "refuses a bundle that says less than it should, and the one before stays",
    { timeout: 60_000 },
    async () => {
      const before = watch.current().revision;
      const refused = await fabric(["policy", "activate", join(root, "broken")], { secrets: [passphrase] });
      expect([refused.exit, refused.stderr]).toEqual([
        1,
        expect.stringMatching(/POLICY_REFUSED[^]*risk\.yaml:2:/),
      ]);
      expect(watch.current().revision).toBe(before);
    },
  );

  it("explains a recorded decision by exactly its revision, and a request of a file without any database", async () => {
    const { decision_id: id } = await decideAt("git push --force", { tool_call_id: "toolu_explained" });
    for (const name of [id, "toolu_explained"]) {
      const told = await fabric(["policy", "explain", name]);
      expect([told.exit, told.stderr]).toEqual([0, ""]);
      expect(told.stdout).toMatch(/^deny STATIC_DENY\n/);
      expect(told.stdout).toMatch(/► deny\.force-push decides: absolute deny/);
    }
    expect((await fabric(["--json", "policy", "explain", id])).json).toMatchObject({
      decision: "deny",
      lead_rule: "deny.force-push",
      differs: [],
      by_other_policy: false,
    });
    expect((await fabric(["policy", "explain", "toolu_nobody"])).exit).toBe(1);
    expect((await fabric(["policy", "explain"])).exit).toBe(2);
    const file = join(root, "request.json");
    await writeFile(file, JSON.stringify(ownRequest("shell.run", { command: "ls" })));
    const alone = await fabric([
      "--stack",
      "none",
      "policy",
      "explain",
      "--bundle",
      strictDir,
      "--request",
      file,
    ]);
    expect([alone.exit, alone.stdout]).toEqual([0, expect.stringMatching(/^allow /)]);
  });

  it("says when a decision comes out otherwise than it was stored", async () => {
    const { decision_id: id } = await decideAt("ls -la");
    await rig.admin.query(
      `UPDATE gate.decisions SET answer = answer || '{"decision": "deny", "reason_code": "STATIC_DENY"}' WHERE decision_id = $1`,
      [id.slice(4)],
    );
    const told = await fabric(["policy", "explain", id]);
    expect([told.exit, told.stdout]).toEqual([
      1,
      expect.stringMatching(/the stored answer was deny STATIC_DENY, and made again it differs in decision/),
    ]);
    const simulated = await fabric(["policy", "simulate", "--bundle", "active"]);
    expect([simulated.exit, simulated.stdout]).toEqual([1, expect.stringMatching(/1 not reproduced/)]);
    await rig.admin.query(
      `UPDATE gate.decisions SET answer = answer || '{"decision": "allow", "reason_code": "ALLOWED"}' WHERE decision_id = $1`,
      [id.slice(4)],
    );
  });

  it("simulates another bundle on what was recorded", { timeout: 60_000 }, async () => {
    await decideAt("sudo ls");
    const { exit, json } = await fabric([
      "--json",
      "policy",
      "simulate",
      "--bundle",
      strictDir,
      "--since",
      "1h",
    ]);
    expect(exit).toBe(0);
    expect(json).toMatchObject({ reproduced: { different: 0 }, left_out: {} });
    expect((json as { changes: unknown[] }).changes.length).toBeGreaterThan(0);
    expect((await fabric(["policy", "simulate", "--bundle", strictDir, "--since", "soon"])).exit).toBe(2);
  });

  it("tells two bundles apart, stored or not", async () => {
    const same = await fabric(["policy", "diff", defaultDir, "active"]);
    expect([same.exit, same.stdout]).toEqual([0, "the bundles say the same\n"]);
    const differs = await fabric(["policy", "diff", defaultDir, strictDir, "--simulate"]);
    expect(differs.exit).toBe(1);
    expect(differs.stdout).toMatch(/\+ {2}policies of static-deny\.cedar +deny\.package-install +added/);
    expect(differs.stdout).toMatch(/recorded decisions judged by policy@/);
  });
});

describe("fabric approvals and capabilities", () => {
  it("shows a frozen plan to an approver, who agrees to it; the same call then passes once", async () => {
    const call = { tool_call_id: "toolu_asked" };
    expect(await decideAt("npm install left-pad", call)).toMatchObject({ decision: "require_approval" });
    const list = await fabric(["--json", "approvals", "list"], { secrets: [passphrase] });
    const [newest] = list.json as [{ id: string }];
    expect(newest).toMatchObject({ tool: "shell.run", state: "pending", requester: "developer" });
    const { id } = newest;
    expect((await fabric(["approvals", "list"], { secrets: [passphrase] })).stdout).toContain(id);
    const shown = await fabric(["approvals", "show", id], { secrets: [passphrase] });
    expect(shown.stdout).toMatch(/the frozen plan:\n\{[^]*npm install left-pad/);
    const stale = ["approvals", "approve", id, "--digest", `sha256:${"0".repeat(64)}`];
    expect((await fabric(stale, { secrets: [passphrase] })).exit).toBe(1);
    const agreed = await fabric(["approvals", "approve", id, "--note", "fine"], { secrets: [passphrase] });
    expect([agreed.exit, agreed.stdout]).toEqual([0, expect.stringMatching(/approved; the same call/)]);
    expect(await decideAt("npm install left-pad", call)).toMatchObject({
      decision: "allow",
      reason_code: "APPROVED",
    });
    expect((await fabric(["approvals", "refuse", id], { secrets: [passphrase] })).exit).toBe(1);
    expect((await fabric(["approvals", "show", "apr_none"], { secrets: [passphrase] })).exit).toBe(1);
  });

  it("lists rights, and ends them", async () => {
    const list = await fabric(["--json", "capabilities", "list", "--state", "live"], {
      secrets: [passphrase],
    });
    const [{ id }] = list.json as [{ id: string }];
    const revoke = ["capabilities", "revoke", id, "--reason", "wrong repository"];
    expect(await fabric(revoke, { secrets: [passphrase] })).toMatchObject({
      exit: 0,
      stdout: "1 right ended\n",
    });
    expect((await fabric(["capabilities", "revoke", "--reason", "x"], { secrets: [passphrase] })).exit).toBe(
      2,
    );
    const after = await fabric(["capabilities", "list", "--state", "revoked"], { secrets: [passphrase] });
    expect(after.stdout).toContain(id);
  });
});

describe("fabric decide", () => {
  it(
    "judges every command of a corpus file as the file says, alone and at the gate",
    { timeout: 120_000 },
    async () => {
      const file = join(projectDir, "test", "corpus", "commands", "git.json");
      const alone = await fabric(["decide", "--bundle", defaultDir, "--file", file]);
      expect([alone.exit, alone.stdout]).toEqual([
        0,
        expect.stringMatching(/all \d+ expected decisions came out/),
      ]);
      const wrong = join(root, "wrong.json");
      await writeFile(
        wrong,
        JSON.stringify([{ text: "git push --force", decision: "allow" }, { text: "ls" }]),
      );
      const differs = await fabric(["decide", "--file", wrong]);
      expect([differs.exit, differs.stdout]).toEqual([
        1,
        expect.stringMatching(/✗ +deny[^]*1 of 1 came out otherwise/),
      ]);
      await writeFile(wrong, "nothing");
      expect((await fabric(["decide", "--file", wrong])).exit).toBe(2);
    },
  );

  it("judges one request on stdin, exit 4 for a refusal", async () => {
    const stdin = JSON.stringify(ownRequest("shell.run", { command: "git push --force" }));
    expect(await fabric(["decide"], { stdin })).toMatchObject({ exit: 4 });
    expect(await fabric(["decide", "--bundle", strictDir], { stdin })).toMatchObject({ exit: 4 });
    expect(await fabric(["decide", "--bundle", strictDir], { stdin: "{" })).toMatchObject({ exit: 2 });
  });
});
