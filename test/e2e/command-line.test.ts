import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { projectDir } from "../harness/stack.ts";

const runFile = promisify(execFile);
const binary = join(projectDir, "dist", "services", "app", "main.js");
/** A stack of its own: the story kills services, and stops what it started. */
const stack = `e2e-${String(process.pid)}`;

/** Runs the built command line as a person would, with a clean environment. */
async function fabric(
  args: readonly string[],
  stdin = "",
): Promise<{ exit: number; stdout: string; stderr: string }> {
  const { PATH, HOME, FABRIC_RUN_MARK } = process.env;
  const running = runFile(process.execPath, [binary, "--stack", stack, ...args], {
    env: { PATH, HOME, FABRIC_RUN_MARK },
    maxBuffer: 64 * 1024 * 1024,
  });
  running.child.stdin?.end(stdin);
  return running.then(
    ({ stdout, stderr }) => ({ exit: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      exit: error.code,
      stdout: error.stdout,
      stderr: error.stderr,
    }),
  );
}

beforeAll(() => {
  if (!existsSync(binary)) throw new Error("run `make test`: it builds dist/ first");
});
afterAll(async () => {
  await fabric(["down", "--wipe"]);
});

describe("the built command line", () => {
  it("starts under Node's own module loader, and knows its version", async () => {
    const { exit, stdout } = await fabric(["--version"]);
    expect([exit, stdout]).toEqual([0, "0.1.0\n"]);
  });

  it("checks the schemas that ship without any server", async () => {
    const { exit, stdout } = await fabric(["--json", "schema", "check"]);
    expect([exit, JSON.parse(stdout)]).toMatchObject([0, { findings: [] }]);
  });

  it("judges by a bundle alone, exit 4 for a refusal", async () => {
    const request = {
      runtime: "own",
      session_id: "s",
      tool: "shell.run",
      input: { command: "git push --force" },
    };
    const { exit, stdout } = await fabric(
      ["--json", "decide", "--bundle", join(projectDir, "deploy/policy/default")],
      JSON.stringify(request),
    );
    expect([exit, JSON.parse(stdout)]).toMatchObject([4, { decision: "deny", reason_code: "STATIC_DENY" }]);
  });

  it("installs hooks, runs them as their client would, and takes them out again", async () => {
    const home = await mkdtemp(join(tmpdir(), "fabric-hook-"));
    const where = ["--home", home];
    const payload = await readFile(
      join(projectDir, "test/corpus/hooks/claude-code/PreToolUse.Bash.json"),
      "utf8",
    );
    const gate = createServer((request, response) => {
      request.resume();
      request.on("end", () => response.end("fabric 0\n{}"));
    });
    await new Promise<void>((done) => gate.listen(0, "127.0.0.1", done));
    try {
      const none = await fabric(["hook", "claude-code", ...where], payload);
      expect([none.exit, none.stdout, none.stderr]).toEqual([
        2,
        "",
        expect.stringContaining("nothing is installed"),
      ]);

      const program = join(home, "claude");
      await writeFile(program, "#!/bin/sh\necho '2.1.328 (Claude Code)'\n", { mode: 0o755 });
      await writeFile(join(home, "token"), "made-up");
      const url = `http://127.0.0.1:${String((gate.address() as AddressInfo).port)}`;
      const given = [
        "--form",
        "node",
        "--program",
        program,
        "--gate-url",
        url,
        "--token-file",
        join(home, "token"),
      ];
      const installed = await fabric(["install", "claude-code", ...given, ...where]);
      expect([installed.exit, installed.stderr]).toEqual([0, ""]);
      const asked = await fabric(["hook", "claude-code", ...where], payload);
      expect([asked.exit, asked.stdout.trim(), asked.stderr]).toEqual([0, "{}", ""]);

      gate.closeAllConnections();
      await new Promise((done) => gate.close(done));
      const away = await fabric(["hook", "claude-code", ...where], payload);
      expect([away.exit, away.stdout, away.stderr]).toEqual([
        2,
        "",
        expect.stringContaining("GATE_UNREACHABLE"),
      ]);
      expect((await fabric(["uninstall", "claude-code", ...where])).exit).toBe(0);
      expect((await fabric(["hook", "claude-code", ...where], payload)).exit).toBe(2);
    } finally {
      gate.close();
      await rm(home, { recursive: true, force: true });
    }
  });

  it("tests the bundles that ship, and judges a whole file of commands as the file says", async () => {
    for (const name of ["default", "strict"]) {
      const tested = await fabric(["--json", "policy", "test", join(projectDir, "deploy/policy", name)]);
      expect([tested.exit, JSON.parse(tested.stdout)]).toMatchObject([0, { ok: true }]);
    }
    const file = join(projectDir, "test/corpus/commands/near-misses.json");
    const args = ["decide", "--bundle", join(projectDir, "deploy/policy/default"), "--file", file];
    const { exit, stdout } = await fabric(["--json", ...args]);
    expect([exit, JSON.parse(stdout)]).toMatchObject([0, { differ: 0 }]);
  });

  it("says what to do when nothing runs yet", async () => {
    const status = await fabric(["status"]);
    expect([status.exit, status.stdout]).toEqual([1, expect.stringMatching(/fabric up/)]);
    const plan = await fabric(["topics", "plan"]);
    expect([plan.exit, plan.stderr]).toEqual([
      2,
      expect.stringMatching(/FABRIC_KAFKA_BROKERS is not set.*fabric up/),
    ]);
  });

  it("tells the whole story, and every claim holds", { timeout: 300_000 }, async () => {
    const { exit, stdout, stderr } = await fabric(["--json", "demo", "--once"]);
    const { claims, failed } = JSON.parse(stdout) as {
      claims: { claim: string; held: boolean }[];
      failed: number;
    };
    expect(claims, stderr.slice(-3_000)).toBeDefined();
    expect(claims.filter((one) => !one.held)).toEqual([]);
    expect([exit, failed, claims.length >= 15], stderr.slice(-2_000)).toEqual([0, 0, true]);
  });

  it("leaves no service and no server behind", async () => {
    const { stdout } = await fabric(["--json", "status"]);
    const status = JSON.parse(stdout) as { services: unknown[]; parts: { healthy: boolean }[] };
    expect([status.services, status.parts.filter((part) => part.healthy)]).toEqual([[], []]);
  });
});
