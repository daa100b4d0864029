import { createHmac } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { newCapabilityKeys } from "../../services/gate/capability/capability-keys.ts";
import { createCapabilitySigner } from "../../services/gate/capability/signer.ts";
import type { CapabilityGate, CapabilityRig, IssuedRight } from "../harness/capability-rig.ts";
import { createCapabilityRig } from "../harness/capability-rig.ts";
import type { ActRequest, SampleResource } from "../harness/sample-resource.ts";
import { startSampleResource } from "../harness/sample-resource.ts";

let rig: CapabilityRig;
let gate: CapabilityGate;
let resource: SampleResource;
const started: SampleResource[] = [];
const start = async (gateUrl: string, tool = "store.put"): Promise<SampleResource> => {
  const one = await startSampleResource({ gateUrl, tenantId: "acme", tool, bearer: await rig.bearer() });
  started.push(one);
  return one;
};
beforeAll(async () => {
  rig = await createCapabilityRig();
  gate = await rig.gate();
  resource = await start(gate.url);
});
afterAll(async () => {
  for (const one of started) await one.close();
  await rig.close();
});
afterEach(async () => {
  await rig.admin.query("UPDATE access.tenants SET state = 'active' WHERE state <> 'active'");
});

let keys = 0;
const act = async (
  right: IssuedRight,
  rest: Partial<ActRequest> = {},
  at = resource,
): Promise<{ status: number; body: Record<string, unknown> }> => {
  keys += 1;
  const asked: ActRequest = { token: right.token, plan: right.plan, key: `key-${String(keys)}`, ...rest };
  const response = await fetch(at.url, { method: "POST", body: JSON.stringify(asked) });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};
const part = (value: unknown): string => Buffer.from(JSON.stringify(value), "utf8").toString("base64url");
const claimsOf = (right: IssuedRight) => {
  const claims = rig.signer.read(right.token);
  if (claims === null) throw new Error("the rig's own token is unreadable");
  return claims;
};

describe("a resource service", () => {
  it("carries out exactly the plan that the right is for, once", async () => {
    const right = await rig.issue({ input: { amount: 41 } });
    expect(await act(right)).toEqual({
      status: 200,
      body: { result: resource.done.length, repeated: false },
    });
    expect(resource.done.at(-1)).toEqual({ amount: 41 });
    expect((await act(right)).body).toEqual({ refused: "spent" });
    expect(resource.done.at(-1)).toEqual({ amount: 41 });
  });

  it("does nothing twice for one key", async () => {
    const right = await rig.issue({ maxCalls: 5 });
    const before = resource.done.length;
    const answers = [];
    for (let n = 0; n < 3; n += 1) answers.push(await act(right, { key: "the-same" }));
    expect(answers.map((one) => one.body["repeated"])).toEqual([false, true, true]);
    expect(new Set(answers.map((one) => one.body["result"])).size).toBe(1);
    expect(resource.done.length).toBe(before + 1);
  });

  it("lets one of sixteen callers through with a budget of one", async () => {
    const right = await rig.issue();
    const before = resource.done.length;
    const answers = await Promise.all(Array.from({ length: 16 }, () => act(right)));
    expect(answers.filter((one) => one.status === 200)).toHaveLength(1);
    expect(resource.done.length).toBe(before + 1);
  });
});

/** What somebody hands to the resource, and what it says to that. */
const attempts: Record<
  string,
  [string, (right: IssuedRight) => Partial<ActRequest> | Promise<Partial<ActRequest>>]
