import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { expireCapabilities } from "../../services/gate/capability/expire-capabilities.ts";
import { newUuidV7, toUuid } from "../../services/platform/ids.ts";
import type { CapabilityGate, CapabilityRig, IssuedRight } from "../harness/capability-rig.ts";
import { createCapabilityRig, rigRevision } from "../harness/capability-rig.ts";
import { eventually } from "../harness/eventually.ts";

let rig: CapabilityRig;
let gate: CapabilityGate;
let second: CapabilityGate;
beforeAll(async () => {
  rig = await createCapabilityRig();
  gate = await rig.gate();
  second = await rig.gate();
});
afterAll(() => rig.close());
afterEach(async () => {
  await rig.admin.query("UPDATE access.tenants SET state = 'active' WHERE state <> 'active'");
});

const boundsOf = (right: IssuedRight): Record<string, unknown> => ({
  token: right.token,
  tool: right.tool,
  resource: right.resource,
  plan_digest: right.planDigest,
  session_id: right.sessionId,
});
const verify = (right: IssuedRight, rest: object = {}, at = gate): ReturnType<CapabilityGate["call"]> =>
  at.call("POST", "/v1/capabilities/verify", { ...boundsOf(right), ...rest });
const spend = (
  right: IssuedRight,
  rest: object = {},
  at = gate,
  subject = "store",
): ReturnType<CapabilityGate["call"]> =>
  at.call(
    "POST",
    "/v1/capabilities/spend",
    { ...boundsOf(right), idempotency_key: newUuidV7(Date.now()), ...rest },
    { subject },
  );
const byId = (right: IssuedRight): object => ({ token: undefined, capability_id: right.id });
const revoke = (body: object, as: object = {}): ReturnType<CapabilityGate["call"]> =>
  gate.call(
    "POST",
    "/v1/capabilities/revoke",
    { reason: "looks wrong", ...body },
    { role: "incident", ...as },
  );
const usedOf = async (right: IssuedRight): Promise<number> => {
  const found = await rig.admin.query<{ calls_used: number }>(
    "SELECT calls_used FROM gate.capabilities WHERE capability_id = $1",
    [toUuid(right.id)],
  );
  return found.rows[0]?.calls_used ?? -1;
};
const eventsOf = async (type: string, right: IssuedRight) =>
  (await rig.events(type)).filter((one) => one.capability_id === right.id);

describe("the public keys", () => {
  it("are there for everybody, and may be kept for a minute", async () => {
    const response = await fetch(`${gate.url}/.well-known/jwks.json`);
    expect(response.status).toBe(200);
    expect(response.headers.get("cache-control")).toBe("public, max-age=60");
    expect(await response.json()).toEqual(rig.signer.jwks());
  });
});

describe("who may", () => {
  it("verify and spend is a resource, take back an incident role, and look neither", async () => {
    const right = await rig.issue();
    const routes = [
      ["POST", "/v1/capabilities/verify", boundsOf(right)],
      ["POST", "/v1/capabilities/spend", { ...boundsOf(right), idempotency_key: "k" }],
      ["POST", "/v1/capabilities/revoke", { session_id: right.sessionId, reason: "r" }],
      ["POST", `/v1/capabilities/${right.id}/revoke`, { reason: "r" }],
      ["GET", "/v1/capabilities", null],
    ] as const;
    for (const role of ["runtime", "analyst"] as const)
      for (const [method, path, body] of routes) {
        const answer = await gate.call(method, path, body, { role });
        expect([path, answer.status, answer.json["code"]]).toEqual([path, 403, "ROLE_MISSING"]);
      }
    expect((await gate.call("POST", `/v1/capabilities/${right.id}/revoke`, { reason: "r" })).status).toBe(
      403,
    );
    expect(await usedOf(right)).toBe(0);
  });
});

