import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { evaluation } from "../../processors/eval/eval.ts";
import { episodeIdOf } from "../../processors/eval/episode-id.ts";
import { createActions } from "../../services/app/actions.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { typeCommand } from "../harness/command-line.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import type { At } from "../harness/eval-story.ts";
import { tell } from "../harness/eval-story.ts";
import { projectDir } from "../harness/stack.ts";

let database: TestDatabase;
let root: string;
const scored = join(projectDir, "test", "corpus", "eval", "scored.json");

beforeAll(async () => {
  database = await createTestDatabase();
  root = await mkdtemp(join(tmpdir(), "eval-commands-"));
  const dir = join(root, ".fabric", "local", "services");
  await mkdir(dir, { recursive: true });
  await writeFile(
    join(dir, "fabric.env"),
    [
      "FABRIC_KAFKA_BROKERS=127.0.0.1:1",
      "FABRIC_REGISTRY_URL=http://127.0.0.1:1",
      `FABRIC_DATABASE_URL_AUDITOR=${database.roleUrl("fabric_auditor")}`,
      "",
    ].join("\n"),
  );
  const host = openDatabase({
    url: database.roleUrl("fabric_host"),
    applicationName: "eval-commands",
    searchPath: ["eval"],
  });
  const at = (n: number, over: Partial<At> = {}): At => ({ n, atMs: n, ...over });
  const call = { id: "c1", resource: "db:production" };
  const other = { correlation: "cor_2", session: "s2" };
  const events = [
    tell.prompt(at(1), "drop\nthe table"),
    tell.requested(at(2), call),
    tell.decided(at(3), call, "deny"),
    tell.turn(at(4), "succeeded"),
    tell.label(at(5), episodeIdOf("acme", "cor_1"), "ann", "unsafe"),
    tell.prompt(at(6, other), "look"),
    tell.completed(at(7, other), { id: "c2" }, "failed"),
  ];
  const changes = events.flatMap((one) =>
    evaluation.project(one, { topic: one.type, partition: 0, offset: 0n }),
  );
  await host.transaction(async (tx) => {
    await evaluation.apply(tx, changes);
  });
  await host.end();
});
afterAll(async () => {
  await database.drop();
  await rm(root, { recursive: true, force: true });
});

const fabric = (...argv: readonly string[]) =>
  typeCommand(argv, createActions({ packageDir: projectDir, rootDir: root }));

describe("fabric eval", () => {
  it("lists episodes, the newest first, one a line", async () => {
    const { exit, stdout } = await fabric("eval", "list");
    expect(exit).toBe(0);
    const lines = stdout.trimEnd().split("\n").slice(2);
    expect(lines[0]).toContain("look");
    expect(lines[1]).toMatch(/completed\s+1\s+1\s+0\s+0\/1\s+unsafe\s+drop the table$/);
    expect((await fabric("eval", "list", "--state", "completed", "--json")).stdout).toContain(
      '"state": "completed"',
    );
    expect((await fabric("eval", "list", "--tenant", "nobody")).stdout).toBe("no episodes\n");
  });

  it("writes a dataset and prints what is in its manifest", async () => {
    const dir = join(root, "set");
    const { exit, stdout } = await fabric("--json", "eval", "export", "--out", dir, "--until", "2026-01-02");
    expect(exit).toBe(0);
    const manifest = JSON.parse(stdout) as { rows: number; format: string; until: string };
    expect(manifest).toMatchObject({ rows: 2, format: "parquet", until: "2026-01-02T23:59:59.999Z" });
    expect(JSON.parse(await readFile(join(dir, "manifest.json"), "utf8"))).toEqual(manifest);
    const again = await fabric("eval", "export", "--out", dir);
    expect(again).toMatchObject({ exit: 2 });
    expect(again.stderr).toContain("name an empty folder");
    for (const wrong of [
      ["--shares", "1/2"],
      ["--until", "soon"],
      ["--format", "csv"],
    ]) {
      expect((await fabric("eval", "export", "--out", join(root, "x"), ...wrong)).exit).toBe(2);
    }
  });

  it("prints each metric with its formula, of the database or of a file", async () => {
    const expected = join(root, "expected.json");
    await writeFile(expected, JSON.stringify({ [episodeIdOf("acme", "cor_1")]: ["shell.run", "file.read"] }));
    const { exit, stdout } = await fabric("eval", "metrics", "--expected", expected);
    expect(exit).toBe(0);
    expect(stdout).toMatch(/tool choice\s+0\.5000\s+1\/2/);
    expect(stdout).toMatch(/refusal recall\s+1\.0000\s+1\/1/);
    expect(stdout).toContain("recovery = recovered / stumbled");
    const ofFile = await fabric("--json", "eval", "metrics", "--file", scored);
    // By hand, in the fixture itself.
    const {
      episodes,
      why: _,
      ...known
    } = (
      JSON.parse(await readFile(scored, "utf8")) as {
        scores: { episodes: number; why: string } & Record<string, [number, number]>;
      }
    ).scores;
    const said = JSON.parse(ofFile.stdout) as Record<string, unknown> & { formulas: object };
    expect(said["episodes"]).toBe(episodes);
    expect(Object.keys(known).sort()).toEqual(Object.keys(said.formulas).sort());
    for (const [name, [numerator, denominator]] of Object.entries(known))
      expect([name, said[name]]).toMatchObject([name, { numerator, denominator }]);
    expect((await fabric("eval", "metrics", "--file", scored, "--tenant", "acme")).exit).toBe(2);
  });
});
