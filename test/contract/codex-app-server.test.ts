import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { GateAnswer, GateRequest } from "../../schemas/gate.ts";
import { gateRequestSchema } from "../../schemas/gate.ts";
import { codexAppServer } from "../../services/adapters/codex/app-server/app-server.ts";
import { capabilities } from "../../services/adapters/codex/app-server/capabilities.ts";
import { rules } from "../../services/adapters/codex/app-server/events.ts";
import { readMessage } from "../../services/adapters/codex/app-server/wire-message.ts";
import type { Told } from "../harness/app-server-recordings.ts";
import { readRecording, recordings, replayRecording, toLines } from "../harness/app-server-recordings.ts";
import { projectDir } from "../harness/stack.ts";

const expected = JSON.parse(
  readFileSync(`${projectDir}/test/corpus/hooks/codex-app-server/expected.json`, "utf8"),
) as Readonly<Record<string, readonly string[]>>;
const requestsOf = (told: readonly Told[]): readonly GateRequest[] =>
  told.flatMap(({ translation }) => (translation.kind === "gated" ? [translation.request] : []));
const evidenceIn = (name: string): readonly string[] =>
  toLines(replayRecording(name)).filter((line) => line.includes("agent.effect.ungated"));

describe("recorded runs of the App Server", () => {
  it("have an expectation each, and no expectation without a recording", () => {
    expect(Object.keys(expected)).toEqual(recordings);
    expect(recordings).toHaveLength(76);
  });

  it.each(recordings)("%s tells the gate what was written down", (name) => {
    expect(toLines(replayRecording(name))).toEqual(expected[name]);
  });

  it.each(recordings)(
    "%s: every field is read or dropped by name, and the gate takes every question",
    (name) => {
      for (const { translation, payload } of replayRecording(name)) {
        expect(translation.kind, JSON.stringify(payload)).not.toBe("unrecognized");
        if (translation.kind === "unrecognized") continue;
        expect(translation.unknownFields).toEqual([]);
        if (translation.kind === "gated")
          expect(gateRequestSchema.parse(translation.request)).toEqual(translation.request);
      }
    },
  );

  it("ask about every command and patch that the server asked about, and about each once", () => {
    for (const name of recordings) {
      const asked = readRecording(name)
        .filter(({ from }) => from === "server")
        .map(({ line }) => readMessage(line))
        .filter((message) => message?.kind === "request" && /requestApproval$/.test(message.method));
      expect(
        replayRecording(name).filter(({ payload }) => String(payload["method"]).endsWith("requestApproval"))
          .length,
        name,
      ).toBe(asked.length);
    }
  });

  it("never throw, and say no, when a question loses a field or has it in another type", () => {
    let broken = 0;
    for (const name of recordings)
      for (const { payload, translation } of replayRecording(name)) {
        if (translation.kind !== "gated") continue;
        for (const field of ["session_id", "turn_id", "call_id", "working_directory", "params"])
          for (const value of [undefined, 7, null, ["x"]]) {
            const changed = JSON.parse(JSON.stringify({ ...payload, [field]: value })) as unknown;
            const read = codexAppServer.translate(changed, 1);
            expect(read.kind, `${name} ${field}`).toBe("unrecognized");
            expect(codexAppServer.toReply(read, null).body).toMatchObject({ order: "no" });
            broken += 1;
          }
      }
    expect(broken).toBeGreaterThan(500);
  });
});

it("every message that is translated is in the capability matrix, and no other", () => {
  expect(Object.keys(capabilities.events).sort()).toEqual([...rules.keys()].sort());
  expect(capabilities.runtime).toBe(codexAppServer.runtime);
});