describe("verifying", () => {
  it("says what the right is, by token and by id", async () => {
    const right = await rig.issue({ maxCalls: 2 });
    for (const rest of [{}, byId(right)]) {
      const answer = await verify(right, rest);
      expect([answer.status, answer.json["valid"]]).toEqual([200, true]);
      expect(answer.json["capability"]).toMatchObject({
        id: right.id,
        plan_digest: right.planDigest,
        policy_revision: rigRevision,
        max_calls: 2,
        calls_used: 0,
      });
    }
    expect(await usedOf(right)).toBe(0);
  });

  it("names the first bound that differs", async () => {
    const right = await rig.issue();
    const twin = await rig.issue({ tenantId: "other" });
    const cases: Record<string, object> = {
      token: { token: `${right.token.slice(0, -6)}AAAAAA` },
      tenant: { token: twin.token },
      tool: { tool: "store.delete", plan_digest: twin.planDigest.replace(/.$/, "0") },
      plan_digest: { plan_digest: `sha256:${"0".repeat(64)}`, resource: "orders/8" },
      resource: { resource: "orders/8", session_id: "s-other" },
      session: { session_id: "s-other" },
    };
    for (const [differs, rest] of Object.entries(cases)) {
      expect([differs, (await verify(right, rest)).json]).toMatchObject([differs, { valid: false, differs }]);
      expect([differs, (await spend(right, rest)).json["differs"]]).toEqual([differs, differs]);
    }
    expect((await verify(right, { ...byId(right), resource: "orders/8" })).json["differs"]).toBe("resource");
    expect((await verify(right, { resource: null })).json["differs"]).toBe("resource");
    expect(await usedOf(right)).toBe(0);
  });

  it("tells nobody of another tenant's rights", async () => {
    const right = await rig.issue({ tenantId: "other" });
    const unknown = { ...boundsOf(right), token: undefined, capability_id: `cap_${newUuidV7(Date.now())}` };
    const theirs = await verify(right, byId(right));
    const nobodys = await gate.call("POST", "/v1/capabilities/verify", unknown);
    expect(theirs.json).toEqual(nobodys.json);
    expect(theirs.json["differs"]).toBe("unknown");
  });

  it("compares a resource that is shown masked, by id and by token", async () => {
    const resource = "https://store.example/put?token=ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    const right = await rig.issue({ resource });
    expect((await verify(right)).json["valid"]).toBe(true);
    const shown = await verify(right, byId(right));
    expect(shown.json["valid"]).toBe(true);
    expect(JSON.stringify(shown.json)).not.toContain("ghp_0123456789");
    const other = resource.replace("ghp_0", "ghp_1");
    expect((await verify(right, { resource: other })).json["differs"]).toBe("resource");
  });

  it("does not believe a signed token that says something else than its row", async () => {
    const right = await rig.issue();
    const claims = rig.signer.read(right.token);
    if (claims === null) throw new Error("unreadable");
    for (const change of [
      { max_calls: 9 },
      { session: "s-other" },
      { tool: "x.y" },
      { exp: claims.exp + 60 },
    ]) {
      const token = rig.signer.sign({ ...claims, ...change });
      expect((await verify(right, { token })).json["differs"]).toBe("token");
    }
  });

  it("says expired, revoked, spent and frozen", async () => {
    const expired = await rig.issue({ lifetimeMs: -1 });
    expect((await verify(expired)).json["differs"]).toBe("expired");
    const spent = await rig.issue();
    expect((await spend(spent)).status).toBe(200);
    expect((await verify(spent)).json["differs"]).toBe("spent");
    const revoked = await rig.issue();
    await revoke({ session_id: revoked.sessionId });
    expect((await verify(revoked)).json["differs"]).toBe("revoked");
    const right = await rig.issue();
    await rig.admin.query("UPDATE access.tenants SET state = 'frozen' WHERE tenant_id = 'acme'");
    expect((await verify(right)).json["differs"]).toBe("frozen");
  });

  it.each([
    ["no name of a right", { token: undefined }],
    ["two names", { capability_id: `cap_${newUuidV7(0)}` }],
    ["a digest out of form", { plan_digest: "sha256:AB" }],
    ["a field that is not known", { amount: 1 }],
  ])("refuses a request with %s", async (_what, rest) => {
    const answer = await verify(await rig.issue(), rest);
    expect([answer.status, answer.json["code"]]).toEqual([400, "REQUEST_INVALID"]);
  });
});

