import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Processor } from "../../processors/kit/processor.ts";
import { audit } from "../../processors/audit/audit.ts";
import { Fault } from "../../schemas/faults.ts";
import { modelEvent } from "../harness/host-rig.ts";
import type { ReplayRig } from "../harness/replay-rig.ts";
import { openReplayRig, runsHere } from "../harness/replay-rig.ts";

/** What a version's code can do with the one login that its run has. */

const type = "agent.model.completed" as const;
let rig: ReplayRig;
beforeAll(async () => {
  rig = await openReplayRig([type], 1);
  await rig.publish([modelEvent(1), modelEvent(2)]);
});
afterAll(async () => {
  await rig.close();
});

const sre = (...argv: string[]) => ["replay", ...argv, "--token-file", rig.tokenFile];
const codeOf = (fault: Fault): string => String((fault.cause as { code?: unknown }).code);

const forbidden = {
  "write to the outbox":
    "SELECT outbox.append(ARRAY[gen_random_uuid()], ARRAY['agent.tool.denied'], ARRAY['k'], ARRAY['acme'], ARRAY['\\x00'::bytea], ARRAY['{}'::jsonb])",
  "insert into the outbox's table": "INSERT INTO outbox.events SELECT * FROM outbox.events",
  "write the live projection": "DELETE FROM audit.trail",
  "read the live projection": "SELECT count(*) FROM audit.trail",
  "read a view": "SELECT count(*) FROM analytics.audit_trail",
  "move the live watermark": "UPDATE host.watermarks SET next_offset = 0",
  "claim in the live inbox": "SELECT host.claim_events('audit', ARRAY[gen_random_uuid()])",
  "put bytes into the vault": "INSERT INTO vault.evidence DEFAULT VALUES",
  "decide in the gate": "INSERT INTO gate.approvals DEFAULT VALUES",
  "write itself into the record":
    "INSERT INTO replay.acts (shadow, act, person, tenant, issuer, detail) VALUES ('a','accepted','b','c','d','{}')",
  "become the host": "SET ROLE fabric_host",
  "become the owner": "RESET SESSION AUTHORIZATION; DROP TABLE audit.trail",
  "make a schema": "CREATE SCHEMA mine",
  "run a program": "COPY (SELECT 1) TO PROGRAM 'true'",
} as const;

describe("the login of a run", () => {
  it("is refused whatever else than its own tables a version's code asks for", async () => {
    const said = new Map<string, string>();
    const evil: Processor = {
      ...audit,
      topics: [type],
      version: "2",
      async apply(tx) {
        for (const [what, statement] of Object.entries(forbidden)) {
          // The savepoint keeps the run's own transaction whole: what matters is what the server says.
          await tx.query("SAVEPOINT before");
          try {
            await tx.query(statement);
            said.set(what, "done");
          } catch (error) {
            said.set(what, error instanceof Fault ? codeOf(error) : String(error));
            await tx.query("ROLLBACK TO SAVEPOINT before");
          }
        }
        return [];
      },
    };
    const started = await rig.fabric(
      sre("start", "--processor", "audit", "--version", import.meta.filename, "--shadow", "evil"),
      { runs: runsHere({ "replay-role.test.ts": evil }) },
    );
    await rig.fabric(sre("drop", "evil"));
    expect(started).toMatchObject({ exit: 0 });
    // 42501: insufficient privilege.
    expect(Object.fromEntries(said)).toEqual(
      Object.fromEntries(Object.keys(forbidden).map((what) => [what, "42501"])),
    );
  });

  it("cannot write another shadow's tables", async () => {
    await rig.fabric(sre("start", "--processor", "audit", "--shadow", "other"));
    const { rows } = await rig.host.sql.query<{ role: string; can: boolean }>(
      `SELECT r.rolname AS role, has_schema_privilege(r.rolname, 'shadow_other', 'USAGE') AS can
        FROM pg_roles AS r WHERE r.rolname LIKE 'shadow\\_other\\_%'`,
    );
    expect(rows).toMatchObject([{ can: true }]);
    const elsewhere = await rig.host.sql.query<{ n: string }>(
      `SELECT n.nspname AS n FROM pg_namespace AS n WHERE has_schema_privilege($1, n.oid, 'USAGE')
        AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('public', 'information_schema') ORDER BY 1`,
      [rows[0]?.role],
    );
    expect(elsewhere.rows).toEqual([{ n: "shadow_other" }, { n: "shadow_other_host" }]);
  });

  it("is gone with the shadow", async () => {
    await rig.fabric(sre("drop", "other"));
    const left = await rig.host.sql.query(
      `SELECT rolname FROM pg_roles WHERE rolname LIKE 'shadow\\_other%'
        UNION ALL SELECT nspname FROM pg_namespace WHERE nspname LIKE 'shadow\\_other%'
        UNION ALL SELECT schema_name FROM migrations.applied WHERE schema_name LIKE 'shadow\\_other%'`,
    );
    expect(left.rows).toEqual([]);
  });
});

describe("shadows", () => {
  it.each([
    ["start", "--processor", "audit", "--shadow", "no"],
    ["accept", "no", "--reason", "because"],
    ["promote", "no"],
    ["drop", "no"],
  ])("are not for an agent's token: %s", async (...argv) => {
    const said = await rig.fabric(["replay", ...argv, "--token-file", rig.agentTokenFile, "--json"]);
    expect(said).toMatchObject({ exit: 4, json: { error: { code: "ROLE_MISSING" } } });
    const { rows } = await rig.host.sql.query("SELECT FROM replay.acts WHERE shadow = 'no'");
    expect(rows).toEqual([]);
  });

  it("leave a record of who did what that nobody can change", async () => {
    await rig.fabric(sre("start", "--processor", "audit", "--shadow", "kept"));
    await rig.fabric(sre("drop", "kept"));
    const { rows } = await rig.host.sql.query(
      "SELECT act, person, tenant FROM replay.acts WHERE shadow = 'kept' ORDER BY id",
    );
    expect(rows).toEqual([
      { act: "started", person: "olga", tenant: "fabric" },
      { act: "dropped", person: "olga", tenant: "fabric" },
    ]);
    await expect(rig.host.sql.query("DELETE FROM replay.acts")).rejects.toThrow(/refused/);
  });
});
