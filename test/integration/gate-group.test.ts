import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { Fault } from "../../schemas/faults.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest, testCodec } from "../harness/gate-rig.ts";
import { claudeCall, claudeDenial, claudeEnd, codexCall } from "../harness/hook-payloads.ts";

let rig: GateRig;
beforeAll(async () => {
  rig = await createGateRig();
});
afterAll(() => rig.close());

/** The gate's database with a step of one's own before each commit, or after it, before the gate hears of it. */
const wrapped = (
  inner: Database,
  steps: { beforeCommit?: () => Promise<void>; afterCommit?: () => Promise<void> },
): Database => ({
  ...inner,
  connected: (work) =>
    inner.connected((tx) =>
      work({
        async query(statement, values) {
          await steps.beforeCommit?.();
          const result = await tx.query<never>(statement, values);
          await steps.afterCommit?.();
          return result;
        },
      }),
    ),
});

/** Holds what `lock` locks until it is called again. */
const hold = async (lock: string): Promise<() => Promise<void>> => {
  const blocker = await rig.admin.connect();
  await blocker.query("BEGIN");
  await blocker.query(lock);
  return async () => {
    await blocker.query("ROLLBACK");
    blocker.release();
  };
};
/** Waiting for every lane: the last locks that a commit takes. */
const allLanes = "SELECT pg_advisory_xact_lock(1869968498, lane) FROM generate_series(0, 1023) AS lane";

const rowsOf = async (sessionId: string): Promise<number[]> =>
  Promise.all(
    [
      `gate.decisions WHERE request ->> 'session_id' = '${sessionId}'`,
      `gate.sessions WHERE session_id = '${sessionId}'`,
      `gate.capabilities WHERE session_key IN (SELECT session_key FROM gate.sessions WHERE session_id = '${sessionId}')`,
    ].map((from) => rig.count(from)),
  );

/** Statements of this database that wait for a lock. */
const waitsFor = (text: string): Promise<number> =>
  rig.count(
    `pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%${text}%'`,
  );

