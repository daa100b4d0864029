import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { decideAgain } from "../../services/gate/decide-again.ts";
import { forgetState } from "../../services/gate/forget-state.ts";
import { systemClock } from "../../services/platform/clock.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import {
  claudeCall,
  claudeDenial,
  claudeFailure,
  claudeResult,
  codexCall,
} from "../harness/hook-payloads.ts";
import { workPolicy } from "../harness/work-policy.ts";

let rig: GateRig;
let one: RunningGate;
let two: RunningGate;
const policy = workPolicy();
beforeAll(async () => {
  rig = await createGateRig();
  one = await rig.gate({ policy: () => policy });
  two = await rig.gate({ policy: () => policy });
});
afterAll(() => rig.close());

const call = (command: string, session: string, rest: Record<string, unknown> = {}): object =>
  ownRequest("shell.run", { command }, { session_id: session, ...rest });
const decide = async (gate: RunningGate, body: object): Promise<GateAnswer> =>
  (await gate.post("/v1/gate/decide", body)).json as GateAnswer;
const labelsOf = async (session: string): Promise<string[]> => {
  const found = await rig.admin.query<{ labels: string[] }>(
    "SELECT labels FROM gate.sessions WHERE session_id = $1",
    [session],
  );
  return found.rows[0]?.labels ?? [];
};

describe("labels of a session", () => {
  it("come with the allowed intent, and later calls of the session are judged by them", async () => {
    expect((await decide(one, call("send-out", "l-own"))).decision).toBe("allow");
    expect(await decide(one, call("read-secret", "l-own"))).toMatchObject({
      decision: "allow",
      labels: ["secret_read"],
    });
    expect(await decide(two, call("send-out", "l-own"))).toMatchObject({
      decision: "deny",
      reason_code: "NOT_AUTHORIZED",
    });
    expect((await decide(two, call("send-out", "l-other"))).decision).toBe("allow");
  });

  it("of a sub-agent count for its parent, and the parent's for the sub-agent", async () => {
    // As an agent of the same session.
    await decide(one, call("read-secret", "l-agents", { agent_id: "child" }));
    expect((await decide(one, call("send-out", "l-agents"))).decision).toBe("deny");
    // As a session of its own that names its parent.
    await decide(one, call("ls", "l-parent"));
    await decide(two, call("read-secret", "l-child", { parent_session_id: "l-parent" }));
    expect(await labelsOf("l-parent")).toEqual(["secret_read"]);
    expect((await decide(one, call("send-out", "l-parent"))).decision).toBe("deny");
    expect(
      (await decide(one, call("send-out", "l-child-2", { parent_session_id: "l-parent" }))).decision,
    ).toBe("deny");
    // Once linked, linked, whatever later calls say.
    expect((await decide(one, call("send-out", "l-child"))).decision).toBe("deny");
  });

  it("move to the parent when a session that has some names it, even one that nobody has seen yet", async () => {
    await decide(one, call("read-secret", "l-late-child"));
    await decide(one, call("ls", "l-late-child", { parent_session_id: "l-late-parent" }));
    expect(await labelsOf("l-late-parent")).toEqual(["secret_read"]);
    expect((await decide(two, call("send-out", "l-late-parent"))).decision).toBe("deny");
    expect((await decide(two, call("send-out", "l-late-child"))).decision).toBe("deny");
  });

  it("are seen by later calls of the same group", async () => {
    const bodies = [
      call("read-secret", "l-group"),
      ...Array.from({ length: 20 }, () => call("send-out", "l-group")),
    ];
    // One group after the other, so that decisions are committed in the order of their ids.
    const gate = await rig.gate({ policy: () => policy, maxInFlight: 1 });
    const answers = await Promise.all(bodies.map((body) => decide(gate, body)));
    const [, ...sent] = await rig.admin
      .query<{ decision: string; command: string }>(
        `SELECT decision, request -> 'input' ->> 'command' AS command FROM gate.decisions
          WHERE request ->> 'session_id' = 'l-group' ORDER BY decision_id`,
      )
      .then(({ rows }) => rows.slice(rows.findIndex(({ command }) => command === "read-secret")));
    expect(answers[0]?.decision).toBe("allow");
    expect(sent.length).toBeGreaterThan(0);
    expect(new Set(sent.map(({ decision }) => decision))).toEqual(new Set(["deny"]));
  });

  it("never let a send and a read of the secret pass in the wrong order at two gates", async () => {
    for (let round = 0; round < 15; round += 1) {
      const session = `l-race-${String(round)}`;
      await decide(one, call("ls", session));
      const [read, sent] = await Promise.all([
        decide(one, call("read-secret", session)),
        decide(two, call("send-out", session)),
      ]);
      expect(read.decision).toBe("allow");
      const rows = await rig.admin.query<{ command: string; decision: string; labels: string[] }>(
        `SELECT request -> 'input' ->> 'command' AS command, decision, facts #> '{session,labels}' AS labels
          FROM gate.decisions WHERE request ->> 'session_id' = $1`,
        [session],
      );
      // An allowed send was decided on a session without the label, and committed before the label was.
      const send = rows.rows.find(({ command }) => command === "send-out");
      expect(send?.decision).toBe(sent.decision);
      expect(sent.decision === "allow" ? [] : ["secret_read"]).toEqual(send?.labels);
      expect((await decide(two, call("send-out", session))).decision).toBe("deny");
    }
  });
});