describe("spending", () => {
  it("uses up calls, says how many, and records it with the same commit", async () => {
    const right = await rig.issue({ maxCalls: 3, sessionId: "s-spend", resource: "orders/9" });
    const first = await spend(right, { calls: 2 });
    expect(first.json).toMatchObject({ spent: true, repeated: false, calls: 2, calls_used: 2 });
    const tooMany = await spend(right, { calls: 2 });
    expect([tooMany.status, tooMany.json["code"], tooMany.json["differs"]]).toEqual([
      409,
      "CAPABILITY_REFUSED",
      "spent",
    ]);
    expect((await spend(right)).json["calls_used"]).toBe(3);
    const [event, ...more] = await eventsOf("agent.capability.spent", right);
    expect(more).toHaveLength(1);
    expect(event).toMatchObject({
      tenant_id: "acme",
      plan_digest: right.planDigest,
      actor: { user_id: "store" },
      execution: { session_id: "s-spend" },
      subject: { tool: "store.put", resource_ref: "orders/9" },
      redacted_summary: { usage_id: first.json["usage_id"], calls: 2, calls_used: 2, max_calls: 3 },
    });
    expect(event?.causation_id).toMatch(/^evt_/);
  });

  it("lets one of sixteen at two gates spend a budget of one", async () => {
    const right = await rig.issue();
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, index) => spend(right, {}, index % 2 === 0 ? gate : second)),
    );
    expect(answers.filter((one) => one.status === 200)).toHaveLength(1);
    expect(new Set(answers.filter((one) => one.status !== 200).map((one) => one.json["differs"]))).toEqual(
      new Set(["spent"]),
    );
    expect(await usedOf(right)).toBe(1);
    expect(await eventsOf("agent.capability.spent", right)).toHaveLength(1);
  });

  it("counts a use once, however often and wherever it is asked for", async () => {
    const right = await rig.issue({ maxCalls: 5 });
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        spend(right, { idempotency_key: "same" }, index % 2 === 0 ? gate : second),
      ),
    );
    expect(answers.map((one) => one.status)).toEqual(Array<number>(8).fill(200));
    expect(new Set(answers.map((one) => one.json["usage_id"])).size).toBe(1);
    expect(answers.filter((one) => one.json["repeated"] === false)).toHaveLength(1);
    expect(await usedOf(right)).toBe(1);
    expect(await eventsOf("agent.capability.spent", right)).toHaveLength(1);
  });

  it("refuses a key that stands for another use, or for somebody else's", async () => {
    const right = await rig.issue({ maxCalls: 5 });
    await spend(right, { idempotency_key: "k" });
    expect((await spend(right, { idempotency_key: "k", calls: 2 })).json["differs"]).toBe("idempotency_key");
    expect((await spend(right, { idempotency_key: "k" }, gate, "other-store")).json["differs"]).toBe(
      "idempotency_key",
    );
    expect(await usedOf(right)).toBe(1);
  });

  it("does not repeat a use of a right that was taken back since", async () => {
    const right = await rig.issue({ maxCalls: 5 });
    await spend(right, { idempotency_key: "k" });
    await revoke({ session_id: right.sessionId });
    expect((await spend(right, { idempotency_key: "k" })).json["differs"]).toBe("revoked");
  });

  it("is waited for by a freeze, after which nothing is spent", async () => {
    const right = await rig.issue({ maxCalls: 2 });
    const row = await rig.admin.query<{ lane: number }>(
      "SELECT outbox.lane_of('acme/cor_' || correlation_id) AS lane FROM gate.decisions WHERE decision_id = (SELECT decision_id FROM gate.capabilities WHERE capability_id = $1)",
      [toUuid(right.id)],
    );
    const waiters = async (lockClass: number): Promise<number> => {
      const found = await rig.admin.query<{ n: number }>(
        "SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND NOT granted",
        [lockClass],
      );
      return found.rows[0]?.n ?? 0;
    };
    const holder = await rig.admin.connect();
    try {
      // The use has read that the tenant is active, and cannot be committed yet.
      await holder.query("BEGIN");
      await holder.query("SELECT pg_advisory_xact_lock(1869968498, $1)", [row.rows[0]?.lane]);
      const use = spend(right);
      await eventually(async () => (await waiters(1_869_968_498)) === 1, undefined, {
        what: "a use that waits",
      });
      const freeze = rig.admin.query("UPDATE access.tenants SET state = 'frozen' WHERE tenant_id = 'acme'");
      await eventually(async () => (await waiters(1_952_804_449)) === 1, undefined, {
        what: "a freeze that waits",
      });
      const late = spend(right, {}, second);
      await holder.query("COMMIT");
      await freeze;
      expect((await use).status).toBe(200);
      expect((await late).json["differs"]).toBe("frozen");
      expect(await usedOf(right)).toBe(1);
    } finally {
      holder.release();
    }
  });

  it("writes nothing when its event cannot be written", async () => {
    const right = await rig.issue();
    await rig.admin.query(
      "REVOKE EXECUTE ON FUNCTION outbox.append(uuid[], text[], text[], text[], bytea[], jsonb[]) FROM fabric_gate",
    );
    try {
      expect((await spend(right)).status).toBe(500);
    } finally {
      await rig.admin.query(
        "GRANT EXECUTE ON FUNCTION outbox.append(uuid[], text[], text[], text[], bytea[], jsonb[]) TO fabric_gate",
      );
    }
    expect(await usedOf(right)).toBe(0);
    expect((await spend(right)).status).toBe(200);
  });
});