describe("deciding and committing", () => {
  it("shares commits among calls that come at the same time", async () => {
    let commits = 0;
    const database = wrapped(rig.database(), {
      beforeCommit: () => {
        commits += 1;
        return Promise.resolve();
      },
    });
    const running = await rig.gate({ database });
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, call) =>
        running.post("/v1/gate/decide", ownRequest("shell.run", { command: `echo ${String(call)}` })),
      ),
    );
    expect(answers.every(({ json }) => (json as GateAnswer).decision === "allow")).toBe(true);
    expect(commits).toBeLessThan(answers.length);
  });

  it("decides again when the tenant is frozen between facts and commit", async () => {
    let frozen = false;
    const database = wrapped(rig.database(), {
      async beforeCommit() {
        if (frozen) return;
        frozen = true;
        await rig.admin.query("UPDATE access.tenants SET state = 'frozen' WHERE tenant_id = 'acme'");
      },
    });
    const running = await rig.gate({ database });
    const reply = await running.post(
      "/v1/gate/decide",
      ownRequest("shell.run", { command: "ls" }, { session_id: "frozen" }),
    );
    expect(reply.json).toMatchObject({ decision: "deny", reason_code: "TENANT_FROZEN" });
    expect(await rowsOf("frozen")).toEqual([1, 1, 0]);
    await rig.admin.query("UPDATE access.tenants SET state = 'active' WHERE tenant_id = 'acme'");
    const after = await running.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" }));
    expect(after.json).toMatchObject({ decision: "allow" });
  });

  it("decides again when the plan is revoked between facts and commit", async () => {
    const body = (id: string): object =>
      ownRequest("shell.run", { command: "make release" }, { session_id: "revoked", tool_call_id: id });
    const plain = await rig.gate();
    const { plan_digest: digest } = (await plain.post("/v1/gate/decide", body("before"))).json as GateAnswer;
    let isRevoked = false;
    const database = wrapped(rig.database(), {
      async beforeCommit() {
        if (isRevoked) return;
        isRevoked = true;
        await rig.admin.query(
          `INSERT INTO gate.revoked_plans (tenant_id, digest, until, reason, revoked_by)
            VALUES ('acme', $1, clock_timestamp() + interval '1 hour', 'no', 'somebody')`,
          [digest],
        );
      },
    });
    const running = await rig.gate({ database });
    const reply = await running.post("/v1/gate/decide", body("after"));
    expect(reply.json).toMatchObject({ decision: "deny", reason_code: "PLAN_REVOKED" });
    await rig.admin.query("DELETE FROM gate.revoked_plans");
  });

  it("holds a freeze back until the commits that did not see it are through", async () => {
    const running = await rig.gate();
    await running.post("/v1/gate/decide", ownRequest("shell.run", { command: "warm" }));
    const letGo = await hold(allLanes);
    const asked = running.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" }));
    // The commit has read the versions and waits for its lanes.
    await eventually(async () => (await waitsFor("gate.commit_group")) === 1);
    let isFrozen = false;
    const freezing = rig.admin
      .query("UPDATE access.tenants SET state = 'frozen' WHERE tenant_id = 'acme'")
      .then(() => {
        isFrozen = true;
      });
    await eventually(async () => (await waitsFor("UPDATE access.tenants")) === 1);
    expect(isFrozen).toBe(false);
    await letGo();
    expect((await asked).json).toMatchObject({ decision: "allow" });
    await freezing;
    const next = await running.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" }));
    expect(next.json).toMatchObject({ decision: "deny", reason_code: "TENANT_FROZEN" });
    await rig.admin.query("UPDATE access.tenants SET state = 'active' WHERE tenant_id = 'acme'");
  });

  it("holds a change of a session back until the commits that did not see it are through", async () => {
    const running = await rig.gate();
    const ask = (): ReturnType<typeof running.post> =>
      running.post(
        "/v1/gate/decide",
        ownRequest("shell.run", { command: "ls" }, { session_id: "labelled-later" }),
      );
    await ask();
    const letGo = await hold(allLanes);
    const asked = ask();
    await eventually(async () => (await waitsFor("gate.commit_group")) === 1);
    const change =
      "UPDATE gate.sessions SET labels = '{secret_read}', version = version + 1 WHERE session_id = 'labelled-later'";
    const changing = rig.admin.query(change);
    await eventually(async () => (await waitsFor("UPDATE gate.sessions")) === 1);
    await letGo();
    expect((await asked).json).toMatchObject({ decision: "allow" });
    expect((await changing).rowCount).toBe(1);
  });

  it("lets a freeze through within a second while calls never stop", async () => {
    const busy = [await rig.gate(), await rig.gate()];
    let isOver = false;
    let asked = 0;
    const callers = Array.from({ length: 12 }, async (_, caller) => {
      while (!isOver) {
        asked += 1;
        await busy[caller % 2]?.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" }));
      }
    });
    await eventually(() => asked > 100);
    const waits: number[] = [];
    try {
      for (const state of ["frozen", "active", "frozen", "active"]) {
        const startedMs = performance.now();
        await rig.admin.query("UPDATE access.tenants SET state = $1 WHERE tenant_id = 'acme'", [state]);
        waits.push(performance.now() - startedMs);
        const settled = await busy[0]?.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" }));
        expect(settled?.json).toMatchObject({ decision: state === "frozen" ? "deny" : "allow" });
      }
    } finally {
      isOver = true;
      await Promise.all(callers);
    }
    expect(Math.max(...waits)).toBeLessThan(15_000);
  });

  it("denies after three times when the facts keep changing, and records it", async () => {
    let changes = 0;
    const database = wrapped(rig.database(), {
      async beforeCommit() {
        changes += 1;
        await rig.admin.query("UPDATE access.tenants SET state = 'active' WHERE tenant_id = 'acme'");
      },
    });
    const running = await rig.gate({ database });
    const reply = await running.post(
      "/v1/gate/decide",
      ownRequest("shell.run", { command: "ls" }, { session_id: "restless" }),
    );
    expect(reply.json).toMatchObject({ decision: "deny", reason_code: "CONFLICT" });
    expect(changes).toBe(4);
    expect(await rowsOf("restless")).toEqual([1, 1, 0]);
  });

  it("decides again when a label came to the session in between", async () => {
    const running = await rig.gate();
    const ask = (gate: typeof running, command: string): ReturnType<typeof running.post> =>
      gate.post("/v1/gate/decide", ownRequest("shell.run", { command }, { session_id: "labelled" }));
    await ask(running, "first");
    let rounds = 0;
    const database = wrapped(rig.database(), {
      async beforeCommit() {
        rounds += 1;
        if (rounds > 1) return;
        await rig.admin.query(
          "UPDATE gate.sessions SET labels = '{secret_read}', version = version + 1 WHERE session_id = 'labelled'",
        );
      },
    });
    await ask(await rig.gate({ database }), "second");
    expect(rounds).toBe(2);
    const facts = await rig.admin.query<{ facts: { session: unknown } }>(
      "SELECT facts FROM gate.decisions WHERE request -> 'input' ->> 'command' = 'second'",
    );
    expect(facts.rows.map((row) => row.facts.session)).toMatchObject([
      { version: 1, labels: ["secret_read"] },
    ]);
  });

  it("decides only the calls again that did not hold, and commits their neighbours at once", async () => {
    const setUp = await rig.gate();
    const ask = (gate: typeof setUp, session: string, id: string): ReturnType<typeof setUp.post> =>
      gate.post(
        "/v1/gate/decide",
        ownRequest("shell.run", { command: "make" }, { session_id: session, tool_call_id: id }),
      );
    const sessions = ["stays-1", "moves", "stays-2", "taken", "stays-3"];
    for (const session of sessions) await ask(setUp, session, `first-${session}`);
    let commits = 0;
    const metrics = createMetrics();
    const database = wrapped(rig.database(), {
      async beforeCommit() {
        commits += 1;
        // While the first call's commit waits, the others gather in one group.
        if (commits === 1) await eventually(async () => /queue_depth 5$/m.test(await metrics.render()));
        if (commits !== 2) return;
        await rig.admin.query(
          "UPDATE gate.sessions SET labels = '{seen}', version = version + 1 WHERE session_id = 'moves'",
        );
        await ask(setUp, "taken", "second-taken");
      },
    });
    const running = await rig.gate({ database, metrics, maxInFlight: 1 });
    const opening = ask(running, "opens", "opens");
    await eventually(() => commits === 1);
    const answers = await Promise.all(sessions.map((session) => ask(running, session, `second-${session}`)));
    expect((await opening).json).toMatchObject({ decision: "allow" });
    const found = answers.map(({ json }) => json as GateAnswer);
    expect(found.map(({ decision }) => decision)).toEqual(sessions.map(() => "allow"));
    expect(found.map(({ repeated }) => repeated)).toEqual(sessions.map((session) => session === "taken"));
    expect(await metrics.render()).toContain('fabric_gate_retries_total{cause="facts"} 2');
    const facts = await rig.admin.query<{ facts: { session: unknown } }>(
      `SELECT facts FROM gate.decisions JOIN gate.sessions USING (session_key)
        WHERE session_id = 'moves' ORDER BY decided_at DESC LIMIT 1`,
    );
    expect(facts.rows[0]?.facts.session).toMatchObject({ version: 1, labels: ["seen"] });
    for (const session of sessions) expect(await rowsOf(session)).toEqual([2, 1, 2]);
  });

  it("fails only the call that cannot be recorded", async () => {
    const codec = testCodec();
    const running = await rig.gate({
      codec: {
        encode(envelope) {
          if (envelope.execution.session_id === "spoiled") throw new Fault("VALUE_OUT_OF_RANGE", "planted");
          return codec.encode(envelope);
        },
      },
    });
    const sessions = ["good-1", "good-2", "spoiled", "good-3", "good-4", "good-5"];
    const answers = await Promise.all(
      sessions.map((id) =>
        running.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" }, { session_id: id })),
      ),
    );
    expect(answers.map(({ json }) => (json as GateAnswer).decision)).toEqual(
      sessions.map((id) => (id === "spoiled" ? "deny" : "allow")),
    );
    expect(answers[2]?.json).toMatchObject({ reason_code: "GATE_UNAVAILABLE" });
    expect(await rowsOf("spoiled")).toEqual([0, 0, 0]);
    expect(await rowsOf("good-4")).toEqual([1, 1, 1]);
  });

  it("denies a call whose events the broker would not take, and records it", async () => {
    const running = await rig.gate({ eventMaxBytes: 4_000 });
    const names = Array.from({ length: 60 }, (_, file) => `*** Add File: ${"n".repeat(200)}-${String(file)}`);
    const wide = ownRequest("file.patch", { patch: names.join("\n") }, { session_id: "wide" });
    const neighbours = ["near-1", "near-2"];
    const [told, ...others] = await Promise.all([
      running.post("/v1/gate/decide", wide),
      ...neighbours.map((session_id) =>
        running.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" }, { session_id })),
      ),
    ]);
    expect(told.json).toMatchObject({ decision: "deny", reason_code: "INPUT_UNREADABLE" });
    expect((told.json as GateAnswer).message).toContain("split it");
    expect(others.map(({ json }) => (json as GateAnswer).decision)).toEqual(["allow", "allow"]);
    expect(await rowsOf("wide")).toEqual([1, 1, 0]);
    const events = (await rig.events()).filter((one) => one.execution.session_id === "wide");
    expect(events.map(({ type }) => type)).toEqual(["agent.tool.requested", "agent.tool.denied"]);
    expect(events[0]?.redacted_summary).toMatchObject({ paths: [] });
    expect(events[0]?.payload_ref).not.toBeNull();
  });

  it("refuses what does not fit its queue, and says so", async () => {
    const running = await rig.gate({ maxWaiting: 2, maxInFlight: 1, maxGroup: 1 });
    const answers = await Promise.all(
      Array.from({ length: 40 }, () =>
        running.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" })),
      ),
    );
    const reasons = answers.map(({ json }) => (json as GateAnswer).reason_code);
    expect(new Set(reasons)).toEqual(new Set(["ALLOWED", "OVERLOADED"]));
    expect(await rig.count("gate.capabilities")).toBe(
      await rig.count("gate.decisions WHERE decision = 'allow'"),
    );
  });
});

