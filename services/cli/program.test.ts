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

  it("takes what is frozen by its kind, and a tenant also without a name", async () => {
    const target = async (...argv: string[]): Promise<unknown> => {
      const { stdout } = await run(["--json", "incidents", "declare", "--reason", "x", ...argv]);
      return (JSON.parse(stdout) as { options: { target: unknown } }).options.target;
    };
    expect(await target("--session", "s1")).toEqual({ all: false, session: "s1" });
    expect(await target("--tenant")).toEqual({ all: false, tenant: true });
    expect(await target("--tenant", "acme")).toEqual({ all: false, tenant: "acme" });
    expect(await target("--all")).toEqual({ all: true });
    expect((await run(["incidents", "declare", "--session", "s1"])).exit).toBe(2);
    expect((await run(["breaker", "reset", "trp_1"])).exit).toBe(2);
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

  it("answers --json with a document also when it is not understood, or says nothing but an exit code", async () => {
    for (const [argv, message] of [
      [["fly"], /unknown command 'fly'/],
      [["status", "--fast"], /unknown option '--fast'/],
      [["audit", "who"], /missing required argument/],
      [["tail", "--limit", "none"], /no|whole number/],
      [[], /name a command/],
      [["policy"], /name a command/],
    ] as const) {
      const { exit, stdout } = await run(["--json", ...argv]);
      expect([argv, exit, JSON.parse(stdout)]).toEqual([
        argv,
        2,
        { error: { code: "USAGE", message: expect.stringMatching(message) as string } },
      ]);
    }
    const { exit, stdout } = await run(["status", "--json"], {
      status: async () => ({ text: "nothing runs", exit: 1 }),
    });
    expect([exit, JSON.parse(stdout)]).toEqual([1, { error: { code: "FAILED", message: "nothing runs" } }]);
  });

  it("hands every option of the policy commands on", async () => {
    const seen = async (argv: string[]): Promise<unknown> => {
      const { exit, stdout, stderr } = await run(["--json", ...argv]);
      expect([argv, exit, stderr]).toEqual([argv, 0, ""]);
      return JSON.parse(stdout);
    };
    expect(await seen(["policy", "activate", "dir", "--note", "why", "--token-file", "t"])).toEqual({
      action: "policyActivate",
      options: { bundle: "dir", note: "why", tokenFile: "t" },
    });
    expect(await seen(["policy", "simulate", "--bundle", "dir", "--since", "7d", "--limit", "5"])).toEqual({
      action: "policySimulate",
      options: { bundle: "dir", details: 50, recordings: { since: "7d", limit: 5 } },
    });
    expect(await seen(["policy", "show"])).toEqual({
      action: "policyShow",
      options: { revision: "active" },
    });
    expect(await seen(["policy", "diff", "a", "b", "--simulate"])).toEqual({
      action: "policyDiff",
      options: { before: "a", after: "b", simulate: true, recordings: {} },
    });
    expect(await seen(["approvals", "refuse", "apr_1", "--note", "no"])).toEqual({
      action: "approvalsDecide",
      options: { id: "apr_1", approve: false, note: "no" },
    });
    expect(await seen(["capabilities", "revoke", "--session", "s1", "--reason", "wild"])).toEqual({
      action: "capabilitiesRevoke",
      options: { session: "s1", reason: "wild" },
    });
  });

  it("wants what a policy command cannot do without", async () => {
    for (const argv of [
      ["policy", "check"],
      ["policy", "simulate"],
      ["policy", "diff", "a"],
      ["approvals", "approve"],
      ["capabilities", "revoke", "cap_1"],
    ]) {
      expect([argv, (await run(argv)).exit]).toEqual([argv, 2]);
    }
  });

  it("gives tokens of people an hour, and those of agents a day", async () => {
    const ttlOf = async (role: string): Promise<unknown> =>
      (
        JSON.parse((await run(["--json", "tokens", "issue", "--role", role])).stdout) as {
          options: { ttl: number };
        }
      ).options.ttl;
    expect([await ttlOf("runtime"), await ttlOf("approver")]).toEqual([86_400, 3_600]);
  });

  it("shows help with examples and exit codes", async () => {
    const { exit, stdout } = await run(["--help"]);
    expect(exit).toBe(0);
    expect(stdout).toMatch(/Exit codes: 0 done/);
    expect(stdout).toMatch(/Examples:/);
  });
});
