import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Role } from "../../services/platform/auth.ts";
import type { GateAnswer } from "../../schemas/gate.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import { projectDir } from "../harness/stack.ts";
import { workPolicy } from "../harness/work-policy.ts";

let rig: GateRig;
let gate: RunningGate;
const policy = workPolicy();
beforeAll(async () => {
  rig = await createGateRig();
  gate = await rig.gate({ policy: () => policy });
});
afterAll(() => rig.close());

/** Sends a request as the README writes it, with these values for its variables. */
async function send(path: string, values: Readonly<Record<string, string>> = {}) {
  const readme = await readFile(join(projectDir, "README.md"), "utf8");
  const at = readme.indexOf(`curl -s $GATE${path} `);
  const found = /cat (\w+)\.token\)[^]*? -d '(.*)'\n/.exec(readme.slice(at));
  if (at < 0 || found?.[1] === undefined || found[2] === undefined)
    throw new Error(`README.md has no request for ${path}`);
  const fill = (text: string): string =>
    text.replace(/'?\$([A-Z]+)'?/g, (_all, name: string) => values[name] ?? `no ${name}`);
  const token = await rig.token({ roles: [found[1] as Role], subject: "ann" });
  return gate.post(fill(path), JSON.parse(fill(found[2])) as object, token);
}

const decide = async (command: string): Promise<GateAnswer> =>
  (await gate.post("/v1/gate/decide", ownRequest("shell.run", { command }, { session_id: command })))
    .json as GateAnswer;

describe("the requests that the README shows", () => {
  it("report a fact", async () => {
    expect(await send("/v1/facts")).toMatchObject({ status: 201, json: { is_newest: true } });
  });

  it("approve a plan, ask whether the right to it holds, and spend it", async () => {
    const first = await decide("ask me");
    const DIGEST = first.plan_digest ?? "";
    const agreed = await send("/v1/approvals/$ID/approve", { DIGEST, ID: first.approval?.id ?? "" });
    expect(agreed).toMatchObject({ status: 200, json: { state: "approved", decided_by: "ann" } });
    const RIGHT = (await decide("ask me")).capability?.id ?? "";
    expect(await send("/v1/capabilities/verify", { DIGEST, RIGHT })).toMatchObject({
      status: 200,
      json: { valid: true },
    });
    expect(await send("/v1/capabilities/spend", { DIGEST, RIGHT })).toMatchObject({
      status: 200,
      json: { spent: true, repeated: false },
    });
  });
});