describe("a payload over 64 KiB", () => {
  /** Holds what stores large payloads, at their look for the tenant. */
  const holding = (inner: Database): { database: Database; held: () => number; letGo: () => void } => {
    let letGo = (): void => undefined;
    const open = new Promise<void>((resolve) => (letGo = resolve));
    let held = 0;
    const database: Database = {
      ...inner,
      async query(statement, values) {
        if (statement === "SELECT 1 FROM access.tenants WHERE tenant_id = $1") {
          held += 1;
          await open;
        }
        return inner.query<never>(statement, values);
      },
    };
    return { database, held: () => held, letGo };
  };
  const large = (sessionId: string): object =>
    ownRequest("shell.run", { command: "ls", description: "x".repeat(100_000) }, { session_id: sessionId });

  it("counts as waiting while it is stored", async () => {
    const { database, held, letGo } = holding(rig.database());
    const running = await rig.gate({ database, maxWaiting: 2 });
    const stored = [large("large-1"), large("large-2")].map((one) => running.post("/v1/gate/decide", one));
    await eventually(() => held() === 2);
    for (const one of [large("large-3"), ownRequest("shell.run", { command: "ls" })]) {
      const refused = await running.post("/v1/gate/decide", one);
      expect(refused.json).toMatchObject({ decision: "deny", reason_code: "OVERLOADED" });
    }
    expect(held()).toBe(2);
    letGo();
    const answers = await Promise.all(stored);
    expect(answers.map(({ json }) => (json as GateAnswer).decision)).toEqual(["allow", "allow"]);
    const next = await running.post("/v1/gate/decide", large("large-4"));
    expect(next.json).toMatchObject({ decision: "allow" });
  });

  it("is not stored any more when its caller was told no meanwhile", async () => {
    const { database, held, letGo } = holding(rig.database());
    const metrics = createMetrics();
    const running = await rig.gate({ database, metrics, budgetMs: 100 });
    const before = await rig.count("vault.evidence");
    const told = await running.post("/v1/gate/decide", large("large-late"));
    expect(told.json).toMatchObject({ decision: "deny", reason_code: "GATE_TIMEOUT" });
    expect(held()).toBe(1);
    letGo();
    await eventually(async () => /queue_depth 0$/m.test(await metrics.render()));
    expect(await rig.count("vault.evidence")).toBe(before);
    expect(await rowsOf("large-late")).toEqual([0, 0, 0]);
  });
});

