import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { evaluation } from "../../processors/eval/eval.ts";
import { episodeIdOf } from "../../processors/eval/episode-id.ts";
import { listEpisodes } from "../../processors/eval/queries.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { DatasetDefinition, ExportOptions } from "../../services/exporters/eval/export-dataset.ts";
import { exportDataset } from "../../services/exporters/eval/export-dataset.ts";
import { defaultShares } from "../../services/exporters/eval/splits.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import type { At } from "../harness/eval-story.ts";
import { storyStartMs, tell } from "../harness/eval-story.ts";
import { eventually } from "../harness/eventually.ts";
import { openHostRig } from "../harness/host-rig.ts";

const minuteMs = 60_000;
let number = 0;
const next = (over: Partial<At> = {}): At => {
  number += 1;
  return { n: number, atMs: number * 10, ...over };
};

/** A whole goal: a call that is denied, another plan that passes, a failure that is repaired. */
function goal(over: Partial<At>, prompt: string): Envelope[] {
  const at = (): At => next(over);
  const deploy = { id: "c1", resource: "db:production" };
  const stage = { id: "c2", resource: "db:staging" };
  const write = { id: "c3", tool: "file.write", resource: "file:a" };
  const again = { ...write, id: "c4" };
  return [
    tell.session(at(), null),
    tell.prompt(at(), prompt),
    tell.requested(at(), deploy),
    tell.decided(at(), deploy, "deny", "STATIC_DENY"),
    tell.requested(at(), stage),
    tell.decided(at(), stage, "allow"),
    tell.completed(at(), stage, "succeeded"),
    tell.requested(at(), write),
    tell.decided(at(), write, "allow"),
    tell.completed(at(), write, "failed"),
    tell.requested(at(), again),
    tell.decided(at(), again, "modify"),
    tell.completed(at(), again, "succeeded"),
    tell.model(at(), 100n, 20n, 3_000n),
    tell.turn(at(), "succeeded"),
  ];
}

let database: TestDatabase;
let auditor: Database;
let host: Database;
let dir: string;
beforeEach(async () => {
  number = 0;
  database = await createTestDatabase();
  const open = (role: string): Database =>
    openDatabase({
      url: database.roleUrl(role),
      applicationName: role,
      searchPath: ["eval"],
      maxConnections: 2,
    });
  host = open("fabric_host");
  auditor = open("fabric_auditor");
  dir = await mkdtemp(join(tmpdir(), "eval-"));
});
afterEach(async () => {
  await host.end();
  await auditor.end();
  await database.drop();
  await rm(dir, { recursive: true, force: true });
});

async function apply(events: readonly Envelope[]): Promise<void> {
  await host.transaction(async (tx) => {
    const changes = events.flatMap((one) =>
      evaluation.project(one, { topic: one.type, partition: 0, offset: 0n }),
    );
    await evaluation.apply(tx, changes);
  });
}
const definition: DatasetDefinition = {
  tenantId: null,
  untilMs: storyStartMs + 60 * minuteMs,
  state: null,
  onlyLabelled: false,
  shares: defaultShares,
  seed: "1",
};
const write = (name: string, over: Partial<ExportOptions> = {}, cut: Partial<DatasetDefinition> = {}) =>
  exportDataset(auditor, {
    definition: { ...definition, ...cut },
    format: "jsonl",
    dir: join(dir, name),
    split: null,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    ...over,
  });
async function readLines(name: string): Promise<Record<string, unknown>[]> {
  const files = (await readdir(join(dir, name))).filter((file) => file.endsWith(".jsonl")).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(dir, name, file), "utf8")));
  return texts
    .flatMap((text) => text.split("\n").filter((line) => line !== ""))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
