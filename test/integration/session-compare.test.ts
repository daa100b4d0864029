import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runtimeRooms } from "../../services/app/runtime-rooms.ts";
import { findSessions } from "../../services/app/session-findings.ts";
import { compareSessions } from "../../services/app/compare-sessions.ts";
import { recordsReader } from "../../services/doctor/records-reader.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { claudeCall } from "../harness/hook-payloads.ts";

const room = runtimeRooms.get("claude-code");
if (room?.records === undefined) throw new Error("the room reads no records");
const { records } = room;

let rig: GateRig;
let gate: RunningGate;
let token: string;
let home: string;
beforeAll(async () => {
  rig = await createGateRig();
  gate = await rig.gate();
  token = await rig.token();
});
afterAll(() => rig.close());
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "records-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const at = "2026-12-01T10:00:00.000Z";
const use = (sessionId: string, id: string): string =>
  JSON.stringify({
    type: "assistant",
    sessionId,
    timestamp: at,
    message: { content: [{ type: "tool_use", id, name: "Bash", input: {} }] },
  });
const end = (sessionId: string, id: string, content: unknown = "done", isError = false): string =>
  JSON.stringify({
    type: "user",
    sessionId,
    timestamp: at,
    message: { content: [{ type: "tool_result", tool_use_id: id, content, is_error: isError }] },
  });
function transcript(name: string, lines: readonly string[]): void {
  const folder = join(home, ".claude", "projects", "-w");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.jsonl`), `${lines.join("\n")}\n`);
}
const compare = (sinceMs = 0, bearer = token): ReturnType<typeof compareSessions> =>
  compareSessions({
    ...{ runtime: "claude-code", records, reader: recordsReader, home, sinceMs, gateUrl: gate.url },
    ...{ token: bearer, signal: AbortSignal.timeout(30_000) },
  });

describe("a client's own records beside what the gate decided", () => {
  it("name what ran: not what never came back, was no call for a tool, or stands in half a line", async () => {
    transcript("odd", [
      use("odd", "ran"),
      use("odd", "pending"),
      end("odd", "ran"),
      use("odd", "refused"),
      end("odd", "refused", "<tool_use_error>InputValidationError</tool_use_error>", true),
      end("odd", "of-nobody"),
      "[1]",
      '{"type":"assistant","sessionId":"odd","mess',
    ]);
    expect(await compare()).toEqual([
      { sessionId: "odd", calls: 1, lastMs: Date.parse(at), isKnown: false, unknownTools: { Bash: 1 } },
    ]);
    expect(await compare(Date.parse(at) + 1)).toEqual([]);
    rmSync(join(home, ".claude"), { recursive: true });
    expect(await compare()).toEqual([]);
  });

  it("name a call whose output reads like the client's own refusal", async () => {
    const text = "<tool_use_error>";
    transcript("sly", [
      ...[use("sly", "a"), end("sly", "a", text), use("sly", "b"), end("sly", "b", [{ type: "text", text }])],
      ...[use("sly", "c"), end("sly", "c", `Exit code 1\n${text}`, true)],
    ]);
    expect(await compare()).toMatchObject([{ sessionId: "sly", calls: 3 }]);
  });

  it("compare sessions of more calls than one question holds", async () => {
    const ids = Array.from({ length: 1_201 }, (_, index) => `call-${String(index)}`);
    transcript(
      "long",
      ids.flatMap((id) => [use("long", id), end("long", id)]),
    );
    for (const id of ["call-0", "call-1200"])
      await gate.post("/v1/hooks/claude-code", claudeCall("ls", { session_id: "long", tool_use_id: id }));
    expect(await compare()).toMatchObject([{ calls: 1_201, isKnown: true, unknownTools: { Bash: 1_199 } }]);
    const where = { home, gateUrl: gate.url, token };
    const { isWell, lines } = await findSessions(room, where, 0, AbortSignal.timeout(30_000));
    expect(isWell).toBe(false);
    expect(lines[1]).toContain("session long: of 1201 tool calls the gate was not asked about Bash (1199)");
    const told = (await rig.events()).filter(
      ({ type, execution }) => type === "agent.effect.ungated" && execution.session_id === "long",
    );
    expect(told.map((event) => event.redacted_summary)).toMatchObject([
      { evidence: "result_without_decision", detail: expect.stringContaining("call-1, call-2") as string },
    ]);
  });

  it("are compared with the caller's own tenant alone, and only by a token of a runtime", async () => {
    await gate.post("/v1/hooks/claude-code", claudeCall("ls", { session_id: "mine", tool_use_id: "c" }));
    transcript("mine", [use("mine", "c"), end("mine", "c")]);
    expect(await compare()).toMatchObject([{ isKnown: true }]);
    expect(await compare(0, await rig.token({ tenantId: "other" }))).toMatchObject([{ isKnown: false }]);
    await expect(compare(0, await rig.token({ roles: ["approver"] }))).rejects.toThrow("403 ROLE_MISSING");
  });

  it("say why they could not be compared, and are not called well then", async () => {
    transcript("s", [use("s", "c"), end("s", "c")]);
    const where = { home, gateUrl: "http://127.0.0.1:9", token };
    const { isWell, lines } = await findSessions(room, where, 0, AbortSignal.timeout(30_000));
    expect([isWell, lines]).toEqual([false, [expect.stringContaining("cannot be asked about sessions")]]);
  });
});
