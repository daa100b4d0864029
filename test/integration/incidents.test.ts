import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { incidentAccess, registerIncidentRoutes } from "../../services/incidents/routes.ts";
import { endTimedTrips } from "../../services/incidents/end-hold.ts";
import { systemClock } from "../../services/platform/clock.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest, testCodec } from "../harness/gate-rig.ts";
import { claudeResult } from "../harness/hook-payloads.ts";
import { workPolicy } from "../harness/work-policy.ts";

let rig: GateRig;
/** Two replicas; the people's routes are asked of the first one. */
let gate: RunningGate;
let replica: RunningGate;
let ida: string;
let resource: string;
const withRoutes = (database: Database) => ({
  database,
  more: {
    access: incidentAccess,
    register: (app: Parameters<typeof registerIncidentRoutes>[0]) =>
      registerIncidentRoutes(app, { database, codec: testCodec(), clock: systemClock, environment: "test" }),
  },
});
beforeAll(async () => {
  rig = await createGateRig();
  gate = await rig.gate(withRoutes(rig.database()));
  replica = await rig.gate();
  ida = await rig.token({ roles: ["incident"], subject: "ida" });
  resource = await rig.token({ roles: ["resource"], subject: "files" });
});
afterAll(() => rig.close());

const session = (): string => `s-${randomUUID().slice(0, 8)}`;
const write = (rest: Record<string, unknown> = {}): object =>
  ownRequest("file.write", { file_path: "/work-place/a.txt", content: "x" }, rest);
const read = (rest: Record<string, unknown> = {}): object =>
  ownRequest("file.read", { file_path: "/work-place/a.txt" }, rest);
const decide = async (request: object, at = gate): Promise<GateAnswer> =>
  (await at.post("/v1/gate/decide", request)).json as GateAnswer;
const outcome = async (request: object, at = gate): Promise<string> => {
  const { decision, reason_code } = await decide(request, at);
  return `${decision} ${reason_code}`;
};
const declare = async (body: object, token = ida): Promise<string> => {
  const { status, json } = await gate.post("/v1/incidents", { reason: "runs wild", ...body }, token);
  expect([status, json]).toMatchObject([201, { is_open: true }]);
  return (json as { id: string }).id;
};
const lift = (id: string, token = ida) =>
  gate.post(`/v1/incidents/${id}/lift`, { reason: "looked at it" }, token);
/** A trip as the breaker's own table makes it. */
const trip = async (scope: string, scopeId: string, resetsAt: string | null = null): Promise<string> => {
  const id = randomUUID();
  await rig.admin.query(
    `INSERT INTO breaker.trips (trip_id, tenant_id, scope, scope_id, measure, observed, threshold, samples, window_ms,
        window_ended_at, crossed_by, crossed_at, resets_at)
      VALUES ($1, 'acme', $2, $3, 'fan_out', 31, 30, 31, 60000, now(), 'evt_1', now(), $4)`,
    [id, scope, scopeId, resetsAt],
  );
  return `trp_${id}`;
};
const reset = (id: string, token = ida) =>
  gate.post(`/v1/breaker/${id}/reset`, { reason: "the loop is gone" }, token);