> = {
  "a token with a changed claim": [
    "token",
    (right) => {
      const [head = "", , signature = ""] = right.token.split(".");
      return { token: `${head}.${part({ ...claimsOf(right), max_calls: 100 })}.${signature}` };
    },
  ],
  "a token of another key": [
    "token",
    (right) => ({ token: createCapabilitySigner(newCapabilityKeys()).sign(claimsOf(right)) }),
  ],
  "a token of another key under a published name": [
    "token",
    (right) => {
      const [published] = rig.signer.jwks().keys;
      if (published === undefined) throw new Error("no key is published");
      const signing = { ...newCapabilityKeys().signing, kid: published.kid };
      return { token: createCapabilitySigner({ signing, published: [published] }).sign(claimsOf(right)) };
    },
  ],
  "a token without a signature": [
    "token",
    (right) => ({
      token: `${part({ alg: "none", typ: "fabric-capability+jwt" })}.${part(claimsOf(right))}.`,
    }),
  ],
  "a token signed with the public key as a secret": [
    "token",
    (right) => {
      const [published] = rig.signer.jwks().keys;
      const signed = `${part({ alg: "HS256", typ: "fabric-capability+jwt", kid: published?.kid })}.${part(claimsOf(right))}`;
      const signature = createHmac("sha256", published?.x ?? "")
        .update(signed)
        .digest("base64url");
      return { token: `${signed}.${signature}` };
    },
  ],
  "a person's token": ["token", async () => ({ token: await rig.bearer({ role: "admin" }) })],
  "no token": ["token", () => ({ token: "" })],
  "another tenant's right": [
    "tenant",
    async () => ({ token: (await rig.issue({ tenantId: "other" })).token }),
  ],
  "a right for another tool": [
    "tool",
    async () => {
      const { token, plan } = await rig.issue({ tool: "store.delete" });
      return { token, plan };
    },
  ],
  "another plan of the same tool and resource": [
    "plan_digest",
    (right) => ({ plan: { ...right.plan, arguments: { amount: 4000 } } }),
  ],
  "another resource in the plan": [
    "plan_digest",
    (right) => ({ plan: { ...right.plan, resource: "orders/8" } }),
  ],
  "looser limits in the plan": ["plan_digest", (right) => ({ plan: { ...right.plan, constraints: {} } })],
};

describe("a resource service refuses", () => {
  it.each(Object.entries(attempts))("%s", async (_what, [refused, change]) => {
    const right = await rig.issue();
    const before = resource.done.length;
    expect(await act(right, await change(right))).toEqual({ status: 403, body: { refused } });
    expect(resource.done.length).toBe(before);
    // The right itself is as good as before.
    expect((await act(right)).status).toBe(200);
  });

  it("a right that has come to its end, by its own look", async () => {
    const right = await rig.issue({ lifetimeMs: -2_000 });
    expect((await act(right)).body).toEqual({ refused: "expired" });
  });

  it("a right that was taken back, at once", async () => {
    const right = await rig.issue({ maxCalls: 10 });
    expect((await act(right)).status).toBe(200);
    const second = await rig.gate();
    const cut = await second.call(
      "POST",
      `/v1/capabilities/${right.id}/revoke`,
      { reason: "wrong order" },
      { role: "incident" },
    );
    expect(cut.json).toEqual({ revoked: 1 });
    expect((await act(right)).body).toEqual({ refused: "revoked" });
  });

  it("every right of a frozen tenant", async () => {
    const right = await rig.issue();
    await rig.admin.query("UPDATE access.tenants SET state = 'frozen' WHERE tenant_id = 'acme'");
    expect((await act(right)).body).toEqual({ refused: "frozen" });
  });

  it("everything while the gate or its database is away", async () => {
    const right = await rig.issue();
    const lonely = await rig.gate();
    const near = await start(lonely.url);
    // Its keys are known from before: the signature alone would be good.
    expect((await act(await rig.issue(), {}, near)).status).toBe(200);
    await lonely.app.close();
    expect((await act(right, {}, near)).body).toEqual({ refused: "gate_away" });
    const blind = await rig.gate({ database: rig.database("postgres://fabric_gate:x@127.0.0.1:1/none") });
    const beside = await start(blind.url);
    expect((await act(right, {}, beside)).body).toEqual({ refused: "gate_away" });
    const answer = await blind.call("POST", "/v1/capabilities/verify", {
      token: right.token,
      tool: right.tool,
      plan_digest: right.planDigest,
    });
    expect([answer.status, answer.json["code"]]).toEqual([503, "DATABASE_UNAVAILABLE"]);
    expect(near.done.length + beside.done.length).toBe(1);
    expect((await act(right)).status).toBe(200);
  });
});

describe("a change of the gate's keys", () => {
  it("leaves rights of the earlier key good, at a resource and at the gate", async () => {
    const first = newCapabilityKeys();
    const before = createCapabilitySigner(first);
    const after = createCapabilitySigner(newCapabilityKeys(first.published));
    const moved = await rig.gate({ signer: after });
    const near = await start(moved.url);
    const [old, fresh] = [await rig.issue(), await rig.issue()];
    expect((await act({ ...old, token: before.sign(claimsOf(old)) }, {}, near)).status).toBe(200);
    expect((await act({ ...fresh, token: after.sign(claimsOf(fresh)) }, {}, near)).status).toBe(200);
  });
});