describe("what passes a question by", () => {
  it("is named: a command that ran in the sandbox before anybody was asked, and then outside of it", () => {
    expect(evidenceIn("n20_granular_retry_count")).toEqual([
      "item/completed > agent.effect.ungated shell.run rerun_outside_sandbox",
    ]);
    const [retry] = requestsOf(replayRecording("n20_granular_retry_count"));
    expect(retry?.input).toMatchObject({ with_escalated_permissions: true });
  });

  it("is named: text typed into a running terminal, but for what was asked about", () => {
    expect(evidenceIn("n10_untrusted_stdin")).toHaveLength(2);
    expect(evidenceIn("o_write_stdin")).toEqual([]);
    expect(requestsOf(replayRecording("o_write_stdin")).map(({ tool }) => tool)).toEqual([
      "shell.run",
      "other.write_stdin",
    ]);
  });

  it("is named: a command of the client's own, one that a rule lets pass, one that goes on after its turn", () => {
    expect(evidenceIn("t_shellCommand")).toEqual([
      "item/completed > agent.effect.ungated shell.run result_without_decision",
    ]);
    expect(evidenceIn("n12_untrusted_rules_allow").length).toBeGreaterThan(0);
    expect(evidenceIn("h2_interrupt_running")).toContain(
      "turn/completed > agent.effect.ungated shell.run unfinished_item",
    );
  });

  it("is not named where the wire does not show it: an accepted command that ran again outside the sandbox", () => {
    // Nothing on the wire tells of the second run; `sandbox: none` is what prevents it.
    expect(evidenceIn("n17_untrusted_double_run")).toEqual([]);
  });
});

describe("questions of the App Server", () => {
  it("of a child agent name the thread that started it", () => {
    const [first] = requestsOf(replayRecording("n19_untrusted_subagent"));
    expect(first?.parent_session_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(first?.parent_session_id).not.toBe(first?.session_id);
  });

  it("about a patch hold the paths and the content that only the item before them has", () => {
    const [first] = requestsOf(replayRecording("d_patch_accept"));
    expect(first).toMatchObject({
      tool: "file.patch",
      input: { patch: "*** Begin Patch\n*** Add File: /workspace/w.txt\n+hello\n*** End Patch\n" },
    });
  });

  it("about a server's tool name its call, and a question of the server's own goes to the client", () => {
    const told = replayRecording("q_mcp");
    expect(requestsOf(told).map(({ tool, tool_call_id: id }) => [tool, typeof id])).toEqual([
      ["mcp.gate.echo", "string"],
      ["mcp.gate.elicit", "string"],
    ]);
    const elicitations = readRecording("q_mcp").filter(({ line }) =>
      line.includes("mcpServer/elicitation/request"),
    );
    expect(elicitations.length).toBeGreaterThan(requestsOf(told).length);
  });
});

describe("the order to the proxy", () => {
  const asked = replayRecording("a_cmd_accept").find(
    ({ translation }) => translation.kind === "gated",
  )?.translation;
  const answer: Omit<GateAnswer, "decision"> = {
    decision_id: "dec_1",
    reason_code: "X",
    message: "m",
    policy_revision: "p",
    plan_digest: null,
    correlation_id: "c",
    constraints: {},
    matched_rules: [],
    labels: [],
    repeated: false,
  };
  it.each([
    ["allow", { order: "yes" }],
    ["deny", { order: "no" }],
    ["defer", { order: "no" }],
    ["modify", { order: "no" }],
  ] as const)("after %s is %j", (decision, order) => {
    if (asked === undefined) throw new Error("no question");
    expect(codexAppServer.toReply(asked, { ...answer, decision }).body).toMatchObject(order);
  });
  it("after an open ticket is to wait until the ticket ends", () => {
    if (asked === undefined) throw new Error("no question");
    const approval = { id: "apr_1", expires_at: "2026-12-01T00:00:00.000Z" };
    const reply = codexAppServer.toReply(asked, { ...answer, decision: "require_approval", approval });
    expect(reply.body).toMatchObject({ order: "wait", until: approval.expires_at });
    expect(codexAppServer.toReply(asked, null).body).toMatchObject({ order: "no" });
    expect(codexAppServer.toRefusal(null, "").body).toMatchObject({
      order: "no",
      reason: expect.stringMatching(/./) as string,
    });
  });
});