describe("taking back", () => {
  it("ends a right at every gate at once, and says who and why", async () => {
    const right = await rig.issue();
    const answer = await gate.call(
      "POST",
      `/v1/capabilities/${right.id}/revoke`,
      { reason: "  leaked with ghp_0123456789abcdefghijklmnopqrstuvwxyz  " },
      { role: "incident", subject: "ida" },
    );
    expect(answer).toMatchObject({ status: 200, json: { revoked: 1 } });
    for (const at of [gate, second]) {
      expect((await verify(right, {}, at)).json["differs"]).toBe("revoked");
      expect((await spend(right, {}, at)).json["differs"]).toBe("revoked");
    }
    const [event] = await eventsOf("agent.capability.revoked", right);
    expect(event).toMatchObject({
      actor: { user_id: "ida" },
      origin: "human",
      redacted_summary: { scope: "capability", calls_used: 0, max_calls: 1 },
    });
    expect(JSON.stringify(event)).toContain("leaked with");
    expect(JSON.stringify(event)).not.toContain("ghp_0123456789");
    const again = await gate.call(
      "POST",
      `/v1/capabilities/${right.id}/revoke`,
      { reason: "r" },
      { role: "admin" },
    );
    expect(again.json).toEqual({ revoked: 0 });
    expect(await eventsOf("agent.capability.revoked", right)).toHaveLength(1);
  });

  it("reaches all live rights of a session, and of a user, of one tenant alone", async () => {
    const sessionId = "s-shared";
    const mine = await Promise.all([1, 2, 3].map(() => rig.issue({ sessionId, maxCalls: 2 })));
    const ended = await rig.issue({ sessionId, lifetimeMs: -1 });
    const elsewhere = await rig.issue({ sessionId, tenantId: "other" });
    expect((await revoke({ session_id: sessionId })).json).toEqual({ revoked: 3 });
    for (const right of mine) expect((await verify(right)).json["differs"]).toBe("revoked");
    expect((await verify(ended)).json["differs"]).toBe("expired");
    const theirs = await second.call("POST", "/v1/capabilities/verify", boundsOf(elsewhere), {
      tenantId: "other",
    });
    expect(theirs.json["valid"]).toBe(true);
    const [one, other] = [await rig.issue({ userId: "mallory" }), await rig.issue({ userId: "ann" })];
    expect((await revoke({ subject: "mallory" })).json).toEqual({ revoked: 1 });
    expect((await verify(one)).json["differs"]).toBe("revoked");
    expect((await verify(other)).json["valid"]).toBe(true);
  });

  it("remembers a revoked plan, also for rights that are issued later", async () => {
    const input = { amount: 1000 };
    const before = await rig.issue({ input });
    const answer = await revoke({ plan_digest: before.planDigest, hours: 2 }, { subject: "ida" });
    expect(answer.json).toEqual({ revoked: 1 });
    const later = await rig.issue({ input });
    expect(later.planDigest).toBe(before.planDigest);
    expect((await verify(later)).json["differs"]).toBe("plan_revoked");
    expect((await spend(later)).json["differs"]).toBe("plan_revoked");
    const rows = await rig.admin.query<{ hours: number; revoked_by: string }>(
      "SELECT extract(epoch FROM until - revoked_at)::float8 / 3600 AS hours, revoked_by FROM gate.revoked_plans WHERE digest = $1",
      [before.planDigest],
    );
    expect(rows.rows).toEqual([{ hours: expect.closeTo(2, 3) as number, revoked_by: "ida" }]);
    // A shorter revocation takes nothing back.
    await revoke({ plan_digest: before.planDigest, hours: 1 });
    const events = (await rig.events("agent.plan.revoked")).filter(
      (one) => one.plan_digest === before.planDigest,
    );
    expect(events.map((one) => one.redacted_summary)).toMatchObject([
      { capabilities: 1 },
      { capabilities: 1 },
    ]);
    expect(
      new Set(events.map((one) => JSON.stringify(one.redacted_summary).replace(/.*expires_at/, ""))).size,
    ).toBe(1);
    await rig.admin.query("UPDATE gate.revoked_plans SET until = clock_timestamp() WHERE digest = $1", [
      before.planDigest,
    ]);
    const fresh = await rig.issue({ input });
    expect((await verify(fresh)).json["valid"]).toBe(true);
  });

  it("does not wait for, nor deadlock with, uses under way", async () => {
    const sessionId = "s-busy";
    const rights = await Promise.all(
      Array.from({ length: 12 }, () => rig.issue({ sessionId, maxCalls: 50 })),
    );
    const uses = rights.flatMap((right) =>
      [1, 2, 3].map((n) => spend(right, {}, n % 2 === 0 ? gate : second)),
    );
    const cut = await revoke({ session_id: sessionId });
    expect(cut.json).toEqual({ revoked: 12 });
    const atCut = (await Promise.all(rights.map(usedOf))).join();
    const answers = await Promise.all(uses);
    expect(answers.every((one) => one.status === 200 || one.json["differs"] === "revoked")).toBe(true);
    expect((await Promise.all(rights.map(usedOf))).join()).toBe(atCut);
  });

  it("says that there is no such right, also of another tenant's", async () => {
    const theirs = await rig.issue({ tenantId: "other" });
    for (const id of [theirs.id, `cap_${newUuidV7(Date.now())}`, "cap_1"]) {
      const answer = await gate.call(
        "POST",
        `/v1/capabilities/${id}/revoke`,
        { reason: "r" },
        { role: "incident" },
      );
      expect([answer.status, answer.json["code"]]).toEqual([404, "CAPABILITY_UNKNOWN"]);
    }
  });

  it.each([
    ["nothing named", {}],
    ["two things named", { session_id: "s", subject: "u" }],
    ["hours of a session", { session_id: "s", hours: 3 }],
    ["an empty reason", { session_id: "s", reason: "  " }],
  ])("refuses a request with %s", async (_what, body) => {
    expect((await revoke(body)).status).toBe(400);
  });
});