describe("an incident", () => {
  it("freezes what it names at every gate with the next decision, and nothing else", async () => {
    const [one, two] = [session(), session()];
    const id = await declare({ scope: "session", scope_id: one });
    for (const at of [gate, replica]) {
      expect(await outcome(read({ session_id: one }), at)).toBe("deny INCIDENT_FROZEN");
      expect(await outcome(write({ session_id: one }), at)).toBe("deny INCIDENT_FROZEN");
      expect(await outcome(write({ session_id: two }), at)).toBe("allow ALLOWED");
    }
    expect((await lift(id)).status).toBe(200);
    for (const at of [gate, replica])
      expect(await outcome(write({ session_id: one }), at)).toBe("allow ALLOWED");
  });

  it("freezes what a frozen session's sub-agents started, in whatever order the links come", async () => {
    for (const isUpFirst of [true, false]) {
      const [a, b, c] = [session(), session(), session()];
      const links = [
        read({ session_id: b, parent_session_id: a }),
        read({ session_id: c, parent_session_id: b }),
      ];
      for (const call of isUpFirst ? links : links.reverse()) await decide(call);
      for (const held of [a, b, c]) {
        const id = await declare({ scope: "session", scope_id: held });
        expect(await outcome(write({ session_id: c }), replica)).toBe("deny INCIDENT_FROZEN");
        await lift(id);
      }
      const id = await declare({ scope: "session", scope_id: b });
      expect(await outcome(write({ session_id: a }))).toBe("allow ALLOWED");
      await lift(id);
    }
  });

  it.each([
    ["tenant", undefined, "TENANT_FROZEN"],
    ["agent", "helper", "INCIDENT_FROZEN"],
    ["user", "dev", "INCIDENT_FROZEN"],
    ["tool", "file.write", "INCIDENT_FROZEN"],
  ])("freezes a %s", async (scope, scopeId, reason) => {
    const id = await declare({ scope, ...(scopeId === undefined ? {} : { scope_id: scopeId }) });
    const call = write({ session_id: session(), agent_id: "helper" });
    expect(await outcome(call, replica)).toBe(`deny ${reason}`);
    await lift(id);
    expect(await outcome(call, replica)).toBe("allow ALLOWED");
  });

  it("freezes one goal, with the sessions that belong to it", async () => {
    const parent = session();
    const { correlation_id } = await decide(read({ session_id: parent }));
    const child = { session_id: session(), parent_session_id: parent };
    await decide(read(child));
    const id = await declare({ scope: "session", scope_id: parent });
    expect(await outcome(write(child))).toBe("deny INCIDENT_FROZEN");
    await lift(id);
    const goal = await declare({ scope: "correlation", scope_id: correlation_id });
    expect(await outcome(write({ session_id: parent }))).toBe("deny INCIDENT_FROZEN");
    await lift(goal);
  });

  it("freezes every tenant for people of the tenant fabric alone", async () => {
    const refused = await gate.post("/v1/incidents", { scope: "all", reason: "x" }, ida);
    expect(refused.status).toBe(403);
    const foreign = await gate.post(
      "/v1/incidents",
      { scope: "tenant", scope_id: "other", reason: "x" },
      ida,
    );
    expect(foreign.status).toBe(403);
    const root = await rig.token({ tenantId: "fabric", roles: ["incident"], subject: "root" });
    const id = await declare({ scope: "all" }, root);
    const other = await rig.token({ tenantId: "other" });
    const reply = await replica.post("/v1/gate/decide", read(), other);
    expect(reply.json).toMatchObject({ decision: "deny", reason_code: "INCIDENT_FROZEN" });
    expect((await lift(id)).status).toBe(403);
    expect((await lift(id, root)).status).toBe(200);
    expect(await outcome(write())).toBe("allow ALLOWED");
  });

  it("wants the role and a reason, is lifted once, and is an event each time", async () => {
    expect((await gate.post("/v1/incidents", { scope: "tenant", reason: "x" })).status).toBe(403);
    expect((await gate.post("/v1/incidents", { scope: "tenant" }, ida)).status).toBe(400);
    expect((await gate.post("/v1/incidents", { scope: "user", reason: "x" }, ida)).status).toBe(400);
    const id = await declare({ scope: "tool", scope_id: "web.fetch", reason: "token=sk-ant-REDACTED" });
    expect((await gate.post(`/v1/incidents/${id}/lift`, { reason: "x" })).status).toBe(403);
    const listed = await gate.get("/v1/incidents", ida);
    expect(listed.json).toMatchObject({ incidents: [{ id, is_open: true, declared_by: "ida" }] });
    const foreign = await rig.token({ tenantId: "other", roles: ["incident"] });
    expect((await lift(id, foreign)).status).toBe(404);
    expect((await lift(id)).status).toBe(200);
    expect((await lift(id)).status).toBe(409);
    const told = (await rig.events()).filter((one) => one.type.startsWith("fabric.incident."));
    expect(told.slice(-2)).toMatchObject([
      { type: "fabric.incident.declared", redacted_summary: { incident_id: id, declared_by: "ida" } },
      { type: "fabric.incident.lifted", redacted_summary: { incident_id: id, lifted_by: "ida" } },
    ]);
  });

  it("decides again when it comes between facts and commit", async () => {
    const inner = rig.database();
    let id: string | null = null;
    const late = await rig.gate({
      database: {
        ...inner,
        connected: (work) =>
          inner.connected((tx) =>
            work({
              async query(statement, values) {
                id ??= await declare({ scope: "tool", scope_id: "file.write" });
                return tx.query<never>(statement, values);
              },
            }),
          ),
      },
    });
    expect(await outcome(write({ session_id: session() }), late)).toBe("deny INCIDENT_FROZEN");
    await lift(id ?? "");
  });

  it("answers a call again that was allowed before it, and refused while it held", async () => {
    const call = write({ session_id: session(), tool_call_id: "again" });
    expect(await outcome(call)).toBe("allow ALLOWED");
    const id = await declare({ scope: "tool", scope_id: "file.write" });
    expect(await outcome(call)).toBe("deny INCIDENT_FROZEN");
    expect(await decide(call)).toMatchObject({ decision: "deny", repeated: true });
    await lift(id);
    expect(await outcome(call, replica)).toBe("allow ALLOWED");
  });

  it("leaves plugins no answers of their own", async () => {
    const tools = async (): Promise<readonly string[]> =>
      ((await replica.get("/v1/gate/local-profile")).json as { tools: string[] }).tools;
    expect(await tools()).not.toEqual([]);
    const id = await declare({ scope: "user", scope_id: "dev" });
    expect(await tools()).toEqual([]);
    await lift(id);
    expect(await tools()).not.toEqual([]);
  });
});