async function duck(sql: string): Promise<Record<string, unknown>[]> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  try {
    const reader = await connection.runAndReadAll(sql);
    return reader.getRowObjectsJson();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

describe("eval", () => {
  it("makes an episode of what happened, from real topics, and attaches a label that came before it", async () => {
    const rig = await openHostRig();
    try {
      const episodeId = episodeIdOf("acme", "cor_1");
      const labels = [
        tell.label(next(), episodeId, "ann", "bad"),
        tell.label(next(), episodeId, "ben", "good", 80),
        tell.label(next(), episodeId, "ann", "good", 90),
        tell.label(next({ tenant: "globex" }), episodeId, "eve", "unsafe"),
      ];
      const events = goal({}, "ship it");
      await rig.createTopics(evaluation.topics, 2);
      rig.start([evaluation]);
      await rig.publish(labels);
      const readLabels = () =>
        rig.sql.query("SELECT author, label, score, is_attached FROM analytics.eval_labels ORDER BY 1");
      await eventually(
        async () => (await readLabels()).rows.length,
        (count) => count === 3,
        { deadlineMs: 30_000 },
      );
      expect((await readLabels()).rows.every((row) => row["is_attached"] === false)).toBe(true);
      await rig.publish([...events].reverse());
      const found = await eventually(
        async () => (await rig.sql.query("SELECT * FROM analytics.eval_episodes")).rows[0],
        (row) => row?.["events"] === BigInt(events.length),
        { deadlineMs: 30_000 },
      );
      expect(found).toMatchObject({
        episode_id: episodeId,
        goal: "ship it",
        state: "completed",
        calls: 4,
        allowed: 3,
        denied: 1,
        succeeded: 2,
        failed: 1,
        stumbles: 2,
        recoveries: 2,
        input_tokens: 100n,
        output_tokens: 20n,
        cost_micros: 3_000n,
        user_id: "dana",
      });
      const steps = await rig.sql.query(
        "SELECT number, tool, resource, decision, outcome, recovered_by FROM analytics.eval_steps ORDER BY number",
      );
      expect(steps.rows.map((row) => Object.values(row))).toEqual([
        [1, "shell.run", "db:production", "deny", null, 2],
        [2, "shell.run", "db:staging", "allow", "succeeded", null],
        [3, "file.write", "file:a", "allow", "failed", 4],
        [4, "file.write", "file:a", "modify", "succeeded", null],
      ]);
      expect((await readLabels()).rows.map((row) => Object.values(row))).toEqual([
        ["ann", "good", 90, true],
        ["ben", "good", 80, true],
        // Of another tenant: no word on this episode.
        ["eve", "unsafe", null, false],
      ]);
      const [listed] = await listEpisodes(rig.sql, { tenantId: "acme", state: null, limit: 5 });
      expect(listed).toMatchObject({ episode_id: episodeId, labels: ["good", "good"] });
      expect(await rig.letters()).toEqual([]);
    } finally {
      await rig.close();
    }
  });

  it("judges a correlation that has no end by its first events, and counts the others", async () => {
    for (let batch = 0; batch < 6; batch += 1) {
      await apply(
        Array.from({ length: 500 }, () => {
          const at = next();
          return tell.completed(at, { id: `c${String(at.n)}` }, "succeeded");
        }),
      );
    }
    const before = await host.query("SELECT steps, xmin::text AS written_by FROM episodes");
    await apply([tell.completed(next(), { id: "last" }, "failed"), tell.ended(next())]);
    const [row] = (
      await host.query<{
        steps: unknown[];
        calls: number;
        failed: number;
        state: string;
        call_facts: bigint;
      }>("SELECT * FROM episodes JOIN totals USING (episode_id)")
    ).rows;
    expect(row).toMatchObject({ calls: 2_000, failed: 0, state: "interrupted", call_facts: 3_001n });
    expect(row?.steps).toEqual(before.rows[0]?.["steps"]);
    const [exported] = (await write("long"), await readLines("long"));
    expect(exported).toMatchObject({ calls: 2_000, call_facts_beyond: 1_001 });
  });
});

describe("an erased tenant", () => {
  it("has no content left, in the tables and in every export, whatever comes first; numbers stay", async () => {
    const of = (tenant: string) => goal({ tenant, correlation: `cor_${tenant}` }, `secret plan of ${tenant}`);
    const [acme, globex] = [of("acme"), of("globex")];
    const labelled = tell.label(next({ tenant: "acme" }), episodeIdOf("acme", "cor_acme"), "ann", "safe");
    const erased = tell.erased(next({ tenant: "acme" }), storyStartMs + 30 * minuteMs);
    const after = tell.prompt(
      next({ tenant: "acme", correlation: "cor_new", atMs: 40 * minuteMs }),
      "a new contract",
    );
    // One half before the erasure, the other half after it.
    await apply([...acme.slice(0, 7), labelled, ...globex]);
    await apply([erased]);
    await apply([...acme.slice(7), after]);
    await write("all");
    const text = (
      await Promise.all(
        (await readdir(join(dir, "all"))).map((file) => readFile(join(dir, "all", file), "utf8")),
      )
    ).join("\n");
    expect(text).not.toContain("secret plan of acme");
    expect(text).toContain("secret plan of globex");
    const rows = await readLines("all");
    expect(rows.find((row) => row["correlation_id"] === "cor_acme")).toMatchObject({
      goal: null,
      user_id: null,
      calls: 4,
      denied: 1,
      label: "safe",
      input_tokens: 100,
    });
    // What comes after it is a new beginning: no event erases what is yet to be recorded, whatever moment it names.
    expect(rows.find((row) => row["correlation_id"] === "cor_new")).toMatchObject({ goal: "a new contract" });
    const left = await host.query<{ preview: string | null }>(
      `SELECT preview FROM facts
        WHERE tenant_id = 'acme' AND (preview, resource, user_id, working_directory) IS DISTINCT FROM (NULL, NULL, NULL, NULL)`,
    );
    expect(left.rows).toEqual([{ preview: "a new contract" }]);
  });
});

describe("the dataset", () => {
  const people = ["dana", "eve", "finn", "gus"];
  /** Forty goals; every fourth repeats a prompt of the same person, every fifth goes on in a session of another. */
  const many = (): Envelope[] =>
    Array.from({ length: 40 }, (_, index) =>
      goal(
        {
          correlation: `cor_${String(index)}`,
          session: index % 5 === 4 ? `s${String(index - 4)}` : `s${String(index)}`,
          user: people[index % 4] ?? "dana",
          tenant: index % 2 === 0 ? "acme" : "globex",
        },
        index % 4 === 3 ? "the same  Thing again" : `goal ${String(index)}`,
      ),
    ).flat();

  it("is the same version whatever the format and the run, and another one for another cut", async () => {
    await apply(many());
    const first = await write("first");
    const second = await write("second", { format: "parquet" });
    const alone = await write("alone", { split: "test" });
    expect([second.version, alone.version]).toEqual([first.version, first.version]);
    expect(second.content_digest).toBe(first.content_digest);
    expect(alone.files).toEqual(first.files.filter((file) => file.split === "test"));
    const others = await Promise.all([
      write("tenant", {}, { tenantId: "acme" }),
      write("time", {}, { untilMs: storyStartMs + 3_000 }),
      write("seed", {}, { seed: "2" }),
      write("state", {}, { state: "open" }),
    ]);
    expect(new Set([first.version, ...others.map((one) => one.version)]).size).toBe(5);
    expect(others[0]?.rows).toBe(20);
    expect(others[3]?.rows).toBe(0);
    // What comes later changes nothing of what was cut before.
    await apply(goal({ correlation: "cor_late", atMs: 120 * minuteMs, session: "s1" }, "later"));
    expect((await write("again")).version).toBe(first.version);
    expect(JSON.parse(await readFile(join(dir, "first", "manifest.json"), "utf8"))).toEqual(first);
    await expect(write("first")).rejects.toThrow(/empty folder/);
  });

  it("keeps related episodes on one side, and loses none", async () => {
    await apply(many());
    const manifest = await write("set", {}, { shares: { train: 40, validation: 30, test: 30 } });
    const rows = await readLines("set");
    expect(rows).toHaveLength(40);
    expect(new Set(rows.map((row) => row["split"])).size).toBe(3);
    expect(manifest.leakage_groups).toBe(new Set(rows.map((row) => row["leakage_group"])).size);
    const splitsBy = (key: (row: Record<string, unknown>) => string): number[] => {
      const splits = new Map<string, Set<unknown>>();
      for (const row of rows) splits.set(key(row), (splits.get(key(row)) ?? new Set()).add(row["split"]));
      return [...splits.values()].map((all) => all.size);
    };
    const tenant = (row: Record<string, unknown>) => String(row["tenant_id"]);
    expect(Math.max(...splitsBy((row) => `${tenant(row)} ${String(row["session_id"])}`))).toBe(1);
    expect(
      Math.max(
        ...splitsBy((row) => `${tenant(row)} ${String(row["user_id"])} ${String(row["goal"]).toLowerCase()}`),
      ),
    ).toBe(1);
    expect(Math.max(...splitsBy((row) => String(row["leakage_group"])))).toBe(1);
  });

  it("is read by DuckDB, with the counts and sums that SQL has", async () => {
    await apply(many());
    await apply([tell.label(next(), episodeIdOf("acme", "cor_2"), "ann", "safe", 70)]);
    await write("set", { format: "parquet" });
    const files = join(dir, "set", "*.parquet");
    const sums = `count(*) AS episodes, sum(calls) AS calls, sum(denied) AS denied, sum(recoveries) AS recoveries,
      sum(input_tokens) AS input_tokens, sum(cost_micros) AS cost_micros, count(goal) AS goals,
      count(DISTINCT tenant_id) AS tenants, min(started_at) AS first, max(last_event_at) AS last`;
    const [read] = await duck(`SELECT ${sums} FROM read_parquet('${files}')`);
    const { rows } = await auditor.query(`SELECT ${sums} FROM analytics.eval_episodes`);
    const plain = (row: Record<string, unknown> | undefined) =>
      Object.entries(row ?? {}).map(([name, value]) => [
        name,
        value instanceof Date
          ? value.getTime()
          : name === "first" || name === "last"
            ? Date.parse(`${String(value)}Z`)
            : Number(value),
      ]);
    expect(plain(read)).toEqual(plain(rows[0]));
    const [labelled] = await duck(
      `SELECT label, labels->0->>'author' AS author, json_array_length(steps) AS steps, steps->0->>'decision' AS decision
        FROM read_parquet('${files}') WHERE label IS NOT NULL`,
    );
    expect(labelled).toMatchObject({ label: "safe", author: "ann", steps: "4", decision: "deny" });
    const lines = await write("lines");
    const [fromJson] = await duck(
      `SELECT count(*) AS n, sum(calls) AS calls FROM read_json('${join(dir, "lines", "*.jsonl")}')`,
    );
    expect(fromJson).toMatchObject({ n: String(lines.rows), calls: "160" });
  });

  it("holds no secret, also where the events themselves do", async () => {
    const secrets = [
      "sk-test-1",
      "Bearer x1y2z3a4b5c6d7e8",
      "--token=abc",
      "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
    ];
    const planted = `value "sk-test-1", headers {"Authorization":"Bearer x1y2z3a4b5c6d7e8"}, cmd "deploy --token=abc", ghp_0123456789abcdefghijklmnopqrstuvwxyzAB`;
    const one = {
      id: "c1",
      resource: `https://example.org/?${planted}`,
      input: planted,
      folder: `/src/${planted}`,
    };
    await apply([
      tell.session(next(), `/src/${planted}`),
      tell.prompt(next(), planted),
      tell.requested(next(), one),
      tell.decided(next(), one, "deny", planted),
      tell.label(next(), episodeIdOf("acme", "cor_1"), `ann ${planted}`, "bad"),
    ]);
    await write("lines");
    await write("set", { format: "parquet" });
    const rows = await duck(`SELECT * FROM read_parquet('${join(dir, "set", "*.parquet")}')`);
    expect(rows).toHaveLength(1);
    const texts = [JSON.stringify(rows), JSON.stringify(await readLines("lines"))];
    for (const folder of ["lines", "set"]) {
      for (const file of await readdir(join(dir, folder)))
        texts.push(await readFile(join(dir, folder, file), "latin1"));
    }
    expect(texts[0]).toContain("[masked:");
    for (const text of texts) for (const secret of secrets) expect(text).not.toContain(secret);
  });

  it("leaves no half of a dataset behind when it is stopped", async () => {
    await apply(many());
    const stop = new AbortController();
    stop.abort();
    await expect(write("stopped", { signal: stop.signal })).rejects.toThrow();
    expect(await readdir(join(dir, "stopped"))).toEqual([]);
  });
});
