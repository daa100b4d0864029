import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Adapter } from "../../schemas/adapter.ts";
import { claudeCode } from "../../services/adapters/claude-code/claude-code.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { claudeCall, claudeDenial } from "../harness/hook-payloads.ts";
import { projectDir } from "../harness/stack.ts";

let rig: GateRig;
let running: RunningGate;
beforeAll(async () => {
  rig = await createGateRig();
  running = await rig.gate();
});
afterAll(() => rig.close());

const runtimes = ["claude-code", "codex", "opencode", "openclaw", "hermes", "maf"];
const recordings = runtimes.flatMap((runtime) => {
  const dir = join(projectDir, "test", "corpus", "hooks", runtime);
  return readdirSync(dir)
    .filter((file) => file.endsWith(".json") && !file.startsWith("_"))
    .map((file) => [runtime, file, join(dir, file)] as const);
});

describe("recorded hooks of real clients", () => {
  it.each(recordings)("%s %s is answered and recorded", async (runtime, _file, path) => {
    const body = readFileSync(path, "utf8");
    const reply = await running.post(`/v1/hooks/${runtime}`, body);
    expect(reply.status).toBe(200);
    const events = await rig.events();
    expect(events.at(-1)?.type).not.toBe("fabric.adapter.unrecognized");
  });

  it("left an event each, but for the recordings that show one call twice", async () => {
    const events = await rig.events();
    const hooks = new Set(events.map((one) => one.payload_ref).filter((ref) => ref !== null));
    expect(hooks.size).toBeGreaterThan(recordings.length * 0.9);
    expect(hooks.size).toBeLessThanOrEqual(recordings.length);
  });

  it("are refused in the client's own form when the adapter's reply itself fails", async () => {
    const broken: Adapter = {
      ...claudeCode,
      toReply(translation, answer) {
        if (answer !== null) throw new Error("planted");
        return claudeCode.toReply(translation, answer);
      },
    };
    const gate = await rig.gate({ adapters: new Map([["claude-code", broken]]) });
    const reply = await gate.post("/v1/hooks/claude-code", claudeCall("ls"));
    expect(reply.status).toBe(200);
    expect(claudeDenial(reply.json)).toContain("GATE_UNAVAILABLE");
  });
});