describe("a reported result", () => {
  const told = (session: string, rest: Record<string, unknown>): object =>
    claudeResult({ session_id: session, ...rest });

  it("labels its session although nobody asked about the call", async () => {
    const gate = await rig.gate();
    const cases: [string, Record<string, unknown>, string][] = [
      [
        "r-web",
        { tool_name: "WebFetch", tool_input: { url: "https://example.org/", prompt: "p" } },
        "untrusted.input",
      ],
      ["r-server", { tool_name: "mcp__shop__list", tool_input: {} }, "untrusted.input"],
      ["r-file", { tool_name: "Read", tool_input: { file_path: "/h/project/.env" } }, "secret.read"],
      ["r-shell", { tool_name: "Bash", tool_input: { command: "cat .env" } }, "secret.read"],
    ];
    for (const [session, payload, label] of cases) {
      expect((await gate.post("/v1/hooks/claude-code", told(session, payload))).status).toBe(200);
      expect(await labelsOf(session)).toContain(label);
    }
    const codexTold = { ...codexCall("cat .env", { session_id: "r-codex" }), hook_event_name: "PostToolUse" };
    expect((await gate.post("/v1/hooks/codex", { ...codexTold, tool_response: "X=1" })).status).toBe(200);
    expect(await labelsOf("r-codex")).toContain("secret.read");
    const failed = claudeFailure("it broke off", {
      session_id: "r-failed",
      tool_name: "Bash",
      tool_input: { command: "cat .env; false" },
    });
    await gate.post("/v1/hooks/claude-code", failed);
    expect(await labelsOf("r-failed")).toContain("secret.read");
    await gate.post("/v1/hooks/claude-code", told("r-plain", {}));
    expect(await labelsOf("r-plain")).toEqual([]);
    expect(
      await rig.count(
        "gate.decisions AS d JOIN gate.sessions AS s USING (session_key) WHERE s.session_id LIKE 'r-%'",
      ),
    ).toBe(0);
  });

  it("is what later calls of its session are judged by, at each gate", async () => {
    expect(
      claudeDenial(
        (await one.post("/v1/hooks/claude-code", claudeCall("send-out", { session_id: "r-later" }))).json,
      ),
    ).toBeNull();
    await one.post("/v1/hooks/claude-code", told("r-later", { tool_input: { command: "read-secret" } }));
    const denied = await two.post("/v1/hooks/claude-code", claudeCall("send-out", { session_id: "r-later" }));
    expect(claudeDenial(denied.json)).toMatch(/^NOT_AUTHORIZED/);
  });

  it("of a sub-agent counts for its parent, in both clients", async () => {
    await one.post(
      "/v1/hooks/claude-code",
      told("r-sub", { agent_id: "child", tool_input: { command: "read-secret" } }),
    );
    const denied = await two.post("/v1/hooks/claude-code", claudeCall("send-out", { session_id: "r-sub" }));
    expect(claudeDenial(denied.json)).toMatch(/^NOT_AUTHORIZED/);
    await one.post(
      "/v1/hooks/codex",
      codexCall("read-secret", { session_id: "r-codex-sub", agent_id: "child" }),
    );
    const codexDenied = await two.post(
      "/v1/hooks/codex",
      codexCall("send-out", { session_id: "r-codex-sub" }),
    );
    expect(codexDenied.text).toContain("NOT_AUTHORIZED");
  });

  it("is never lost, however many calls of its session come at two gates at the same time", async () => {
    const session = "r-many";
    await Promise.all(
      Array.from({ length: 40 }, (_, index) => {
        const gate = index % 2 === 0 ? one : two;
        if (index % 4 === 0)
          return gate.post(
            "/v1/hooks/claude-code",
            told(session, { tool_input: { command: "read-secret" } }),
          );
        return gate.post(
          "/v1/hooks/claude-code",
          claudeCall(`echo ${String(index)}`, { session_id: session }),
        );
      }).map(async (reply) => expect((await reply).status).toBe(200)),
    );
    expect(await labelsOf(session)).toEqual(["secret_read"]);
    const completed = (await rig.events()).filter(
      (event) => event.execution.session_id === session && event.type === "agent.tool.completed",
    );
    expect(completed).toHaveLength(10);
  });
});

