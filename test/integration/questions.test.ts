import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventOf } from "../../processors/kit/given.ts";
import type { EventType } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Risk, Summaries } from "../../schemas/generated/types.ts";
import type { Question } from "../../services/analytics/question.ts";
import { bindQuestion } from "../../services/analytics/question.ts";
import { loadViews, renderViews } from "../../services/analytics/views.ts";
import { loadCostSettings, processorsWith } from "../../services/app/load-processors.ts";
import { openDirectProjector } from "../../services/app/project-directly.ts";
import { loadQuestions } from "../../services/app/sql-actions.ts";
import type { Config } from "../../services/platform/config.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestAnalyst } from "../harness/analysts.ts";
import { createAnalyst } from "../harness/analysts.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { projectDir } from "../harness/stack.ts";

const startMs = Date.UTC(2026, 10, 2, 9);
const events: Envelope[] = [];
let sequence = 0;

/** One event `atSeconds` after the start; ids count up, so that the history is the same each time. */
function happened<T extends EventType>(
  type: T,
  atSeconds: number,
  summary: Summaries[T],
  {
    call,
    user = "ann",
    session = "s1",
    ...rest
  }: { call?: string; user?: string | null; session?: string; tenant?: string; origin?: string } & Record<
    string,
    unknown
  > = {},
): void {
  sequence += 1;
  const { tenant, ...fields } = rest;
  events.push(
    eventOf(
      draft(type, summary, {
        execution: { session_id: session, ...(call === undefined ? {} : { tool_call_id: call }) },
        ...fields,
      } as never),
      {
        eventId: `evt_01900000-0000-7000-8000-${String(sequence).padStart(12, "0")}`,
        tenantId: typeof tenant === "string" ? tenant : "acme",
        userId: user,
        correlationId: `cor_${session}`,
        recordedAtMs: startMs + atSeconds * 1_000,
      },
    ) as Envelope,
  );
}

const subjectOf = (tool: string, resource: string) => ({
  tool,
  action: "run",
  resource_ref: resource,
  data_class: "internal",
});
const policyOf = (decision: string | null, risk: Risk, reason: string | null, rules: readonly string[]) => ({
  revision: "policy@2026-11-01.1",
  risk,
  decision,
  reason_code: reason,
  matched_rules: rules,
});
const requested = {
  effect_class: "execute",
  input_bytes: 2,
  input_preview: "{}",
  paths: [],
  working_directory: null,
  tool_alias: null,
} as const;
const completed = (outcome: "succeeded" | "failed" | "blocked", ms: bigint) =>
  ({
    outcome,
    duration_ms: ms,
    output_bytes: 1,
    output_preview: null,
    error_preview: null,
    tool_alias: null,
  }) as const;
const model = (name: string, output: bigint) =>
  ({
    model: name,
    outcome: "succeeded",
    input_tokens: 1_000n,
    cached_input_tokens: 400n,
    cache_write_tokens: 0n,
    output_tokens: output,
    reasoning_tokens: 0n,
    duration_ms: 10n,
    cost_micros: 2_500_000n,
    error_kind: null,
    model_call_id: null,
  }) as const;