describe("another policy", () => {
  it("ends a right whose plan it does not allow, and leaves one that it does", async () => {
    const asked: string[] = [];
    const stricter = await rig.gate({
      policy: {
        revision: () => "policy@2026-11-30.2+000000000000",
        isStillAllowed: ({ decisionId }) => {
          asked.push(decisionId);
          return Promise.resolve(asked.length === 1);
        },
      },
    });
    const [good, bad] = [await rig.issue(), await rig.issue()];
    expect((await spend(good, {}, stricter)).status).toBe(200);
    expect((await spend(bad, {}, stricter)).json["differs"]).toBe("policy_revision");
    expect(asked).toHaveLength(2);
    // It stays ended, also where the old revision is still loaded.
    expect((await spend(bad)).json["differs"]).toBe("revoked");
    const [event] = await eventsOf("agent.capability.revoked", bad);
    expect(event).toMatchObject({ actor: { user_id: null }, origin: "processor:gate" });
    const current = await rig.issue({ revision: "policy@2026-11-30.2+000000000000" });
    expect((await verify(current, {}, stricter)).json["valid"]).toBe(true);
    expect(asked).toHaveLength(2);
  });
});

describe("the list", () => {
  it("shows a tenant's rights by state and session, the newest first", async () => {
    const sessionId = "s-list";
    const live = await rig.issue({ sessionId });
    const spent = await rig.issue({ sessionId });
    await spend(spent);
    const expired = await rig.issue({ sessionId, lifetimeMs: -5_000 });
    const revoked = await rig.issue({ sessionId, maxCalls: 2 });
    await gate.call("POST", `/v1/capabilities/${revoked.id}/revoke`, { reason: "r" }, { role: "admin" });
    await rig.issue({ sessionId, tenantId: "other" });
    const list = async (query: string): Promise<string[]> => {
      const answer = await gate.call("GET", `/v1/capabilities?session=${sessionId}${query}`, null, {
        role: "auditor",
      });
      expect(answer.status).toBe(200);
      return (answer.json["capabilities"] as { id: string; state: string }[]).map(
        (one) => `${one.state} ${one.id}`,
      );
    };
    expect(await list("")).toEqual([
      `revoked ${revoked.id}`,
      `spent ${spent.id}`,
      `live ${live.id}`,
      `expired ${expired.id}`,
    ]);
    expect(await list("&state=live")).toEqual([`live ${live.id}`]);
    expect(await list("&state=expired")).toEqual([`expired ${expired.id}`]);
    expect(await list("&limit=1")).toHaveLength(1);
    const wrong = await gate.call("GET", "/v1/capabilities?state=gone", null, { role: "auditor" });
    expect(wrong.status).toBe(400);
  });
});

