import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import { claudeCall, claudeFailure, codexCall } from "../harness/hook-payloads.ts";

let rig: GateRig;
let running: RunningGate;
beforeAll(async () => {
  rig = await createGateRig();
  running = await rig.gate();
});
afterAll(() => rig.close());

const secrets = ["sk-test-1", "Bearer x", "--token=abc"];
const args = { value: "sk-test-1", headers: { Authorization: "Bearer x" }, cmd: "deploy --token=abc" };

describe("secrets of a call", () => {
  it("reach no row, no outbox payload, no header and no log line", async () => {
    const text = JSON.stringify(args);
    const same = { session_id: "secrets", tool_use_id: "toolu_s" };
    const answers = [
      await running.post("/v1/gate/decide", ownRequest("shell.run", { command: `run ${text}`, ...args })),
      await running.post("/v1/gate/decide", ownRequest("mcp.deploy.start", args)),
      await running.post(
        "/v1/gate/decide",
        ownRequest("web.fetch", { url: "https://x/?token=abc#sk-test-1", ...args }),
      ),
      await running.post(
        "/v1/hooks/claude-code",
        claudeCall("x", { ...same, tool_input: { command: text, ...args } }),
      ),
      await running.post(
        "/v1/hooks/claude-code",
        claudeFailure(`it failed: ${text}; deploy --token=abc`, { ...same, tool_input: { command: "x" } }),
      ),
      await running.post("/v1/hooks/claude-code", `{"broken": ${text}`),
      await running.post("/v1/hooks/claude-code", claudeCall("x", { ...same, tool_input: text })),
      await running.post("/v1/gate/decide", { ...args, tool: "sk-test-1", [secrets[2] ?? ""]: 1 }),
      await running.post("/v1/gate/decide?token=abc&value=sk-test-1", text),
    ];
    for (const answer of answers) {
      const shown = answer.text + JSON.stringify([...answer.headers]);
      for (const secret of secrets) expect(shown).not.toContain(secret);
    }
    const tables = await rig.admin.query<{ name: string }>(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
        WHERE table_schema IN ('gate', 'vault', 'access', 'outbox') AND table_type = 'BASE TABLE'`,
    );
    let rows = 0;
    for (const { name } of tables.rows) {
      // Bytes as they are and as text: a sealed payload may hold no plain secret either.
      const found = await rig.admin.query<Record<string, unknown>>(`SELECT * FROM ${name}`);
      rows += found.rows.length;
      for (const row of found.rows) {
        const shown = Object.values(row)
          .map((value) => (Buffer.isBuffer(value) ? value.toString("latin1") : JSON.stringify(value)))
          .join("\n");
        for (const secret of secrets) expect(`${name}: ${shown}`).not.toContain(secret);
      }
    }
    expect(rows).toBeGreaterThan(20);
    expect(rig.logLines.length).toBeGreaterThan(5);
    for (const secret of secrets) expect(rig.logLines.join("")).not.toContain(secret);
  });

  it("leave neither in the paths of a call nor in its working directory", async () => {
    const running = await rig.gate();
    const token = `ghp_${"Zq7x".repeat(9)}`;
    const dir = `/srv/${token}/repo`;
    await running.post(
      "/v1/gate/decide",
      ownRequest("file.write", { file_path: `${dir}/a.txt`, content: "x" }, { working_directory: dir }),
    );
    await running.post(
      "/v1/hooks/claude-code",
      claudeCall("x", {
        session_id: "paths",
        tool_use_id: "toolu_p",
        tool_name: "Read",
        tool_input: { file_path: `${dir}/b.txt` },
        cwd: dir,
      }),
    );
    await running.post(
      "/v1/hooks/codex",
      codexCall("ls", { session_id: "paths", tool_use_id: "call_p", cwd: dir }),
    );
    const found = await rig.admin.query<Record<string, unknown>>(
      "SELECT payload, headers FROM outbox.events UNION ALL SELECT convert_to(row_to_json(d)::text, 'UTF8'), '{}' FROM gate.decisions d UNION ALL SELECT convert_to(row_to_json(c)::text, 'UTF8'), '{}' FROM gate.capabilities c",
    );
    expect(found.rows.length).toBeGreaterThan(6);
    for (const row of found.rows) {
      const shown = Object.values(row).map((value) =>
        Buffer.isBuffer(value) ? value.toString("latin1") : JSON.stringify(value),
      );
      expect(shown.join("\n")).not.toContain(token);
    }
  });
});