describe("a database that goes away", () => {
  it("denies in time when it hangs, and writes nothing of it", async () => {
    const running = await rig.gate({ budgetMs: 250, observeBudgetMs: 400 });
    await running.post("/v1/gate/decide", ownRequest("shell.run", { command: "warm" }));
    const blocker = await rig.admin.connect();
    await blocker.query("BEGIN");
    await blocker.query("LOCK TABLE gate.decisions IN ACCESS EXCLUSIVE MODE");
    const hook = claudeCall("ls", { session_id: "hanging" });
    try {
      const startedMs = performance.now();
      const [own, runtime] = await Promise.all([
        running.post(
          "/v1/gate/decide",
          ownRequest("shell.run", { command: "ls" }, { session_id: "hanging" }),
        ),
        running.post("/v1/hooks/claude-code", hook),
      ]);
      expect(performance.now() - startedMs).toBeLessThan(15_000);
      expect(own.json).toMatchObject({ decision: "deny", reason_code: "GATE_TIMEOUT" });
      expect(runtime.status).toBe(200);
      expect(claudeDenial(runtime.json)).toContain("GATE_TIMEOUT");
    } finally {
      await blocker.query("ROLLBACK");
      blocker.release();
    }
    await running.gate.close();
    expect(await rowsOf("hanging")).toEqual([0, 0, 0]);
  });

  it("does not record an allow for a caller that gave up, and its neighbours get theirs", async () => {
    const running = await rig.gate({ budgetMs: 250 });
    await running.post("/v1/gate/decide", ownRequest("shell.run", { command: "warm" }));
    const letGo = await hold(allLanes);
    const startedMs = performance.now();
    const gaveUp = await running.post(
      "/v1/gate/decide",
      ownRequest("shell.run", { command: "ls" }, { session_id: "gave-up" }),
    );
    // The server itself gives up: nobody has to wait for the time that a commit on the wire is given beyond the budget.
    expect(performance.now() - startedMs).toBeLessThan(900);
    expect(gaveUp.json).toMatchObject({ decision: "deny", reason_code: "GATE_TIMEOUT" });
    await letGo();
    const next = await running.post(
      "/v1/gate/decide",
      ownRequest("shell.run", { command: "ls" }, { session_id: "came-later" }),
    );
    expect(next.json).toMatchObject({ decision: "allow" });
    await running.gate.close();
    expect(await rowsOf("gave-up")).toEqual([0, 0, 0]);
    expect(await rowsOf("came-later")).toEqual([1, 1, 1]);
  });

  it("writes nothing when the time is up inside the statement, though no lock was in the way", async () => {
    const running = await rig.gate({ budgetMs: 300 });
    await running.post("/v1/gate/decide", ownRequest("shell.run", { command: "warm" }));
    await rig.admin.query(
      `CREATE FUNCTION gate.dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END';
       CREATE TRIGGER dawdle BEFORE INSERT ON gate.capabilities FOR EACH ROW EXECUTE FUNCTION gate.dawdle()`,
    );
    try {
      const asked = await running.post(
        "/v1/gate/decide",
        ownRequest("shell.run", { command: "ls" }, { session_id: "dawdled" }),
      );
      expect(asked.json).toMatchObject({ decision: "deny", reason_code: "GATE_TIMEOUT" });
      await running.gate.close();
      expect(await rowsOf("dawdled")).toEqual([0, 0, 0]);
      expect((await rig.events()).some((one) => one.execution.session_id === "dawdled")).toBe(false);
    } finally {
      await rig.admin.query("DROP TRIGGER dawdle ON gate.capabilities; DROP FUNCTION gate.dawdle()");
    }
  });

  it("writes nothing when the statement was on its way longer than its caller waits at all", async () => {
    let isSlow = true;
    const database = wrapped(rig.database(), {
      async beforeCommit() {
        if (!isSlow) return;
        isSlow = false;
        await wait(1_600);
      },
    });
    const running = await rig.gate({ database, budgetMs: 250 });
    const asked = await running.post(
      "/v1/gate/decide",
      ownRequest("shell.run", { command: "ls" }, { session_id: "on-its-way" }),
    );
    expect(asked.json).toMatchObject({ decision: "deny", reason_code: "GATE_TIMEOUT" });
    await running.gate.close();
    expect(await rowsOf("on-its-way")).toEqual([0, 0, 0]);
  });

  it("gives the true answer late rather than a false one in time, when the COMMIT is slow", async () => {
    const database = wrapped(rig.database(), { afterCommit: () => wait(400) });
    const running = await rig.gate({ database, budgetMs: 250 });
    const answer = await running.post(
      "/v1/gate/decide",
      ownRequest("shell.run", { command: "ls" }, { session_id: "slow-commit" }),
    );
    expect(answer.json).toMatchObject({ decision: "allow", repeated: false });
    await running.gate.close();
    expect(await rowsOf("slow-commit")).toEqual([1, 1, 1]);
  });

  it("revokes the right of a call that was committed after its caller was told no", async () => {
    let isSlow = true;
    const database = wrapped(rig.database(), {
      async afterCommit() {
        if (!isSlow) return;
        isSlow = false;
        await wait(1_500);
      },
    });
    const metrics = createMetrics();
    const running = await rig.gate({ database, metrics, budgetMs: 200 });
    const call = ownRequest(
      "shell.run",
      { command: "ls" },
      { session_id: "too-late", tool_call_id: "too-late" },
    );
    const told = await running.post("/v1/gate/decide", call);
    expect(told.json).toMatchObject({ decision: "deny", reason_code: "GATE_TIMEOUT" });
    const rights =
      "gate.capabilities WHERE session_key IN (SELECT session_key FROM gate.sessions WHERE session_id = 'too-late')";
    expect(await rig.count(rights)).toBe(1);
    await eventually(async () => (await rig.count(`${rights} AND revoked_at IS NOT NULL`)) === 1);
    expect(await metrics.render()).toContain("fabric_gate_late_total 1");
    // The answer without a right is none: the same call is decided again, and gets one of its own.
    const again = await running.post("/v1/gate/decide", call);
    expect(again.json).toMatchObject({ decision: "allow", repeated: false });
    expect(await rig.count(rights)).toBe(2);
    expect(await rig.count(`${rights} AND revoked_at IS NULL`)).toBe(1);
  });

  it("denies and writes nothing by halves when its connections are cut in the middle", async () => {
    const running = await rig.gate();
    // Each of these is a place where the one statement waits; the connection is cut while it does.
    const cutAt = [
      "LOCK TABLE gate.sessions IN SHARE MODE",
      "SELECT pg_advisory_xact_lock(1952804449, hashtext('acme'))",
      "LOCK TABLE gate.decisions IN SHARE MODE",
      "LOCK TABLE gate.anchors IN SHARE MODE",
      "LOCK TABLE vault.evidence IN SHARE MODE",
      allLanes,
    ];
    for (const [index, lock] of cutAt.entries()) {
      const sessionId = `cut-${String(index)}`;
      const call = ownRequest(
        "shell.run",
        { command: "ls" },
        { session_id: sessionId, tool_call_id: sessionId },
      );
      const letGo = await hold(lock);
      const asked = running.post("/v1/gate/decide", call);
      await eventually(async () => (await waitsFor("gate.commit_group")) === 1);
      await rig.admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'fabric_gate' AND datname = current_database()",
      );
      expect((await asked).json).toMatchObject({ decision: "deny", reason_code: "GATE_UNAVAILABLE" });
      await letGo();
      expect(await rowsOf(sessionId)).toEqual([0, 0, 0]);
      // The same call, tried again, is decided as if it were the first time.
      const again = await eventually(
        () => running.post("/v1/gate/decide", call),
        ({ json }) => (json as GateAnswer).decision === "allow",
      );
      expect(again.json).toMatchObject({ repeated: false });
      expect(await rowsOf(sessionId)).toEqual([1, 1, 1]);
    }
  });

  it("answers observing hooks with 503 and a code, and gated ones with the blocking form", async () => {
    const gone = rig.test.roleUrl("fabric_gate").replace(/:\d+\//, ":9/");
    const running = await rig.gate({ database: rig.database(gone) });
    const observed = await running.post("/v1/hooks/claude-code", claudeEnd());
    expect(observed).toMatchObject({ status: 503, json: { code: "DATABASE_UNAVAILABLE" } });
    const gated = await running.post("/v1/hooks/codex", codexCall("ls"));
    expect(gated.status).toBe(200);
    expect(gated.text).toContain("GATE_UNAVAILABLE");
    const ready = await fetch(`${running.url}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ dependencies: { postgres: { state: "down" } } });
  });
});