describe("coming to an end", () => {
  it("is told once of rights that were begun, by one gate, and of no other", async () => {
    const begun = await rig.issue({ maxCalls: 3 });
    await spend(begun);
    const unused = await rig.issue({ maxCalls: 3 });
    const used = await rig.issue();
    await spend(used);
    await rig.admin.query(
      "UPDATE gate.capabilities SET expires_at = clock_timestamp() WHERE capability_id = ANY ($1::uuid[])",
      [[begun, unused, used].map((one) => toUuid(one.id))],
    );
    const counts = await Promise.all(
      [rig.database(), rig.database(), rig.database()].map((database) =>
        expireCapabilities({ ...rig.deps, database }),
      ),
    );
    const again = await expireCapabilities(rig.deps);
    expect(counts.reduce((sum, one) => sum + one, 0)).toBeGreaterThanOrEqual(1);
    expect(again).toBe(0);
    expect(await eventsOf("agent.capability.expired", begun)).toMatchObject([
      { origin: "schedule", redacted_summary: { calls_used: 1, max_calls: 3 } },
    ]);
    expect(await eventsOf("agent.capability.expired", unused)).toEqual([]);
    expect(await eventsOf("agent.capability.expired", used)).toEqual([]);
  });
});

describe("the relay", () => {
  it("is woken after a use", async () => {
    const heard: string[] = [];
    const listener = await rig.database().listen("outbox", () => heard.push("x"));
    const before = heard.length;
    await spend(await rig.issue());
    await eventually(() => heard.length > before);
    await listener.close();
  });
});