describe("a trip of the breaker", () => {
  it("lets its scope read, and refuses new effects at every gate", async () => {
    const one = session();
    const id = await trip("agent", `own/${one}/`);
    for (const at of [gate, replica]) {
      expect(await outcome(read({ session_id: one }), at)).toBe("allow ALLOWED");
      expect(await outcome(write({ session_id: one }), at)).toBe("deny READ_ONLY_BREAKER");
      expect(await outcome(write({ session_id: one, agent_id: "child" }), at)).toBe("allow ALLOWED");
    }
    const said = await decide(write({ session_id: one }));
    expect(said.message).toContain("fan out was 31 in 60 s, more than 30");
    expect(said.matched_rules).toContain("breaker.read-only");
    expect((await reset(id)).status).toBe(200);
    expect(await outcome(write({ session_id: one }), replica)).toBe("allow ALLOWED");
  });

  it("takes the open rights of its scope away, and gives them back with the reset", async () => {
    const one = session();
    const { capability, plan_digest, correlation_id } = await decide(write({ session_id: one }));
    const other = await decide(write({ session_id: session() }));
    const use = { capability_id: capability?.id, plan_digest, idempotency_key: "use-1" };
    const check = { capability_id: capability?.id, plan_digest, tool: "file.write" };
    const id = await trip("correlation", correlation_id);
    const verified = await replica.post("/v1/capabilities/verify", check, resource);
    expect(verified.json).toMatchObject({ valid: false, differs: "read_only" });
    const spent = await replica.post("/v1/capabilities/spend", use, resource);
    expect([spent.status, spent.json]).toMatchObject([409, { differs: "read_only" }]);
    const listed = await gate.get("/v1/capabilities?state=held", ida);
    expect(listed.json).toMatchObject({ capabilities: [{ id: capability?.id, state: "held" }] });
    const neighbour = {
      capability_id: other.capability?.id,
      plan_digest: other.plan_digest,
      tool: "file.write",
    };
    expect((await replica.post("/v1/capabilities/verify", neighbour, resource)).json).toMatchObject({
      valid: true,
    });
    await reset(id);
    expect((await replica.post("/v1/capabilities/spend", use, resource)).status).toBe(200);
  });

  it("is one hold however often it is found, and is reset once, by a person with the role", async () => {
    const one = session();
    const first = await trip("agent", `own/${one}/`);
    await trip("agent", `own/${one}/`);
    const open = (await gate.get("/v1/breaker", ida)).json as { trips: { id: string; scope_id: string }[] };
    expect(open.trips.filter(({ scope_id }) => scope_id === `own/${one}/`)).toMatchObject([
      { id: first, evidence: { observed: 31, threshold: 30, crossed_by: "evt_1" } },
    ]);
    expect((await gate.post(`/v1/breaker/${first}/reset`, { reason: "x" })).status).toBe(403);
    expect((await reset(first)).status).toBe(200);
    expect((await reset(first)).status).toBe(409);
    expect((await rig.events()).at(-1)).toMatchObject({
      type: "fabric.breaker.reset",
      redacted_summary: { scope: "agent", trip_id: first, reset_by: "ida", cause: "the loop is gone" },
    });
  });

  it("ends by its time where that is configured, and says so", async () => {
    const one = session();
    const soon = new Date(Date.now() + 1_500).toISOString();
    const id = await trip("agent", `own/${one}/`, soon);
    const call = write({ session_id: one });
    expect(await outcome(call, replica)).toBe("deny READ_ONLY_BREAKER");
    await eventually(
      () => outcome(write({ session_id: one }), replica),
      (one) => one === "allow ALLOWED",
    );
    const deps = { database: rig.database(), codec: testCodec(), clock: systemClock, environment: "test" };
    expect(await endTimedTrips(deps)).toBe(1);
    expect((await rig.events()).at(-1)).toMatchObject({
      type: "fabric.breaker.reset",
      redacted_summary: { trip_id: id, reset_by: "time" },
    });
  });

  it("tells of a trip that made room for the next one before anybody looked", async () => {
    const one = session();
    const past = new Date(Date.now() - 1_000).toISOString();
    const first = await trip("agent", `own/${one}/`, past);
    const second = await trip("agent", `own/${one}/`);
    expect(await outcome(write({ session_id: one }))).toBe("deny READ_ONLY_BREAKER");
    const deps = { database: rig.database(), codec: testCodec(), clock: systemClock, environment: "test" };
    expect(await endTimedTrips(deps)).toBe(1);
    expect(await endTimedTrips(deps)).toBe(0);
    const told = (await rig.events()).filter(({ type }) => type === "fabric.breaker.reset");
    expect(told.at(-1)).toMatchObject({ redacted_summary: { trip_id: first, reset_by: "time" } });
    await reset(second);
  });

  it("uses up no approval: it counts again after the reset", async () => {
    const one = session();
    const policy = workPolicy();
    const asking = await rig.gate({ policy: () => policy });
    const call = (): object => ownRequest("shell.run", { command: "ask me" }, { session_id: one });
    const { approval, plan_digest } = await decide(call(), asking);
    const approver = await rig.token({ roles: ["approver"], subject: "ada" });
    const id = await trip("agent", `own/${one}/`);
    const agreed = await asking.post(
      `/v1/approvals/${approval?.id ?? ""}/approve`,
      { plan_digest },
      approver,
    );
    expect(agreed.status).toBe(200);
    expect(await outcome(call(), asking)).toBe("deny READ_ONLY_BREAKER");
    await reset(id);
    expect(await outcome(call(), asking)).toBe("allow APPROVED");
  });

  it("stops no record of what has happened", async () => {
    const id = await declare({ scope: "tenant" });
    const result = claudeResult({ session_id: session(), tool_use_id: "after-freeze" });
    expect((await gate.post("/v1/hooks/claude-code", result)).status).toBe(200);
    // Nobody had asked about the call: that is told beside it.
    expect((await rig.events()).slice(-2)).toMatchObject([
      { type: "agent.tool.completed", execution: { tool_call_id: "after-freeze" } },
      { type: "agent.effect.ungated", execution: { tool_call_id: "after-freeze" } },
    ]);
    await lift(id);
  });

  it("stops neither relay, audit, queue nor exporters: they may not even read it", async () => {
    const { rows } = await rig.admin.query<{ role: string }>(
      `SELECT rolname AS role FROM pg_roles WHERE rolname LIKE 'fabric\\_%'
        AND has_table_privilege(oid, 'incidents.holds', 'SELECT') ORDER BY 1`,
    );
    const readers = rows.map(({ role }) => role);
    expect(readers).toEqual(expect.arrayContaining(["fabric_gate", "fabric_host"]));
    for (const role of ["fabric_relay", "fabric_sealer", "fabric_desk", "fabric_exporter"])
      expect(readers).not.toContain(role);
  });

  it("of a shadow holds nothing back", async () => {
    const one = session();
    await rig.admin.query("CREATE SCHEMA shadow_breaker");
    await rig.admin.query("CREATE TABLE shadow_breaker.trips (LIKE breaker.trips INCLUDING ALL)");
    await rig.admin.query(
      "CREATE TRIGGER hold_by_trip AFTER INSERT ON shadow_breaker.trips FOR EACH ROW EXECUTE FUNCTION breaker.hold_by_trip()",
    );
    await rig.admin.query(
      `INSERT INTO shadow_breaker.trips (trip_id, tenant_id, scope, scope_id, measure, observed, threshold, samples, window_ms,
          window_ended_at, crossed_by, crossed_at)
        VALUES ($1, 'acme', 'agent', $2, 'fan_out', 31, 30, 31, 60000, now(), 'evt_1', now())`,
      [randomUUID(), `own/${one}/`],
    );
    expect(await outcome(write({ session_id: one }))).toBe("allow ALLOWED");
  });
});
