import type { KeyObject } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { audit } from "../../processors/audit/audit.ts";
import { loadWho } from "../../processors/audit/queries.ts";
import { digestsOfStoredRow } from "../../processors/audit/stored-row.ts";
import { renderWho } from "../../processors/audit/who.ts";
import { eventOf } from "../../processors/kit/given.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { newSealKeyPem, readSealKey } from "../../services/audit/seal-key.ts";
import { readSealedHeads } from "../../services/audit/sealed-heads.ts";
import { createSealer } from "../../services/audit/sealer.ts";
import type { SealedHead } from "../../services/audit/verify.ts";
import { verifyAudit } from "../../services/audit/verify.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { newUuidV7 } from "../../services/platform/ids.ts";
import { createKafkaConsumer } from "../../services/platform/kafka-consumer.ts";
import { createKafkaOffsets } from "../../services/platform/kafka-offsets.ts";
import { createLog } from "../../services/platform/log.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { inject } from "vitest";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { modelEvent, openHostRig } from "../harness/host-rig.ts";

let rig: HostRig;
const opened: Database[] = [];
const log = createLog({ service: "audit-test", level: "silent" });
beforeEach(async () => {
  rig = await openHostRig();
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.end();
  await rig.close();
});

const as = (role: string): Database => {
  const database = openDatabase({
    url: rig.database.roleUrl(role),
    applicationName: role,
    maxConnections: 2,
  });
  opened.push(database);
  return database;
};
const key = readSealKey(newSealKeyPem());
const keys = new Map<string, KeyObject>([[key.keyId, key.publicKey]]);
const sealerOf = (database = as("fabric_sealer")) =>
  createSealer({ database, encoder: rig.codec, key, clock: systemClock, environment: "test", log });
const verify = (heads: ReadonlyMap<string, SealedHead> | null = null) =>
  verifyAudit({ database: as("fabric_auditor"), keys, digestsOf: digestsOfStoredRow, heads });
const type = "agent.model.completed" as const;
const many = (count: number, tenantId: string) =>
  Array.from({ length: count }, (_, index) => modelEvent(index, tenantId));
const untilTrail = (count: number) =>
  eventually(
    async () => (await rig.sql.query<{ n: bigint }>("SELECT count(*) AS n FROM audit.trail")).rows[0]?.n,
    (n) => n === BigInt(count),
    { deadlineMs: 20_000 },
  );
/** A trail of two tenants in two partitions, sealed in two rounds. */
async function sealedTrail(): Promise<void> {
  await rig.createTopics([type], 2);
  rig.start([audit]);
  await rig.publish([...many(20, "acme"), ...many(20, "globex")]);
  await untilTrail(40);
  const sealer = sealerOf();
  expect(await sealer.sealOnce()).toMatchObject({ state: "sealed", blocks: 2, rows: 40 });
  await rig.publish(many(10, "acme"));
  await untilTrail(50);
  expect(await sealer.sealOnce()).toMatchObject({ state: "sealed", blocks: 1, rows: 10 });
  expect(await sealer.sealOnce()).toMatchObject({ state: "nothing" });
}
/** What someone with the database's own rights can do. */
async function tamper(statement: string): Promise<void> {
  await rig.sql.transaction(async (tx) => {
    await tx.query("SET LOCAL session_replication_role = replica");
    await tx.query(statement);
  });
}

