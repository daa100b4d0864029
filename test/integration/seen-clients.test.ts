import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bindQuestion } from "../../services/analytics/question.ts";
import { loadQuestions } from "../../services/app/sql-actions.ts";
import { startSeenClients } from "../../services/gate/seen-clients.ts";
import { createLog } from "../../services/platform/log.ts";
import type { TestAnalyst } from "../harness/analysts.ts";
import { createAnalyst } from "../harness/analysts.ts";
import type { GateRig } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest, rigTenant } from "../harness/gate-rig.ts";
import { claudeCall, claudeEnd } from "../harness/hook-payloads.ts";
import { projectDir } from "../harness/stack.ts";

let rig: GateRig;
let ann: TestAnalyst;
beforeAll(async () => {
  rig = await createGateRig();
  ann = await createAnalyst(rig.test, [rigTenant]);
});
afterAll(async () => {
  await ann.drop();
  await rig.close();
});

type Row = Readonly<Record<string, unknown>>;
const seen = async (): Promise<readonly Row[]> =>
  (
    await rig.admin.query<Row>(
      `SELECT tenant_id, user_id, runtime, hooks, last_asked_at IS NOT NULL AS asked, last_seen_at > first_seen_at AS again
       FROM gate.clients ORDER BY user_id, runtime, hooks`,
    )
  ).rows;

describe("clients that come to a gate", () => {
  it("are kept with what they say of their hooks, once each, and whether they ever ask", async () => {
    const gate = await rig.gate();
    const send = async (runtime: string, payload: object, hooks: string, subject: string): Promise<void> => {
      const token = await rig.token({ subject });
      await fetch(`${gate.url}/v1/hooks/${runtime}`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          "x-fabric-hooks": hooks,
        },
        body: JSON.stringify(payload),
      });
    };
    await send("claude-code", claudeCall("ls"), "0123456789abcdef", "ann");
    await send("claude-code", claudeCall("ls -l"), "0123456789abcdef", "ann");
    await send("claude-code", claudeEnd(), "fedcba9876543210", "bob");
    await send("claude-code", claudeEnd(), "no digest", "bob");
    await gate.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" }));
    // Nobody who may not ask is kept.
    await gate.post("/v1/hooks/claude-code", claudeCall("ls"), "no.token.this");
    await gate.post("/v1/hooks/claude-code", claudeCall("ls"), await rig.token({ tenantId: "stranger" }));
    await gate.gate.close();
    expect(await seen()).toEqual([
      {
        tenant_id: rigTenant,
        user_id: "ann",
        runtime: "claude-code",
        hooks: "0123456789abcdef",
        asked: true,
        again: true,
      },
      { tenant_id: rigTenant, user_id: "bob", runtime: "claude-code", hooks: "", asked: false, again: false },
      {
        tenant_id: rigTenant,
        user_id: "bob",
        runtime: "claude-code",
        hooks: "fedcba9876543210",
        asked: false,
        again: false,
      },
      { tenant_id: rigTenant, user_id: "dev", runtime: "own", hooks: "", asked: true, again: false },
    ]);
  });

  it("are written when the database is back, with the first and the last time of all gates", async () => {
    const log = createLog({ service: "gate", level: "silent" });
    const database = rig.database();
    let isAway = true;
    const one = startSeenClients({
      log,
      database: {
        query: (...args) => (isAway ? Promise.reject(new Error("away")) : database.query(...args)),
      },
    });
    const other = startSeenClients({ log, database });
    const client = {
      tenantId: rigTenant,
      subject: "eve\u0000",
      runtime: "codex",
      hooks: "aaaaaaaa",
      isAsking: false,
    };
    one.note(client, 2_000);
    one.note({ ...client, isAsking: true }, 3_000);
    await one.flush();
    other.note(client, 9_000);
    await other.stop();
    isAway = false;
    one.note(client, 1_000);
    await one.stop();
    const { rows } = await rig.admin.query<{ first: Date; last: Date; asked: Date }>(
      "SELECT first_seen_at AS first, last_seen_at AS last, last_asked_at AS asked FROM gate.clients WHERE runtime = 'codex'",
    );
    expect(rows.map(({ first, last, asked }) => [+first, +last, +asked])).toEqual([[1_000, 9_000, 3_000]]);
  });

  it("that fall silent are a question that an analyst has answered, with what took their place", async () => {
    await rig.admin.query(
      `INSERT INTO gate.clients (tenant_id, user_id, runtime, hooks, first_seen_at, last_seen_at) VALUES
         ('other', 'zoe', 'claude-code', 'bbbbbbbb', now() - interval '9 days', now() - interval '8 days'),
         ($1, 'ann', 'claude-code', 'cccccccc', now() - interval '9 days', now() - interval '8 days')`,
      [rigTenant],
    );
    const question = (await loadQuestions(join(projectDir, "deploy", "questions"))).find(
      ({ name }) => name === "silent-clients",
    );
    if (question === undefined) throw new Error("the question is gone");
    const since = new Date(Date.now() - 30 * 86_400_000).toISOString();
    const { rows } = await ann.sql.query(bindQuestion(question, { since }));
    expect(rows.map((row) => Object.keys(row))).toEqual(
      rows.map(() => question.columns.map(({ name }) => name)),
    );
    expect(rows).toMatchObject([
      { user_id: "ann", hooks: "cccccccc", last_asked_at: null, other_seen_at: expect.any(Date) as Date },
    ]);
    const longer = await ann.sql.query(bindQuestion(question, { since, silent_for: "20 days" }));
    expect(longer.rows).toEqual([]);
  });
});
