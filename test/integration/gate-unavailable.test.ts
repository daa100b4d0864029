import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import { claudeDenial } from "../harness/hook-payloads.ts";
import type { TcpProxy } from "../harness/tcp-proxy.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";

let rig: GateRig;
let proxy: TcpProxy;
let dir: string;
const budgetMs = 1_000;
const ends: (() => Promise<void>)[] = [];
const startGate = async (spoolFile: string): Promise<RunningGate> => {
  const address = new URL(rig.test.roleUrl("fabric_gate"));
  address.host = `${proxy.host}:${String(proxy.port)}`;
  const database = openDatabase({
    url: address.href,
    applicationName: "gate-unavailable",
    maxConnections: 4,
    queryTimeoutMs: 1_500,
    connectTimeoutMs: 1_500,
  });
  ends.push(() => database.end());
  return rig.gate({ database, budgetMs, spoolFile });
};
beforeAll(async () => {
  rig = await createGateRig();
  dir = await mkdtemp(join(tmpdir(), "fabric-spool-"));
  const address = new URL(rig.test.roleUrl("fabric_gate"));
  proxy = await startTcpProxy({ host: address.hostname, port: Number(address.port) });
});
afterAll(async () => {
  await rig.close();
  for (const end of ends) await end();
  await proxy.close();
  await rm(dir, { recursive: true });
});

const decide = async (gate: RunningGate, body: object): Promise<GateAnswer> =>
  (await gate.post("/v1/gate/decide", body)).json as GateAnswer;
const read = (session: string, path = "src/a.ts"): object =>
  ownRequest("file.read", { path }, { session_id: session, working_directory: "/workplace" });
const awake = (gate: RunningGate, session: string): Promise<GateAnswer> =>
  eventually(
    () => decide(gate, read(session)),
    (answer) => answer.decision === "allow" && answer.reason_code === "ALLOWED",
  );

describe("a database that is away", () => {
  it("lets plain reading go on, with narrow limits, and it is recorded afterwards", async () => {
    const spool = join(dir, "plain.jsonl");
    const gate = await startGate(spool);
    await awake(gate, "u-before");
    await proxy.shut();
    const told = await decide(gate, read("u-away"));
    expect(told).toMatchObject({
      decision: "allow",
      reason_code: "POLICY_UNAVAILABLE",
      labels: ["policy_unavailable"],
      constraints: { network: "none" },
    });
    expect(told).not.toHaveProperty("capability");
    expect(rig.logLines.some((line) => line.includes("a read passed unrecorded"))).toBe(true);
    expect(await readFile(spool, "utf8")).not.toContain("src/a.ts");
    expect((await stat(spool)).mode & 0o077).toBe(0);
    // Nothing with an effect, no secret, and nothing that a rule would ask a person about.
    for (const [body, reason] of [
      [ownRequest("shell.run", { command: "make" }, { session_id: "u-away" }), "GATE_UNAVAILABLE"],
      [ownRequest("file.write", { path: "a", content: "b" }, { session_id: "u-away" }), "GATE_UNAVAILABLE"],
      [read("u-away", ".env"), "GATE_UNAVAILABLE"],
      [read("u-away", "/home/someone/notes.txt"), "GATE_UNAVAILABLE"],
      [ownRequest("tool.unheard", {}, { session_id: "u-away" }), "GATE_UNAVAILABLE"],
    ] as const) {
      expect(await decide(gate, body)).toMatchObject({ decision: "deny", reason_code: reason });
    }
    // A tenant that was never seen is none that is served here.
    const other = await rig.token({ tenantId: "other" });
    const denied = await gate.post("/v1/gate/decide", read("u-other"), other);
    expect(denied.json).toMatchObject({ decision: "deny" });
    await proxy.open();
    await eventually(
      async () => (await rig.count("gate.decisions WHERE reason_code = 'POLICY_UNAVAILABLE'")) === 1,
    );
    const rows = await rig.admin.query<{ id: string; labels: string[]; answer: GateAnswer }>(
      `SELECT d.decision_id AS id, s.labels, d.answer FROM gate.decisions AS d JOIN gate.sessions AS s USING (session_key)
        WHERE s.session_id = 'u-away'`,
    );
    expect(rows.rows).toEqual([
      {
        id: told.decision_id.slice(4),
        labels: ["policy_unavailable"],
        answer: expect.objectContaining({}) as unknown,
      },
    ]);
    const events = (await rig.events()).filter((event) => event.execution.session_id === "u-away");
    expect(events.map(({ type, policy }) => [type, policy?.reason_code ?? null])).toEqual([
      ["agent.tool.requested", null],
      ["agent.tool.authorized", "POLICY_UNAVAILABLE"],
    ]);
    await eventually(
      async () =>
        !(await stat(spool).then(
          () => true,
          () => false,
        )),
    );
    await gate.gate.close();
  });

  it("records what passed after a restart of the gate", async () => {
    const spool = join(dir, "restart.jsonl");
    const first = await startGate(spool);
    await awake(first, "u-start");
    await proxy.shut();
    expect((await decide(first, read("u-restart"))).reason_code).toBe("POLICY_UNAVAILABLE");
    await first.gate.close();
    await proxy.open();
    const second = await startGate(spool);
    await eventually(
      async () => (await rig.count("gate.decisions WHERE request ->> 'session_id' = 'u-restart'")) === 1,
    );
    await second.gate.close();
  });

  it("denies reading too when the spool cannot be written", async () => {
    const gate = await startGate(join(dir, "no-such-folder", "spool.jsonl"));
    await awake(gate, "u-unwritable");
    await proxy.shut();
    expect(await decide(gate, read("u-unwritable"))).toMatchObject({ decision: "deny" });
    const hook = await gate.post("/v1/hooks/claude-code", {
      session_id: "u-hook",
      transcript_path: "/t",
      cwd: "/workplace",
      permission_mode: "default",
      hook_event_name: "PreToolUse",
      tool_name: "Read",
      tool_input: { file_path: "/workplace/a" },
      tool_use_id: "toolu_1",
    });
    expect(claudeDenial(hook.json)).toMatch(/GATE_(UNAVAILABLE|TIMEOUT)/);
    await proxy.open();
    await gate.gate.close();
  });

  it("lets nothing pass of a tenant in which an incident froze something, as it was last seen", async () => {
    const gate = await startGate(join(dir, "frozen.jsonl"));
    await awake(gate, "f-before");
    const held = `INSERT INTO incidents.holds (hold_id, source, mode, tenant_id, scope, scope_id, kind, reason, declared_by)
      VALUES (gen_random_uuid(), 'incident', 'frozen', 'acme', 'user', 'somebody', 'freeze', 'x', 'ida')`;
    await rig.admin.query(held);
    await awake(gate, "f-seen");
    await proxy.shut();
    expect(await decide(gate, read("f-away"))).toMatchObject({ decision: "deny" });
    await proxy.open();
    await rig.admin.query("UPDATE incidents.holds SET lifted_at = now(), lifted_by = 'ida'");
    await awake(gate, "f-after");
  });
});
