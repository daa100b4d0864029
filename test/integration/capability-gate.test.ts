import { createRemoteJWKSet, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";

let rig: GateRig;
let gate: RunningGate;
let resourceToken: string;
let incidentToken: string;
beforeAll(async () => {
  rig = await createGateRig();
  gate = await rig.gate();
  resourceToken = await rig.token({ roles: ["resource"], subject: "files" });
  incidentToken = await rig.token({ roles: ["incident"], subject: "ida" });
});
afterAll(() => rig.close());

const write = (name: string, content = "x", rest: Record<string, unknown> = {}): object =>
  ownRequest("file.write", { file_path: `/work-place/${name}`, content }, rest);
const decide = async (request: object, at = gate): Promise<GateAnswer> => {
  const reply = await at.post("/v1/gate/decide", request);
  expect(reply.status).toBe(200);
  return reply.json as GateAnswer;
};
const rightOf = (answer: GateAnswer): { id: string; token: string; planDigest: string } => {
  expect([answer.decision, answer.reason_code]).toEqual(["allow", "ALLOWED"]);
  const { capability, plan_digest: planDigest } = answer;
  if (capability?.token == null || planDigest === null) throw new Error("no right was given");
  return { id: capability.id, token: capability.token, planDigest };
};
const ask = async (
  at: RunningGate,
  path: string,
  body: object,
  token: string,
): Promise<Record<string, unknown>> => (await at.post(path, body, token)).json as Record<string, unknown>;

describe("an allowed effect", () => {
  it("comes with a right that a resource can check by itself, and that the gate knows", async () => {
    const right = rightOf(await decide(write("a.txt")));
    const keys = createRemoteJWKSet(new URL("/.well-known/jwks.json", gate.url));
    const { payload } = await jwtVerify(right.token, keys, {
      algorithms: ["EdDSA"],
      issuer: "fabric:gate",
      audience: "fabric-capability",
    });
    expect(payload).toMatchObject({
      jti: right.id,
      tenant: "acme",
      session: "s-1",
      tool: "file.write",
      plan_digest: right.planDigest,
      max_calls: 1,
    });
    const bounds = {
      tool: "file.write",
      resource: "/work-place/a.txt",
      plan_digest: right.planDigest,
      session_id: "s-1",
    };
    for (const name of [{ token: right.token }, { capability_id: right.id }]) {
      const found = await ask(gate, "/v1/capabilities/verify", { ...name, ...bounds }, resourceToken);
      expect(found).toMatchObject({
        valid: true,
        capability: { id: right.id, resource: "/work-place/a.txt" },
      });
    }
    const use = { token: right.token, ...bounds, idempotency_key: "once" };
    expect(await ask(gate, "/v1/capabilities/spend", use, resourceToken)).toMatchObject({
      spent: true,
      calls_used: 1,
    });
    const types = (await rig.events()).filter((one) => one.capability_id === right.id).map((one) => one.type);
    expect(types).toEqual(["agent.tool.authorized", "agent.capability.issued", "agent.capability.spent"]);
  });

  it("gets the same right when the same call is asked again, and no token is stored", async () => {
    const request = write("b.txt");
    const [first, again] = [await decide(request), await decide(request)];
    expect(again.repeated).toBe(true);
    expect(again.capability).toEqual(first.capability);
    const stored = await rig.admin.query("SELECT 1 FROM gate.decisions WHERE answer::text LIKE '%eyJ%'");
    expect(stored.rowCount).toBe(0);
  });

  it("can be used when a secret is in its resource, and when its session's name is no text of a database", async () => {
    const name = "ghp_0123456789abcdefghijklmnopqrstuvwxyz.txt";
    const right = rightOf(await decide(write(name, "x", { session_id: "s\u0000\ud800" })));
    const bounds = { tool: "file.write", resource: `/work-place/${name}`, plan_digest: right.planDigest };
    for (const named of [{ token: right.token }, { capability_id: right.id }])
      expect(
        await ask(gate, "/v1/capabilities/verify", { ...named, ...bounds }, resourceToken),
      ).toMatchObject({
        valid: true,
      });
  });

  it("gets none when it only reads", async () => {
    const answer = await decide(ownRequest("file.read", { file_path: "/work-place/a.txt" }));
    expect([answer.decision, answer.capability]).toEqual(["allow", undefined]);
  });
});

describe("a revoked plan", () => {
  it("is denied at every gate, whoever asks, and its rights are dead", async () => {
    const second = await rig.gate();
    const right = rightOf(await decide(write("c.txt", "same")));
    const body = { plan_digest: right.planDigest, reason: "wrong file" };
    expect(await ask(gate, "/v1/capabilities/revoke", body, incidentToken)).toEqual({ revoked: 1 });
    const use = { token: right.token, plan_digest: right.planDigest, idempotency_key: "k" };
    expect(await ask(second, "/v1/capabilities/spend", use, resourceToken)).toMatchObject({
      differs: "revoked",
    });
    for (const at of [gate, second]) {
      const answer = await decide(write("c.txt", "same", { session_id: "s-other" }), at);
      expect([answer.decision, answer.reason_code, answer.capability]).toEqual([
        "deny",
        "PLAN_REVOKED",
        undefined,
      ]);
    }
    rightOf(await decide(write("c.txt", "another")));
  });
});

describe("a user's rights", () => {
  it("end together", async () => {
    const subject = "mallory";
    const token = await rig.token({ subject });
    const answer = (await gate.post("/v1/gate/decide", write("d.txt"), token)).json as GateAnswer;
    const [theirs, mine] = [rightOf(answer), rightOf(await decide(write("d.txt")))];
    const cut = await ask(
      gate,
      "/v1/capabilities/revoke",
      { subject, reason: "account taken" },
      incidentToken,
    );
    expect(cut).toEqual({ revoked: 1 });
    const verify = (right: { token: string; planDigest: string }): Promise<Record<string, unknown>> =>
      ask(
        gate,
        "/v1/capabilities/verify",
        { token: right.token, tool: "file.write", plan_digest: right.planDigest },
        resourceToken,
      );
    expect((await verify(theirs))["differs"]).toBe("revoked");
    expect((await verify(mine))["valid"]).toBe(true);
  });
});

describe("a right of an earlier revision", () => {
  it("holds at a gate that has another revision of the same rules, on the facts that were stored", async () => {
    const renamed = { ...rig.policy, revision: "policy@2099-01-01.1+000000000000" };
    const later = await rig.gate({ policy: () => renamed });
    const right = rightOf(await decide(write("e.txt")));
    const use = { token: right.token, plan_digest: right.planDigest, idempotency_key: "k" };
    expect(await ask(later, "/v1/capabilities/spend", use, resourceToken)).toMatchObject({ spent: true });
  });
});
