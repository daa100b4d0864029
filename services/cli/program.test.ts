import { describe, expect, it } from "vitest";
import { Fault } from "../../schemas/faults.ts";
import type { Actions } from "./actions.ts";
import { runCommandLine } from "./program.ts";

/** Runs one command line against actions that answer with their own name and options. */
async function run(argv: string[], overrides: Partial<Actions> = {}) {
  let stdout = "";
  let stderr = "";
  const actions = new Proxy(overrides, {
    get: (target, name: keyof Actions) =>
      target[name] ??
      (async (_common: unknown, options: unknown) => ({
        json: { action: name, options },
        text: `ran ${name}`,
      })),
  }) as Actions;
  const exit = await runCommandLine(argv, actions, {
    stdout: (text) => (stdout += text),
    stderr: (text) => (stderr += text),
    readStdin: async () => "{}",
    colour: false,
    signal: new AbortController().signal,
    version: "1.2.3",
    askSecret: async () => "secret",
  });
  return { exit, stdout, stderr };
}

describe("the command line", () => {
  it("prints exactly one JSON document on stdout with --json", async () => {
    const { exit, stdout } = await run(["--json", "audit", "who", "toolu_1", "--tenant", "acme"]);
    expect(exit).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      action: "auditWho",
      options: { toolCallId: "toolu_1", tenant: "acme" },
    });
  });

  it("keeps offsets readable in JSON", async () => {
    const { stdout } = await run(["--json", "status"], {
      status: async () => ({ json: { offset: 7n }, text: "" }),
    });
    expect(JSON.parse(stdout)).toEqual({ offset: 7 });
  });

  it("exits 2 on a command, an option or an argument that it does not know, and says how to find help", async () => {
    for (const argv of [["fly"], ["status", "--fast"], ["audit", "who"], ["tail", "--limit", "none"]]) {
      const { exit, stderr } = await run(argv);
      expect([argv, exit]).toEqual([argv, 2]);
      expect(stderr).not.toBe("");
    }
  });

  it("exits with the fault's own code and names it", async () => {
    const away = async (): Promise<never> => {
      throw new Fault("BROKER_UNAVAILABLE", "no answer from 127.0.0.1:9092");
    };
    const { exit, stderr } = await run(["topics", "plan"], { topicsPlan: away });
    expect([exit, stderr]).toEqual([
      3,
      "fabric: BROKER_UNAVAILABLE: Kafka does not answer: no answer from 127.0.0.1:9092\n",
    ]);
  });

  it("answers --json with a document also when it fails", async () => {
    const refuse = async (): Promise<never> => {
      throw new Fault("ROLE_MISSING");
    };
    const { exit, stdout } = await run(["--json", "decide"], { decide: refuse });
    expect([exit, JSON.parse(stdout)]).toEqual([
      4,
      { error: { code: "ROLE_MISSING", message: "the token does not carry the role" } },
    ]);
  });

  it("shows help with examples and exit codes", async () => {
    const { exit, stdout } = await run(["--help"]);
    expect(exit).toBe(0);
    expect(stdout).toMatch(/Exit codes: 0 done/);
    expect(stdout).toMatch(/Examples:/);
  });
});