describe("audit trail", () => {
  it("keeps one row per event whose digest can be made anew from the table", async () => {
    await sealedTrail();
    const report = await verify();
    expect(report).toMatchObject({
      ok: true,
      exitCode: 0,
      blocks: 3,
      sealedRows: 50,
      unsealedRows: 0,
      findings: [],
    });
  });

  it("can be added to by the host, and changed by nobody", async () => {
    await sealedTrail();
    const host = as("fabric_host");
    await expect(host.query("UPDATE audit.trail SET user_id = 'x'")).rejects.toThrow(/permission denied/);
    await expect(host.query("DELETE FROM audit.trail")).rejects.toThrow(/permission denied/);
    await expect(rig.sql.query("UPDATE audit.trail SET decision = 'allow'")).rejects.toThrow(/append-only/);
    await expect(rig.sql.query("DELETE FROM audit.trail")).rejects.toThrow(/append-only/);
    await expect(rig.sql.query("TRUNCATE audit.trail")).rejects.toThrow(/append-only/);
    await expect(rig.sql.query("DELETE FROM audit.blocks")).rejects.toThrow(/append-only/);
    await expect(
      rig.sql.query("UPDATE audit.trail SET erased_at = now(), summary = NULL, tool = 'other'"),
    ).rejects.toThrow(/append-only/);
  });

  it("finds a row that calls itself erased and says something else", async () => {
    await sealedTrail();
    await tamper(
      "UPDATE audit.trail SET erased_at = now(), user_id = 'bob' WHERE tenant_id = 'acme' AND kafka_offset = 3",
    );
    const report = await verify();
    expect([report.ok, new Set(report.findings.map((one) => one.kind))]).toEqual([
      false,
      new Set(["row_changed"]),
    ]);
  });

  it("stays whole when content is erased, and still shows what was changed with it", async () => {
    await sealedTrail();
    await rig.sql.query(
      `UPDATE audit.trail SET erased_at = now(), user_id = NULL, resource_ref = NULL, payload_ref = NULL,
        payload_digest = NULL, summary = NULL WHERE tenant_id = 'acme'`,
    );
    expect(await verify()).toMatchObject({ ok: true, erasedRows: 30 });
    await tamper(
      "UPDATE audit.trail SET content_digest = sha256('x') WHERE tenant_id = 'acme' AND kafka_offset = 3",
    );
    expect(await verify()).toMatchObject({ ok: false });
  });

  it.each([
    [
      "a changed row",
      "UPDATE audit.trail SET tool = 'x' WHERE ctid = (SELECT min(ctid) FROM audit.trail)",
      "row_changed",
    ],
    [
      "a changed summary",
      `UPDATE audit.trail SET summary = '{"a":1}' WHERE ctid = (SELECT min(ctid) FROM audit.trail)`,
      "row_changed",
    ],
    [
      "a changed row with a new digest",
      "UPDATE audit.trail SET row_digest = sha256('x') WHERE ctid = (SELECT min(ctid) FROM audit.trail)",
      "row_changed",
    ],
    [
      "a removed row",
      "DELETE FROM audit.trail WHERE ctid = (SELECT min(ctid) FROM audit.trail)",
      "row_removed",
    ],
    [
      "an inserted row",
      `INSERT INTO audit.trail SELECT (jsonb_populate_record(t, jsonb_build_object('event_id', gen_random_uuid(),
        'tenant_id', 'initech', 'kafka_offset', -1))).* FROM audit.trail t LIMIT 1`,
      "row_inserted",
    ],
    [
      "a removed block",
      "DELETE FROM audit.blocks WHERE tenant_id = 'acme' AND block_number = 1",
      "block_removed",
    ],
    [
      "a changed block",
      "UPDATE audit.blocks SET row_count = 1 WHERE tenant_id = 'acme' AND block_number = 1",
      "block_changed",
    ],
    [
      "a broken signature",
      "UPDATE audit.blocks SET signature = sha256('x') || sha256('y')",
      "signature_broken",
    ],
    ["another key", "UPDATE audit.blocks SET key_id = 'ed25519:0'", "key_unknown"],
    ["a lowered frontier", "UPDATE audit.frontiers SET sealed_to = 1", "frontier_lowered"],
  ])("finds %s", async (_name, statement, kind) => {
    await sealedTrail();
    await tamper(statement);
    const report = await verify();
    expect(report.exitCode).toBe(1);
    expect(report.findings.map((one) => one.kind)).toContain(kind);
    if (kind.startsWith("row_")) {
      const { row } = report.findings.find((one) => one.kind === kind) ?? {};
      expect(row).toMatchObject({ topic: rig.topicOf(type) });
    }
  });

  it("finds blocks and rows that were cut off, by the seals on the topic", async () => {
    await sealedTrail();
    // The relay is not here: the events are taken from the outbox by hand.
    await rig.createTopics(["fabric.audit.sealed"], 2);
    const seals = (await rig.outbox()).filter((one) => one.type === "fabric.audit.sealed");
    expect(seals).toHaveLength(3);
    await rig.publish(seals);
    const endpoint = { brokers: inject("stack").kafkaBrokers, clientId: "verify" };
    const offsets = createKafkaOffsets({ endpoint, log });
    const heads = await readSealedHeads({
      openConsumer: (groupId) => createKafkaConsumer({ endpoint, groupId, log, sessionTimeoutMs: 6_000 }),
      offsets,
      decoder: rig.codec,
      topicPrefix: rig.prefix,
    });
    await offsets.close();
    expect(await verify(heads)).toMatchObject({ ok: true, headsChecked: true });
    await tamper("DELETE FROM audit.trail WHERE tenant_id = 'acme'");
    await tamper("DELETE FROM audit.blocks WHERE tenant_id = 'acme'");
    expect(await verify(null)).toMatchObject({ headsChecked: false });
    const report = await verify(heads);
    expect(report.findings).toMatchObject([{ kind: "cut_off", tenantId: "acme" }]);
  });

  it("keeps one row of an event that comes again after the inbox has forgotten it", async () => {
    await rig.createTopics([type]);
    rig.start([audit]);
    const events = many(5, "acme");
    await rig.publish(events);
    await untilTrail(5);
    await rig.sql.query("DELETE FROM host.inbox");
    await rig.publish([...events, ...many(1, "acme")]);
    await untilTrail(6);
    expect(await rig.letters()).toEqual([]);
    await sealerOf().sealOnce();
    expect(await verify()).toMatchObject({ ok: true, sealedRows: 6 });
  });

  it("is sealed by one member at a time", async () => {
    await rig.createTopics([type]);
    rig.start([audit]);
    await rig.publish(many(30, "acme"));
    await untilTrail(30);
    const runs = await Promise.all([sealerOf().sealOnce(), sealerOf().sealOnce(), sealerOf().sealOnce()]);
    expect(runs.filter((run) => run.state === "sealed")).toHaveLength(1);
    expect(await verify()).toMatchObject({ ok: true, blocks: 1, sealedRows: 30 });
  });
});