describe("a chain of sessions", () => {
  it("shares what its last one read, in whatever order the links come", async () => {
    const orders = [
      [
        ["c", "b"],
        ["b", "a"],
      ],
      [
        ["b", "a"],
        ["c", "b"],
      ],
    ] as const;
    for (const [index, order] of orders.entries()) {
      const named = (id: string): string => `chain-${String(index)}-${id}`;
      for (const [child, parent] of order) {
        await decide(one, call("ls", named(child), { parent_session_id: named(parent) }));
      }
      expect((await decide(two, call("read-secret", named("c")))).decision).toBe("allow");
      for (const id of ["a", "b", "c"]) {
        expect((await decide(one, call("send-out", named(id)))).decision).toBe("deny");
      }
      expect(await labelsOf(named("a"))).toEqual(["secret_read"]);
    }
  });

  it("takes what the child had with it when its parent gets a parent", async () => {
    await decide(one, call("read-secret", "chain-up-c", { parent_session_id: "chain-up-b" }));
    await decide(two, call("ls", "chain-up-b", { parent_session_id: "chain-up-a" }));
    expect(await labelsOf("chain-up-a")).toEqual(["secret_read"]);
    expect((await decide(one, call("send-out", "chain-up-a"))).decision).toBe("deny");
  });

  it("that closes upon itself is no chain, one link after the other or all in one group", async () => {
    for (const [child, parent] of [
      ["l1", "l2"],
      ["l2", "l3"],
      ["l3", "l1"],
    ] as const) {
      expect((await decide(one, call("ls", child, { parent_session_id: parent }))).decision).toBe("allow");
    }
    const links = [
      ["g1", "g2"],
      ["g2", "g3"],
      ["g3", "g1"],
    ] as const;
    const answers = await Promise.all(
      links.map(([child, parent]) => decide(two, call("ls", child, { parent_session_id: parent }))),
    );
    expect(answers.map(({ decision }) => decision)).toEqual(["allow", "allow", "allow"]);
    const loops = await rig.admin.query<{ id: string }>(
      `WITH RECURSIVE up (id, key, step) AS (
         SELECT session_id, root_key, 1 FROM gate.sessions WHERE root_key IS NOT NULL
         UNION ALL SELECT up.id, p.root_key, up.step + 1 FROM up JOIN gate.sessions AS p ON p.session_key = up.key
         WHERE p.root_key IS NOT NULL AND up.step < 10)
       SELECT id FROM up WHERE step = 10`,
    );
    expect(loops.rows).toEqual([]);
    for (const id of ["l1", "g1"]) await decide(one, call("read-secret", id));
    for (const id of ["l1", "l2", "l3", "g1", "g2", "g3"]) {
      expect((await decide(two, call("send-out", id))).decision).toBe("deny");
    }
  });

  it("keeps each of its sessions, and is refused where its head is out of sight", async () => {
    const links = 70;
    for (let at = 1; at <= links; at += 1)
      await decide(one, call("ls", `long-${String(at)}`, { parent_session_id: `long-${String(at - 1)}` }));
    const above = await rig.admin.query<{ id: string }>(
      `WITH RECURSIVE up (key) AS (
         SELECT root_key FROM gate.sessions WHERE session_id = $1
         UNION SELECT p.root_key FROM up JOIN gate.sessions AS p ON p.session_key = up.key WHERE p.root_key IS NOT NULL)
       SELECT s.session_id AS id FROM up JOIN gate.sessions AS s ON s.session_key = up.key`,
      [`long-${String(links)}`],
    );
    expect(above.rows).toHaveLength(links);
    expect(await decide(two, call("ls", "long-2"))).toMatchObject({ decision: "allow" });
    await rig.admin.query(
      `INSERT INTO gate.sessions (session_key, tenant_id, runtime, session_id, correlation_id, first_seen_at, root_key)
       SELECT md5('head-' || n)::uuid, tenant_id, runtime, 'head-' || n, correlation_id, first_seen_at,
         CASE WHEN n < 1000 THEN md5('head-' || n + 1)::uuid END
       FROM gate.sessions, generate_series(1, 1000) AS n WHERE session_id = 'long-0'`,
    );
    await rig.admin.query(
      "UPDATE gate.sessions SET root_key = md5('head-1')::uuid WHERE session_id = 'long-0'",
    );
    // The same question too: what was answered before is no answer for where the session stands now.
    for (const command of ["ls", "ls -la"])
      expect(await decide(one, call(command, "long-2"))).toMatchObject({
        decision: "deny",
        reason_code: "RULE_FAILED",
      });
  });
});