/** A day of tenant acme, and one call of tenant globex that nobody of acme may see. */
function tellStory(): void {
  // 1. A deployment: asked, held back, agreed to by bob, asked again, carried out with a receipt.
  const deploy = subjectOf("deploy.apply", "service:shop");
  const plan = { subject: deploy, plan_digest: `sha256:${"a".repeat(64)}` };
  const held = {
    ...plan,
    policy: policyOf("require_approval", "high", "PRODUCTION_NEEDS_APPROVAL", ["prod"]),
  };
  happened("agent.tool.requested", 0, requested, { call: "c1", ...plan });
  happened(
    "agent.approval.requested",
    0.01,
    {
      decision_id: "d1",
      effect_class: "network",
      risk_score: 80,
      expires_at: startMs + 900_000,
      message: "m",
    },
    { call: "c1", approval_id: "apr_1", ...held },
  );
  happened(
    "agent.approval.granted",
    60.01,
    { decision_id: "d1", requester_id: "ann", note: "ok", decided_at: startMs + 60_000 },
    { user: "bob", approval_id: "apr_1", ...plan },
  );
  const passed = { ...plan, policy: policyOf("allow", "high", "PRODUCTION_NEEDS_APPROVAL", ["prod"]) };
  const right = { capability_id: "cap_1" };
  happened("agent.tool.requested", 70, requested, { call: "c2", ...plan });
  happened(
    "agent.tool.authorized",
    70.02,
    { decision_id: "d2", effect_class: "network", modified: false },
    { call: "c2", ...right, ...passed },
  );
  happened(
    "agent.approval.consumed",
    70.02,
    { decision_id: "d2" },
    { call: "c2", approval_id: "apr_1", ...plan },
  );
  happened(
    "agent.capability.issued",
    70.02,
    { effect_class: "network", expires_at: startMs + 400_000, max_calls: 1 },
    { call: "c2", ...right, ...plan },
  );
  happened(
    "agent.capability.spent",
    71,
    { usage_id: "u1", calls: 1, calls_used: 1, max_calls: 1 },
    { user: "runner", ...right, ...plan },
  );
  const effect = { effect_id: "eff_1", ...right, ...plan };
  happened(
    "agent.effect.attempted",
    71,
    { effect_class: "network", connector: "http", idempotency_key_digest: null },
    effect,
  );
  happened(
    "agent.effect.receipted",
    73,
    { effect_class: "network", outcome: "succeeded", duration_ms: 2_000n, status: "200" },
    { ...effect, receipt_id: "rcp_1" },
  );
  happened("agent.tool.completed", 74, completed("succeeded", 3_900n), { call: "c2", ...plan });
  // 2. Two refusals of ann's and one of cid's.
  const push = subjectOf("shell.run", "repo:x");
  for (const [call, user, session, at] of [
    ["c3", "ann", "s1", 100],
    ["c4", "ann", "s1", 110],
    ["c5", "cid", "s2", 120],
  ] as const) {
    happened("agent.tool.requested", at, requested, { call, user, session, subject: push });
    happened(
      "agent.tool.denied",
      at + 0.01,
      { decision_id: `d-${call}`, effect_class: "execute", message: "no" },
      {
        call,
        user,
        session,
        subject: push,
        policy: policyOf("deny", "critical", "FORCE_PUSH", ["no-force-push"]),
      },
    );
  }
  // 3. A call that ran although it was refused, one that nobody was asked about, and one that an approval ran out for.
  happened("agent.tool.completed", 130, completed("succeeded", 5n), {
    call: "c5",
    user: "cid",
    session: "s2",
    subject: push,
  });
  happened("agent.tool.completed", 140, completed("failed", 5n), {
    call: "c6",
    user: "cid",
    session: "s2",
    subject: push,
  });
  happened(
    "agent.approval.requested",
    150,
    {
      decision_id: "d7",
      effect_class: "network",
      risk_score: 80,
      expires_at: startMs + 900_000,
      message: "m",
    },
    { call: "c7", user: "cid", session: "s2", approval_id: "apr_2", ...held },
  );
  happened(
    "agent.approval.expired",
    950,
    { decision_id: "d7", expired_at: startMs + 900_000 },
    { user: null, session: "s2", approval_id: "apr_2", ...plan },
  );
  // 4. Children and models.
  happened("agent.prompt.submitted", 1, { prompt_bytes: 1, preview: "p", command_name: null });
  for (const child of ["k1", "k2"])
    happened("agent.subagent.started", 200, { subagent_id: child, subagent_kind: null }, { agent_id: child });
  happened("agent.subagent.stopped", 210, {
    subagent_id: "k1",
    subagent_kind: null,
    outcome: "succeeded",
    final_message_bytes: null,
  });
  happened("agent.model.completed", 220, model("unheard-of-1", 50n));
  happened("agent.model.completed", 221, model("unheard-of-1", 70n));
  happened("agent.model.completed", 222, model("unheard-of-2", 10n), { user: "cid", session: "s2" });
  // 5. The other tenant.
  happened("agent.tool.requested", 0, requested, {
    call: "c1",
    session: "g",
    tenant: "globex",
    user: "zoe",
    subject: push,
  });
  happened(
    "agent.tool.denied",
    0.5,
    { decision_id: "g1", effect_class: "execute", message: "no" },
    {
      call: "c1",
      session: "g",
      tenant: "globex",
      user: "zoe",
      subject: push,
      policy: policyOf("deny", "high", "OTHER", []),
    },
  );
  // 7. A client that was killed with a call under way; its session is told as ended by who found it.
  happened(
    "agent.tool.authorized",
    1_000,
    { decision_id: "d9", effect_class: "execute", modified: false },
    {
      ...{ call: "c9", session: "s9", user: "eve", subject: subjectOf("shell.run", "make") },
      policy: policyOf("allow", "low", "ALLOWED", []),
    },
  );
  // 8. A call that was allowed, and that the user refused in the client's own dialog.
  const dialog = { call: "c10", session: "s9", user: "eve", subject: subjectOf("shell.run", "make") };
  const allowed = policyOf("allow", "low", "ALLOWED", []);
  happened(
    "agent.tool.authorized",
    1_010,
    { decision_id: "d10", effect_class: "execute", modified: false },
    { ...dialog, policy: allowed },
  );
  happened("agent.permission.refused", 1_020, { refused_by: "user", reason: null, tool_alias: null }, dialog);
  happened("agent.session.ended", 1_300, { reason: "other" }, { session: "s9", user: "eve" });
}