describe("who", () => {
  const call = { execution: { session_id: "s1", turn_id: "t1", tool_call_id: "call_7" } };
  const one = <T extends Envelope>(event: T, n: number): T => ({
    ...event,
    event_id: `evt_${newUuidV7(Date.now())}`,
    recorded_at: 1_767_225_600_000 + n,
  });
  const policy = {
    revision: "policy@2026-11-30.1",
    risk: "high" as const,
    decision: "deny" as const,
    reason_code: "STATIC_DENY",
    matched_rules: ["no-force-push", "prod-needs-approval"],
  };

  it("answers in one query who asked, which rules matched under which revision, and what happened", async () => {
    await rig.createTopics(["agent.tool.requested", "agent.tool.denied", "agent.tool.completed"]);
    rig.start([audit]);
    await rig.publish([
      one(
        eventOf(
          draft(
            "agent.tool.requested",
            {
              effect_class: "execute",
              input_bytes: 10,
              input_preview: "git push",
              paths: [],
              working_directory: null,
              tool_alias: null,
            },
            {
              ...call,
              user_id: "dana",
              subject: { tool: "shell.run", action: "run", resource_ref: "repo:x", data_class: "internal" },
            },
          ),
        ),
        0,
      ),
      one(
        eventOf(
          draft(
            "agent.tool.denied",
            { decision_id: "dec_1", effect_class: "execute", message: "no" },
            { ...call, policy, plan_digest: "sha256:00" },
          ),
        ),
        1,
      ),
      one(
        eventOf(
          draft(
            "agent.tool.completed",
            {
              outcome: "blocked",
              duration_ms: 3n,
              output_bytes: null,
              output_preview: null,
              error_preview: null,
              tool_alias: null,
            },
            call,
          ),
        ),
        2,
      ),
    ]);
    await untilTrail(3);
    const report = await loadWho(as("fabric_auditor"), "call_7");
    expect(report.calls).toMatchObject([
      {
        tenantId: "acme",
        askedBy: { userId: "dana", sessionId: "s1" },
        asked: { tool: "shell.run", resource: "repo:x", planDigest: "sha256:00" },
        decisions: [
          { decision: "deny", policyRevision: "policy@2026-11-30.1", matchedRules: policy.matched_rules },
        ],
        outcome: "blocked",
        ungated: false,
      },
    ]);
    const text = renderWho(report);
    expect(text).toContain("dana");
    expect(text).toContain("deny STATIC_DENY under policy@2026-11-30.1");
    expect(text).toContain("no-force-push, prod-needs-approval");
    await rig.sql.query(
      "INSERT INTO access.analyst_tenants (role_name, tenant_id) VALUES ('fabric_analyst', 'acme')",
    );
    const analyst = as("fabric_analyst");
    const decisions = await analyst.query("SELECT decision, matched_rules FROM analytics.decisions");
    expect(decisions.rows).toEqual([{ decision: "deny", matched_rules: policy.matched_rules }]);
    await expect(analyst.query("SELECT 1 FROM audit.blocks")).rejects.toThrow(/permission denied/);
    expect((await loadWho(as("fabric_auditor"), "call_8")).calls).toEqual([]);
  });

  it("documents every column that an analyst sees", async () => {
    const bare = await rig.sql.query(
      `SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'analytics' AND c.relkind = 'v' AND a.attnum > 0 AND col_description(c.oid, a.attnum) IS NULL`,
    );
    expect(bare.rows).toEqual([]);
  });
});
