import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { projectDir } from "../harness/stack.ts";
import { workPolicy } from "../harness/work-policy.ts";

type Payload = Record<string, unknown>;

let rig: GateRig;
let gate: RunningGate;
beforeAll(async () => {
  rig = await createGateRig();
  const policy = workPolicy();
  gate = await rig.gate({ policy: () => policy });
});
afterAll(() => rig.close());

const recorded = (runtime: string, name: string): Payload =>
  JSON.parse(
    readFileSync(join(projectDir, "test", "corpus", "hooks", runtime, `${name}.json`), "utf8"),
  ) as Payload;

/** A recorded result as one of a call of its own, and the call in front of it. */
function story(runtime: string, tool = "Bash", input?: Payload): { call: Payload; result: Payload } {
  const place = { session_id: `s-${randomUUID().slice(0, 8)}`, tool_use_id: `call-${randomUUID()}` };
  const result = { ...recorded(runtime, `PostToolUse.${tool}`), ...place };
  const asked = input ?? (result as Payload)["tool_input"];
  return {
    call: { ...recorded(runtime, `PreToolUse.${tool}`), ...place, tool_input: asked },
    result: { ...result, tool_input: asked },
  };
}
const post = async (runtime: string, payload: Payload, at = gate): Promise<void> => {
  expect((await at.post(`/v1/hooks/${runtime}`, payload)).status).toBe(200);
};
const remarksOf = async ({ session_id }: Payload): Promise<readonly Payload[]> =>
  (await rig.events())
    .filter((one) => one.execution.session_id === session_id)
    .filter(({ type }) => /^agent\.(?:plan\.diverged|effect\.ungated)$/.test(type))
    .map(({ type, redacted_summary: summary, plan_digest, causation_id }) => ({
      type,
      plan_digest,
      isCaused: causation_id !== null,
      ...summary,
    }));
const bash = (command: string): Payload => ({ command, description: "what it does" });

describe.each(["claude-code", "codex"])("a result of %s", (runtime) => {
  it("that tells what was allowed says nothing more, also in another folder than the call's", async () => {
    const { call, result } = story(runtime);
    await post(runtime, call);
    await post(runtime, { ...result, cwd: "/workspace/sub" });
    expect(await remarksOf(call)).toEqual([]);
  });

  it("that tells of another input than the one that was allowed is an event with both digests", async () => {
    const { call, result } = story(runtime);
    await post(runtime, call);
    await post(runtime, { ...result, tool_input: bash("echo evil > out.txt") });
    const [remark, ...more] = await remarksOf(call);
    expect(more).toEqual([]);
    expect(remark).toMatchObject({ type: "agent.plan.diverged", isCaused: true });
    expect(remark?.["expected_digest"]).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(remark?.["plan_digest"]).toBe(remark?.["expected_digest"]);
    expect(remark?.["actual_digest"]).not.toBe(remark?.["expected_digest"]);
    expect(remark?.["detail"]).toContain("another input ran");
    expect(remark?.["detail"]).toContain("echo evil");
  });

  it("is compared with the rewritten input, where there is one: also one that holds a secret", async () => {
    for (const [ran, expected] of [
      ["echo password=hunter2-rewritten-hunter2", []],
      ["rewrite-me", ["agent.plan.diverged"]],
    ] as const) {
      const { call, result } = story(runtime, "Bash", bash("rewrite-me"));
      await post(runtime, call);
      await post(runtime, { ...result, tool_input: bash(ran) });
      const remarks = await remarksOf(call);
      expect(remarks.map(({ type }) => type)).toEqual(expected);
      expect(JSON.stringify(remarks)).not.toContain("hunter2");
    }
  });

  it("of a call that was refused is an event: it ran all the same", async () => {
    const { call, result } = story(runtime, "Bash", bash("git push --force"));
    await post(runtime, call);
    await post(runtime, result);
    expect(await remarksOf(call)).toMatchObject([
      { type: "agent.plan.diverged", detail: expect.stringContaining("it was refused, and ran") as string },
    ]);
  });

  it("of a call that nobody asked about is an ungated effect, told once", async () => {
    const { result } = story(runtime);
    await post(runtime, result);
    await post(runtime, result);
    expect(await remarksOf(result)).toMatchObject([
      { type: "agent.effect.ungated", evidence: "result_without_decision", effect_class: "execute" },
    ]);
  });

  it("is counted where it does not fit", async () => {
    const { result } = story(runtime);
    await post(runtime, result);
    expect(await (await fetch(`${gate.url}/metrics`)).text()).toMatch(
      /fabric_gate_result_remarks_total\{type="agent\.effect\.ungated"\} [1-9]/,
    );
  });
});

describe("a result", () => {
  it("of a call with a large input is compared to its last character", async () => {
    const shipped = await rig.gate();
    const content = `${"a line of a large file\n".repeat(10_000)}the end`;
    const write = (text: string): Payload => ({ file_path: "/workspace/large.txt", content: text });
    for (const [ran, expected] of [
      [content, []],
      [content.replace("the end", "the End"), ["agent.plan.diverged"]],
    ] as const) {
      const { call, result } = story("claude-code", "Write", write(content));
      await post("claude-code", { ...call, cwd: "/workspace" }, shipped);
      await post("claude-code", { ...result, cwd: "/workspace", tool_input: write(ran) }, shipped);
      const remarks = await remarksOf(call);
      expect(remarks.map(({ type }) => type)).toEqual(expected);
      expect(remarks.map((one) => one["expected_digest"] === one["actual_digest"])).toEqual(
        expected.map(() => false),
      );
    }
  });

  it("of a patch that was allowed fits, and of another patch it does not", async () => {
    const shipped = await rig.gate();
    const { call, result } = story("codex", "apply_patch");
    await post("codex", call, shipped);
    await post("codex", result, shipped);
    expect(await remarksOf(call)).toEqual([]);
    const other = story("codex", "apply_patch");
    await post("codex", other.call, shipped);
    const patch = "*** Begin Patch\n*** Add File: x.txt\n+other\n*** End Patch\n";
    await post("codex", { ...other.result, tool_input: { command: patch } }, shipped);
    expect(await remarksOf(other.call)).toMatchObject([{ type: "agent.plan.diverged" }]);
  });

  it("of a read that nobody asked about may come of a runtime's own profile", async () => {
    const { result } = story("claude-code", "Read");
    await post("claude-code", result);
    expect(await remarksOf(result)).toEqual([]);
  });

  it("of a call that waited for a person says nothing: somebody may have agreed in the runtime's dialog", async () => {
    const { call, result } = story("claude-code", "Bash", bash("ask me"));
    await post("claude-code", call);
    await post("claude-code", result);
    expect(await remarksOf(call)).toEqual([]);
  });
});