let test: TestDatabase;
let admin: Database;
let ann: TestAnalyst;
let questions: readonly Question[];

beforeAll(async () => {
  test = await createTestDatabase();
  admin = openDatabase({ url: test.url, applicationName: "questions-test", maxConnections: 2 });
  const config = { cost: { pricesDir: undefined, budgetsFile: undefined } } as unknown as Config;
  const processors = processorsWith(
    await loadCostSettings(config, { packageDir: projectDir, rootDir: projectDir }),
  );
  tellStory();
  const projector = openDirectProjector(test.roleUrl("fabric_host"), processors);
  await projector.add(events);
  await projector.end();
  ann = await createAnalyst(test, ["acme"]);
  questions = await loadQuestions(join(projectDir, "deploy", "questions"));
});
afterAll(async () => {
  await ann.drop();
  await admin.end();
  await test.drop();
});

async function ask(name: string, given: Record<string, string> = {}): Promise<Record<string, unknown>[]> {
  const question = questions.find((one) => one.name === name);
  if (question === undefined) throw new Error(`no question ${name}`);
  const { rows } = await ann.sql.query(bindQuestion(question, given));
  for (const row of rows) expect(Object.keys(row)).toEqual(question.columns.map((one) => one.name));
  return rows;
}

describe("the questions that ship", () => {
  it("are ten, and each one is tested here", () => {
    expect(questions.map((one) => one.name)).toEqual([
      "approvers",
      "fan-out",
      "person-activity",
      "ran-without-decision",
      "refusals",
      "resource-history",
      "risky-effects",
      "silent-clients",
      "top-spenders",
      "unfinished-calls",
      "waiting-times",
      "who-did-this",
    ]);
  });

  it("who-did-this goes from the user by agent, hook, approval, capability, tool, receipt and consumption to the final state in one row", async () => {
    expect(await ask("who-did-this", { call: "c2" })).toMatchObject([
      {
        tenant_id: "acme",
        user_id: "ann",
        session_id: "s1",
        tool: "deploy.apply",
        resource_ref: "service:shop",
        decision: "allow",
        reason_code: "PRODUCTION_NEEDS_APPROVAL",
        matched_rules: ["prod"],
        policy_revision: "policy@2026-11-01.1",
        hook_event_id: expect.stringMatching(/^evt_/) as string,
        approver_id: "bob",
        approval_id: "apr_1",
        approval_consumed_at: new Date(startMs + 70_020),
        capability_id: "cap_1",
        capability_spent_at: new Date(startMs + 71_000),
        capability_calls_used: 1,
        receipt_id: "rcp_1",
        receipt_outcome: "succeeded",
        final_state: "succeeded",
      },
    ]);
    expect(
      (await ask("who-did-this", { call: "c1" })).map((row) => [row["tenant_id"], row["final_state"]]),
    ).toEqual([["acme", "waits_for_approval"]]);
    expect(await ask("who-did-this", { call: "c2", tenant: "globex" })).toEqual([]);
  });

  it("the story names every station with its time", async () => {
    const { rows } = await ann.sql.query("SELECT * FROM analytics.story WHERE tool_call_id = 'c2'");
    expect(rows).toMatchObject([
      {
        hook_event_id: expect.stringMatching(/^evt_/) as string,
        decision_id: "d2",
        approval_id: "apr_1",
        approval_granted_at: new Date(startMs + 60_010),
        approval_consumed_at: new Date(startMs + 70_020),
        capability_issued_at: new Date(startMs + 70_020),
        capability_spent_at: new Date(startMs + 71_000),
        capability_calls_used: 1,
        effect_id: "eff_1",
        receipt_id: "rcp_1",
        receipted_at: new Date(startMs + 73_000),
        completed_at: new Date(startMs + 74_000),
        duration_ms: 3_900n,
      },
    ]);
  });

  it("refusals counts calls, people and sessions by reason", async () => {
    expect(await ask("refusals")).toEqual([
      {
        reason_code: "FORCE_PUSH",
        tool: "shell.run",
        calls: 3n,
        people: 2n,
        sessions: 2n,
        last_at: new Date(startMs + 120_010),
      },
    ]);
    expect(await ask("refusals", { until: "2026-11-01" })).toEqual([]);
  });

  it("approvers tells who answered, how fast, and what nobody answered", async () => {
    expect(await ask("approvers")).toEqual([
      {
        tenant_id: "acme",
        approver_id: "bob",
        granted: 1n,
        refused: 0n,
        unused: 0n,
        median_wait_ms: 60_000n,
        fast_share: "0.000",
      },
      {
        tenant_id: "acme",
        approver_id: null,
        granted: 0n,
        refused: 0n,
        unused: 0n,
        median_wait_ms: null,
        fast_share: null,
      },
    ]);
  });

  it("ran-without-decision finds the call that was refused and ran, and the one that nobody was asked about", async () => {
    expect(
      (await ask("ran-without-decision")).map((row) => [
        row["tool_call_id"],
        row["last_decision"],
        row["user_id"],
      ]),
    ).toEqual([
      ["c5", "deny", "cid"],
      ["c6", null, "cid"],
    ]);
  });

  it("unfinished-calls finds what was allowed and has no end, once it is old enough", async () => {
    const rows = await ask("unfinished-calls");
    expect(rows.map((row) => [row["tool_call_id"], row["user_id"], row["session_ended_at"]])).toEqual([
      ["c9", "eve", new Date(startMs + 1_300_000)],
    ]);
    expect(await ask("unfinished-calls", { older_than: "100 years" })).toEqual([]);
  });

  it("risky-effects names who agreed and what came of it", async () => {
    expect(await ask("risky-effects")).toMatchObject([
      {
        tool_call_id: "c2",
        risk: "high",
        user_id: "ann",
        approver_id: "bob",
        outcome: "succeeded",
        resource_ref: "service:shop",
      },
    ]);
  });

  it("person-activity adds up a person's day", async () => {
    expect(await ask("person-activity", { person: "ann" })).toEqual([
      {
        day: "2026-11-02",
        sessions: 1n,
        calls: 4n,
        allowed: 1n,
        denied: 2n,
        held: 1n,
        with_effects: 1n,
        risky: 4n,
      },
    ]);
    expect(await ask("person-activity", { person: "zoe" })).toEqual([]);
  });

  it("resource-history lists who came near a resource, the newest first", async () => {
    expect(
      (await ask("resource-history", { resource: "service:%" })).map((row) => [
        row["tool_call_id"],
        row["decision"],
      ]),
    ).toEqual([
      ["c7", "require_approval"],
      ["c2", "allow"],
      ["c1", "require_approval"],
    ]);
  });

  it("top-spenders adds up by person and model", async () => {
    const rows = await ask("top-spenders");
    expect(rows.filter((row) => row["model"] !== null)).toEqual([
      {
        tenant_id: "acme",
        user_id: "ann",
        model: "unheard-of-1",
        amount: "5.00",
        calls: 2n,
        output_tokens: 120n,
        cached_share: "0.400",
        unpriced_calls: 0n,
      },
      {
        tenant_id: "acme",
        user_id: "cid",
        model: "unheard-of-2",
        amount: "2.50",
        calls: 1n,
        output_tokens: 10n,
        cached_share: "0.400",
        unpriced_calls: 0n,
      },
    ]);
  });

  it("waiting-times gives percentiles per tool", async () => {
    expect((await ask("waiting-times")).find((row) => row["tool"] === "deploy.apply")).toEqual({
      tool: "deploy.apply",
      calls: 2n,
      decide_p50_ms: 15n,
      decide_p99_ms: 20n,
      tool_p50_ms: 3_900n,
      tool_p99_ms: 3_900n,
      total_p50_ms: 4_000n,
      total_p99_ms: 4_000n,
    });
  });

  it("fan-out counts children, each once", async () => {
    expect((await ask("fan-out"))[0]).toMatchObject({
      correlation_id: "cor_s1",
      user_id: "ann",
      child_agents: 2n,
      tool_calls: 4n,
      model_calls: 2n,
    });
  });
});

describe("the views of analytics", () => {
  it("have a comment on each view and on each column", async () => {
    const bare = (await loadViews(ann.sql)).flatMap((view) => [
      ...(view.text === null ? [view.name] : []),
      ...view.columns.filter((one) => one.text === null).map((one) => `${view.name}.${one.name}`),
    ]);
    expect(bare).toEqual([]);
  });

  it("are the page deploy/analytics.md; after a change: fabric sql catalog --write deploy/analytics.md", async () => {
    const page = await readFile(join(projectDir, "deploy", "analytics.md"), "utf8");
    expect(renderViews(await loadViews(ann.sql))).toBe(page);
  });

  it("keep every name that they ever had; a new one is added to test/corpus/analytics-names.json", async () => {
    const text = await readFile(join(projectDir, "test", "corpus", "analytics-names.json"), "utf8");
    const now = (await loadViews(ann.sql)).map((view) => [view.name, view.columns.map((one) => one.name)]);
    expect(Object.fromEntries(now)).toEqual(JSON.parse(text));
  });
});