describe("a budget of one", () => {
  it("lets one of sixteen pass", async () => {
    const answers = await Promise.all(
      Array.from({ length: 16 }, () => decide(one, call("count-one", "b-one"))),
    );
    expect(answers.filter(({ decision }) => decision === "allow")).toHaveLength(1);
    expect(new Set(answers.filter((a) => a.decision === "deny").map((a) => a.reason_code))).toEqual(
      new Set(["BUDGET_SPENT"]),
    );
    expect(await rig.count("gate.counters WHERE spent <> 1")).toBe(0);
  });

  it("lets one of sixteen pass at two gates", async () => {
    for (let round = 0; round < 8; round += 1) {
      const session = `b-two-${String(round)}`;
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, index) =>
          decide(index % 2 === 0 ? one : two, call("count-one", session)),
        ),
      );
      expect(answers.filter(({ decision }) => decision === "allow")).toHaveLength(1);
    }
  });

  it("is not spent by the same call again, nor by a call that is denied for something else", async () => {
    const same = call("count-one", "b-same", { tool_call_id: "one-call" });
    const first = await decide(one, same);
    expect(await decide(two, same)).toEqual({ ...first, repeated: true });
    const denied = await decide(one, call("count-one; git push --force", "b-denied"));
    expect(denied.reason_code).toBe("STATIC_DENY");
    expect((await decide(one, call("count-one", "b-denied"))).decision).toBe("allow");
  });

  it("is forgotten when its window is long over, and not before", async () => {
    await rig.admin.query(
      `INSERT INTO gate.counters VALUES ('old', 'acme', 1, clock_timestamp() - interval '1 second'),
        ('young', 'acme', 1, clock_timestamp() + interval '1 hour'), ('for-ever', 'acme', 1, NULL)`,
    );
    await forgetState(rig.database());
    const left = await rig.admin.query<{ key: string }>(
      "DELETE FROM gate.counters WHERE counter_key IN ('old', 'young', 'for-ever') RETURNING counter_key AS key",
    );
    expect(left.rows.map(({ key }) => key).sort()).toEqual(["for-ever", "young"]);
  });

  it("is the user's of the token, not of a claim", async () => {
    const byUser = workPolicy({
      "limits.yaml": `budgets:
  - { id: budget.user, when: { signals_any: [work.count] }, scope: user, limit: 1, message: used up }
`,
    });
    const gate = await rig.gate({ policy: () => byUser });
    const claims = (user_id: string, session: string): object => call("count-one", session, { user_id });
    expect((await decide(gate, claims("nora", "b-user-1"))).decision).toBe("allow");
    expect((await decide(gate, claims("otto", "b-user-2"))).reason_code).toBe("BUDGET_SPENT");
    const other = await rig.token({ subject: "somebody" });
    const third = await gate.post("/v1/gate/decide", claims("nora", "b-user-3"), other);
    expect(third.json).toMatchObject({ decision: "allow" });
  });
});

