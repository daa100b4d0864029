import { spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const shims = fileURLToPath(new URL("../../services/install/shim/", import.meta.url));
const ticket = 'fabric 0 ticket\n{"no":"apr_1"}';

let folder: string;
let server: Server;
let heard: { readonly accept: string | undefined; readonly body: string }[];
let answers: string[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "shim-"));
  heard = [];
  server = createServer((request, response) => {
    let body = "";
    request
      .on("data", (chunk: Buffer) => (body += chunk.toString()))
      .on("end", () => {
        heard.push({ accept: request.headers.accept, body });
        const said = answers[Math.min(heard.length, answers.length) - 1] ?? "";
        if (said === "away") response.destroy();
        else response.end(said);
      });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a shim with its files beside it, as it is installed. */
async function run(
  shim: "hook.sh" | "hook.mjs",
  waitSeconds: number,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const { port } = server.address() as AddressInfo;
  writeFileSync(join(folder, "url"), `http://127.0.0.1:${String(port)}/v1/hooks/x\n`);
  writeFileSync(join(folder, "token"), "made-up\n");
  writeFileSync(join(folder, "deadlines"), `5 3 ${String(waitSeconds)}\n`);
  copyFileSync(join(shims, shim), join(folder, shim));
  const program = shim === "hook.sh" ? "/bin/sh" : process.execPath;
  const child = spawn(program, [join(folder, shim), "gate", "hash"]);
  child.stdin.end('{"asked":1}');
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((done) => child.on("close", done));
  return { code, stdout: stdout.trim(), stderr: stderr.trim() };
}

describe.each(["hook.sh", "hook.mjs"] as const)(
  "the command hook %s that may wait for an approval",
  (shim) => {
    it("asks the same again while the ticket is open, and gives the answer that settles it", async () => {
      answers = [ticket, "away", "<html>", "fabric 0\n{}"];
      expect(await run(shim, 60)).toEqual({ code: 0, stdout: "{}", stderr: "" });
      expect(heard.map(({ body }) => body)).toEqual(Array(4).fill('{"asked":1}'));
      expect(readdirSync(folder).filter((name) => name.startsWith(".asked"))).toEqual([]);
    });

    it("gives the refusal that settles it, in the form that stops the call", async () => {
      answers = [ticket, "fabric 2\nAPPROVAL_REFUSED: no"];
      expect(await run(shim, 60)).toEqual({ code: 2, stdout: "", stderr: "APPROVAL_REFUSED: no" });
    });

    it("gives the ticket when its time is over", async () => {
      answers = [ticket];
      expect(await run(shim, 1)).toEqual({ code: 0, stdout: '{"no":"apr_1"}', stderr: "" });
      expect(heard.length).toBeGreaterThan(1);
    });

    it("without a wait asks once, in the form that knows of none", async () => {
      answers = ['fabric 0\n{"no":"apr_1"}'];
      expect(await run(shim, 0)).toEqual({ code: 0, stdout: '{"no":"apr_1"}', stderr: "" });
      expect(heard.map(({ accept }) => accept)).toEqual(["text/x-fabric-hook"]);
    });
  },
);
