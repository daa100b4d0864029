import { cp, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { migrate } from "../../services/platform/migrate.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import { projectDir } from "../harness/stack.ts";

let rig: GateRig;
let dir: string;
beforeEach(async () => {
  rig = await createGateRig();
  dir = await mkdtemp(join(tmpdir(), "fabric-rollout-"));
  await cp(join(projectDir, "deploy", "migrations"), dir, { recursive: true });
});
afterEach(async () => {
  await rig.close();
  await rm(dir, { recursive: true });
});

/** What the next release would bring: wider tables, a new one, a function as it will be. */
const nextFile = `
ALTER TABLE decisions ADD COLUMN next_note text;
ALTER TABLE sessions ADD COLUMN next_note text NOT NULL DEFAULT '';
CREATE TABLE next_notes (id bigint PRIMARY KEY);
`;

/** Writes the next file of an owner's folder. */
async function writeNext(owner: string, text: string): Promise<void> {
  const files = (await readdir(join(dir, owner))).filter((name) => name.endsWith(".sql"));
  await writeFile(join(dir, owner, `${String(files.length + 1).padStart(4, "0")}_next.sql`), text);
}

const askLs = (gate: RunningGate) => gate.post("/v1/gate/decide", ownRequest("shell.run", { command: "ls" }));

describe("a rollout", () => {
  it("applies a newer migration under traffic: no call fails, and gates of before and after share the database", async () => {
    await writeNext("gate", nextFile);
    const before = await rig.gate();
    let running = true;
    const decisions: string[] = [];
    const callers = Array.from({ length: 4 }, async () => {
      while (running) decisions.push(((await askLs(before)).json as { decision: string }).decision);
    });
    const admin = openDatabase({ url: rig.test.url, applicationName: "rollout", maxConnections: 2 });
    const answers = async (more: number): Promise<void> => {
      const from = decisions.length;
      await eventually(
        () => decisions.length - from,
        (n) => n >= more,
        { what: "answers", deadlineMs: 30_000 },
      );
    };
    try {
      await answers(10);
      let migrating = Promise.resolve({ applied: [] as string[] });
      // A report of a quarter of an hour reads what the migration wants to change.
      await admin.transaction(async (report) => {
        await report.query("SELECT count(*) FROM gate.decisions");
        migrating = migrate({ adminUrl: rig.test.url, migrationsDir: dir });
        await eventually(async () => {
          const waits = await admin.query(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'fabric-migrate' AND datname = current_database() AND wait_event_type = 'Lock'",
          );
          return waits.rowCount > 0;
        });
        await answers(30);
      });
      const { applied } = await migrating;
      expect(applied).toEqual([expect.stringMatching(/^gate\/\d{4}_next\.sql$/)]);
      await answers(10);
      const after = await rig.gate();
      const both = [await askLs(after), await askLs(before)].map(
        ({ json }) => (json as { decision: string }).decision,
      );
      expect(both).toEqual(["allow", "allow"]);
    } finally {
      running = false;
      await Promise.all(callers);
      await admin.end();
    }
    expect(new Set(decisions)).toEqual(new Set(["allow"]));
  });
});