describe("a budget's fact", () => {
  const byUser = workPolicy({
    "facts.yaml": `rules:
  - id: fact.person
    when: { signals_any: [work.wait] }
    fact: budget.person-day
    by: user
    max_age: 5m
    deadline: 15m
    deny_when: [hard]
    warn_when: [soft]
    message: the day's budget of this person
`,
  });
  const tell = async (path: string, body: object, subject = "cost-watch") => {
    const token = await rig.token({ roles: ["reporter"], subject });
    return (await one.post(path, { name: "budget.person-day", at: new Date().toISOString(), ...body }, token))
      .status;
  };
  const tellSet = (values: { id: string; value: string }[], by = "user") =>
    tell("/v1/facts/sets", { by, otherwise: "within", values });

  it("denies who is past the hard limit, warns who is past the soft one, and lets all others pass", async () => {
    const gate = await rig.gate({ policy: () => byUser });
    let asked = 0;
    const ask = async (subject: string) => {
      asked += 1;
      const token = await rig.token({ subject });
      const answer = await gate.post(
        "/v1/gate/decide",
        call("wait-for-word", `b-fact-${String(asked)}`),
        token,
      );
      const { decision, reason_code, message } = answer.json as GateAnswer;
      return [decision, reason_code, message];
    };
    expect((await ask("ann"))[0]).toBe("defer");
    const named = [
      { id: "ann", value: "hard" },
      { id: "bob", value: "soft" },
    ];
    expect(await tellSet(named)).toBe(201);
    expect(await ask("ann")).toEqual(["deny", "FACT_DENIES", "the day's budget of this person"]);
    const [decision, , message] = await ask("bob");
    expect([decision, message]).toEqual([
      "allow",
      expect.stringMatching(/; the day's budget of this person$/),
    ]);
    const [passed, , silent] = await ask("cid");
    expect([passed, silent]).toEqual(["allow", expect.not.stringMatching(/budget/)]);
    // A set takes the place of the one before: who is not in it any more is within.
    expect(await tellSet([])).toBe(201);
    expect((await ask("ann"))[0]).toBe("allow");
    // Told by another scope than the rule names: misread is denied, not guessed.
    expect(await tellSet([], "tool")).toBe(201);
    expect(await ask("cid")).toEqual(["deny", "FACT_DENIES", expect.stringMatching(/by: tool/)]);
    // A plain value is everybody's.
    expect(await tell("/v1/facts", { value: "hard" })).toBe(201);
    expect((await ask("cid"))[0]).toBe("deny");
    await rig.admin.query("DELETE FROM gate.deferrals");
  });

  it("is told by its watch alone, which tells nothing else", async () => {
    expect(await tell("/v1/facts", { value: "within" }, "release-bot")).toBe(403);
    expect(await tell("/v1/facts", { name: "release.word", value: "go" })).toBe(403);
    expect(await tell("/v1/facts/sets", { by: "moon", otherwise: "within", values: [] })).toBe(400);
    const late = { at: new Date(Date.now() - 60_000).toISOString() };
    expect(await tellSet([{ id: "ann", value: "hard" }])).toBe(201);
    expect(await tell("/v1/facts/sets", { ...late, by: "user", otherwise: "within", values: [] })).toBe(200);
    const rows = await rig.admin.query(
      "SELECT 1 FROM gate.dated_facts WHERE name = 'budget.person-day/ann' AND value = to_jsonb('hard'::text)",
    );
    expect(rows.rows).toHaveLength(1);
  });
});

describe("a call that waits for a fact", () => {
  const report = async (value: unknown, at = new Date()): Promise<number> => {
    const token = await rig.token({ roles: ["reporter"], subject: "release-bot" });
    const body = { name: "release.word", value, at: at.toISOString() };
    return (await one.post("/v1/facts", body, token)).status;
  };

  it("is deferred, names what it waits for, and is decided again when it is asked again", async () => {
    const body = call("wait-for-word", "f-wait", { tool_call_id: "waits" });
    const first = await decide(one, body);
    expect(first).toMatchObject({
      decision: "defer",
      reason_code: "FACT_MISSING",
      defer: { facts: ["release.word"] },
      repeated: false,
    });
    const second = await decide(two, body);
    expect(second).toMatchObject({ decision: "defer", repeated: false });
    // The deadline is that of the first time.
    expect(second.defer).toEqual(first.defer);
    expect(await report("go")).toBe(201);
    const third = await decide(one, body);
    expect(third).toMatchObject({ decision: "allow", repeated: false });
    expect(await decide(two, body)).toEqual({ ...third, repeated: true });
    const rows = await rig.admin.query<{ call: boolean; next: string | null; id: string }>(
      `SELECT call_key IS NOT NULL AS call, superseded_by AS next, decision_id AS id FROM gate.decisions
        WHERE request ->> 'session_id' = 'f-wait' ORDER BY decision_id`,
    );
    expect(rows.rows.map(({ call: has }) => has)).toEqual([false, false, true]);
    expect(rows.rows.map(({ next }) => next)).toEqual([rows.rows[1]?.id, rows.rows[2]?.id, null]);
    expect(await rig.count("gate.deferrals")).toBe(0);
    const types = (await rig.events())
      .filter((event) => event.execution.session_id === "f-wait")
      .map(({ type }) => type);
    expect(types.filter((type) => type === "agent.tool.deferred")).toHaveLength(2);
    // Once, with the answer: what waits for a person settles by it.
    expect(types.filter((type) => type === "agent.deferral.answered")).toHaveLength(1);
    expect(types).not.toContain("agent.tool.denied");
    const told = (await rig.events()).filter((event) => event.execution.session_id === "f-wait");
    const answered = told.find(({ type }) => type === "agent.deferral.answered");
    expect(answered).toMatchObject({
      causation_id: told.find(({ type }) => type === "agent.tool.authorized")?.event_id,
      plan_digest: told.find(({ type }) => type === "agent.tool.deferred")?.plan_digest,
      redacted_summary: { decision: "allow", decision_id: third.decision_id },
    });
  });

  it("is denied by a fresh fact that stands against it, and an old one counts as missing", async () => {
    expect(await report("no")).toBe(201);
    expect(await decide(one, call("wait-for-word", "f-no"))).toMatchObject({
      decision: "deny",
      reason_code: "FACT_DENIES",
    });
    // An older word that comes late changes nothing.
    expect(await report("go", new Date(Date.now() - 60_000))).toBe(200);
    expect((await decide(one, call("wait-for-word", "f-no-2"))).reason_code).toBe("FACT_DENIES");
    await rig.admin.query("UPDATE gate.dated_facts SET at = at - interval '11 minutes'");
    expect((await decide(one, call("wait-for-word", "f-old"))).reason_code).toBe("FACT_MISSING");
  });

  it("is denied past the deadline, and allowed when the fact comes after all", async () => {
    await rig.admin.query("DELETE FROM gate.dated_facts");
    expect((await decide(one, call("wait-for-word", "f-late"))).decision).toBe("defer");
    await rig.admin.query("UPDATE gate.deferrals SET since = since - interval '31 minutes'");
    expect(await decide(one, call("wait-for-word", "f-late"))).toMatchObject({
      decision: "deny",
      reason_code: "DEFER_EXPIRED",
    });
    await report("go");
    expect((await decide(one, call("wait-for-word", "f-late"))).decision).toBe("allow");
  });

  it("is made one decision when it arrives at two gates at once, each time", async () => {
    await rig.admin.query("DELETE FROM gate.dated_facts");
    const body = call("wait-for-word", "f-race", { tool_call_id: "races" });
    await decide(one, body);
    await report("go");
    const answers = await Promise.all([one, two, one, two].map((gate) => decide(gate, body)));
    expect(new Set(answers.map((answer) => answer.decision_id)).size).toBe(1);
    expect(answers.filter(({ repeated }) => !repeated)).toHaveLength(1);
  });

  it("may not be told by a runtime, nor from the future", async () => {
    const body = { name: "release.word", value: "go", at: new Date().toISOString() };
    expect((await one.post("/v1/facts", body)).status).toBe(403);
    expect(await report("go", new Date(Date.now() + 3_600_000))).toBe(200);
  });
});

describe("an input that a rule rewrites", () => {
  it("is answered with what runs instead, exactly each time, and stored masked", async () => {
    const body = call("rewrite-me", "r-own", { tool_call_id: "rewritten" });
    const first = await decide(one, body);
    expect(first).toMatchObject({
      decision: "modify",
      reason_code: "REWRITTEN",
      modified_input: { command: "echo password=hunter2-rewritten-hunter2" },
    });
    expect(await decide(two, body)).toEqual({ ...first, repeated: true });
    const stored = await rig.admin.query(
      `SELECT d.answer, d.facts, d.request FROM gate.decisions AS d WHERE d.request ->> 'session_id' = 'r-own'`,
    );
    expect(JSON.stringify(stored.rows)).not.toContain("hunter2-rewritten");
    expect(await rig.count("gate.sealed_answers")).toBe(1);
  });

  it("reaches Claude Code as its updated input", async () => {
    const reply = await one.post("/v1/hooks/claude-code", claudeCall("rewrite-me", { session_id: "r-hook" }));
    expect(reply.json).toMatchObject({
      hookSpecificOutput: {
        hookEventName: "PreToolUse",
        updatedInput: { command: "echo password=hunter2-rewritten-hunter2" },
      },
    });
  });
});

describe("a stored allow", () => {
  it("is decided again when its right was taken back, and the plan's revocation denies it", async () => {
    const body = call("make", "v-one", { tool_call_id: "revoked" });
    const first = await decide(one, body);
    const incident = await rig.token({ roles: ["incident"], subject: "ivy" });
    await one.post(`/v1/capabilities/${first.capability?.id ?? ""}/revoke`, { reason: "wrong" }, incident);
    const second = await decide(two, body);
    expect(second).toMatchObject({ decision: "allow", repeated: false });
    expect(second.capability?.id).not.toBe(first.capability?.id);
    await one.post(
      "/v1/capabilities/revoke",
      { plan_digest: first.plan_digest, reason: "never again" },
      incident,
    );
    expect(await decide(two, body)).toMatchObject({ decision: "deny", reason_code: "PLAN_REVOKED" });
    expect(await decide(one, call("make", "v-two"))).toMatchObject({ reason_code: "PLAN_REVOKED" });
    expect((await decide(one, call("make other", "v-two"))).decision).toBe("allow");
  });

  it("carries a token that a resource can check", async () => {
    const answer = await decide(one, call("make checked", "v-token"));
    const claims = rig.signer.read(answer.capability?.token ?? "");
    expect(claims).toMatchObject({
      jti: answer.capability?.id,
      tenant: "acme",
      session: "v-token",
      plan_digest: answer.plan_digest,
    });
    const resource = await rig.token({ roles: ["resource"], subject: "store" });
    const verified = await one.post(
      "/v1/capabilities/verify",
      {
        token: answer.capability?.token,
        tool: "shell.run",
        plan_digest: answer.plan_digest,
        resource: "make checked",
        session_id: "v-token",
      },
      resource,
    );
    expect(verified.json).toMatchObject({ valid: true });
  });
});

describe("a gate on the agent's machine", () => {
  it("judges a file by where its link leads, and the decision can be made again from its record", async () => {
    const dir = await mkdtemp(join(tmpdir(), "fabric-link-"));
    await writeFile(join(dir, ".env"), "TOKEN=1\n");
    await symlink(join(dir, ".env"), join(dir, "notes.txt"));
    const read = (session: string): object =>
      ownRequest("file.read", { path: "notes.txt" }, { session_id: session, working_directory: dir });
    const local = await rig.gate({ isOnAgentsMachine: true });
    const denied = await decide(local, read("a-local"));
    expect(denied).toMatchObject({ decision: "deny", reason_code: "STATIC_DENY" });
    expect((await decide(await rig.gate(), read("a-remote"))).decision).toBe("allow");
    const again = await decideAgain(
      {
        database: rig.database(),
        keys: rig.keys,
        clock: systemClock,
        environment: "test",
        classify: rig.classify,
        policy: () => rig.policy,
      },
      denied.decision_id,
    );
    expect(again).toMatchObject({ decision: "deny", planDigest: denied.plan_digest });
    await rm(dir, { recursive: true });
  });
});

describe("everything at once at two gates", () => {
  it("ends in time, and each promise holds: no lock waits for another in a circle", async () => {
    const sessions = Array.from({ length: 6 }, (_, index) => `m-${String(index)}`);
    const commands = [
      "read-secret",
      "send-out",
      "count-one",
      "ask mixed",
      "ls",
      "wait-for-word",
      "rewrite-me",
    ];
    await rig.admin.query("DELETE FROM gate.dated_facts");
    const answers = await Promise.all(
      Array.from({ length: 210 }, async (_, index) => {
        const session = sessions[index % sessions.length] ?? "";
        const command = commands[(index * 5 + Math.floor(index / 6)) % commands.length] ?? "";
        const answer = await decide(index % 2 === 0 ? one : two, call(command, session));
        return { session, command, answer };
      }),
    );
    const reasons = new Set(answers.map(({ answer }) => answer.reason_code));
    for (const never of ["GATE_TIMEOUT", "GATE_UNAVAILABLE", "OVERLOADED"])
      expect(reasons).not.toContain(never);
    for (const session of sessions) {
      const allowed = (command: string): number =>
        answers.filter((a) => a.session === session && a.command === command && a.answer.decision === "allow")
          .length;
      expect(allowed("count-one")).toBe(1);
      expect(await labelsOf(session)).toEqual(["secret_read"]);
      const tickets = answers.filter((a) => a.session === session && a.answer.approval !== undefined);
      expect(new Set(tickets.map((a) => a.answer.approval?.id)).size).toBe(1);
    }
    const conflicts = answers.filter(({ answer }) => answer.reason_code === "CONFLICT").length;
    expect(conflicts).toBeLessThan(answers.length / 10);
  });
});
