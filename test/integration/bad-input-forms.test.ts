import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import type { FormPlace } from "../harness/gated-forms.ts";
import { gatedForms } from "../harness/gated-forms.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { workPolicy } from "../harness/work-policy.ts";

const inputBytes = 5 * 2 ** 20;

let rig: GateRig;
let gate: RunningGate;
let token: string;
let approver: string;
let folder: string;
beforeAll(async () => {
  rig = await createGateRig();
  const policy = workPolicy();
  gate = await rig.gate({ policy: () => policy });
  token = await rig.token();
  approver = await rig.token({ roles: ["approver"], subject: "ada" });
});
afterAll(() => rig.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "forms-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const place = (waitMs = 0): FormPlace => ({ folder, gateUrl: gate.url, token, deadlineMs: 5_000, waitMs });
const newCall = (command: string): { id: string; command: string } => ({
  id: `call-${randomUUID()}`,
  command,
});

/** What the gate holds about a command: its decisions, and its approvals with their states. */
async function heldOf(
  command: string,
): Promise<{ decisions: number; approvals: { id: string; digest: string; state: string }[] }> {
  const decided = await rig.admin.query<{ n: number }>(
    "SELECT count(*)::integer AS n FROM gate.decisions WHERE request -> 'input' ->> 'command' = $1",
    [command],
  );
  const approvals = await rig.admin.query<{ id: string; digest: string; state: string }>(
    `SELECT 'apr_' || approval_id AS id, plan_digest AS digest, state FROM gate.approvals
     WHERE plan -> 'arguments' ->> 'command' = $1 ORDER BY created_at`,
    [command],
  );
  return { decisions: decided.rows[0]?.n ?? 0, approvals: approvals.rows };
}

describe.each(gatedForms)("$name", (form) => {
  it("runs a call that the gate allows, and refuses one with an input of 5 MB and says why", async () => {
    expect(await form.ask(place(), newCall("echo hi"))).toMatchObject({ ran: true });
    const { ran, told } = await form.ask(place(), newCall(`echo ${"x".repeat(inputBytes)}`));
    expect([ran, told.slice(0, 200)]).toEqual([false, expect.stringContaining("BODY_TOO_LARGE")]);
  });
});

const ofProcesses = gatedForms.flatMap(({ argv, toInput, ...form }) =>
  argv === undefined || toInput === undefined ? [] : [{ ...form, argv, toInput }],
);
describe.each(ofProcesses)("$name, killed while its call waits for an approval", (form) => {
  it("leaves one decision and one ticket, which lets the same call pass once", async () => {
    const command = `ask ${form.name.replaceAll(/\W/g, "-")}`;
    const call = newCall(command);
    const [program = "", ...rest] = form.argv(place(60_000));
    const client = spawn(program, rest, { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    const ended = new Promise((done) => client.once("close", done));
    client.stdin.on("error", () => undefined);
    client.stdin.end(form.toInput(call));
    const { approvals } = await eventually(
      () => heldOf(command),
      (held) => held.approvals.length > 0,
    );
    // It asks again while it waits: in the middle of that, or between.
    if (client.pid !== undefined) process.kill(-client.pid, "SIGKILL");
    await ended;
    expect(await heldOf(command)).toMatchObject({ decisions: 1, approvals: [{ state: "pending" }] });

    const [ticket] = approvals;
    const body = { plan_digest: ticket?.digest, note: "looked at it" };
    expect((await gate.post(`/v1/approvals/${ticket?.id ?? ""}/approve`, body, approver)).status).toBe(200);
    expect(await form.ask(place(), newCall(command))).toMatchObject({ ran: true });
    const after = await heldOf(command);
    expect(after.approvals.map(({ state }) => state)).toEqual(["consumed"]);
    // Once: the next one needs a person again.
    expect(await form.ask(place(), newCall(command))).toMatchObject({ ran: false });
  });
});

describe("hook.sh, killed while its call waits", () => {
  it("leaves its payload on disk no longer than until a later call that waits", async () => {
    const form = ofProcesses.find(({ name }) => name === "hook.sh");
    const [program = "", ...rest] = form?.argv(place(60_000)) ?? [];
    const client = spawn(program, rest, { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    const ended = new Promise((done) => client.once("close", done));
    client.stdin.end(form?.toInput(newCall("ask for disk")));
    const left = (): readonly string[] => readdirSync(folder).filter((name) => name.startsWith(".asked-"));
    await eventually(
      () => heldOf("ask for disk"),
      (held) => held.approvals.length > 0,
    );
    if (client.pid !== undefined) process.kill(-client.pid, "SIGKILL");
    await ended;
    const [name = ""] = left();
    expect(name).not.toBe("");
    // Longer ago than any call may wait.
    utimesSync(join(folder, name), new Date("2026-01-01T00:00:00Z"), new Date("2026-01-01T00:00:00Z"));
    await form?.ask(place(1_000), newCall("echo hi"));
    expect(left()).toEqual([]);
  });
});
