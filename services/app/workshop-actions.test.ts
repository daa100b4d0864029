import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Common } from "../cli/actions.ts";
import { processorList } from "../scaffold/processor-files.ts";
import { workshopActions } from "./workshop-actions.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "fabric-workshop-"));
  for (const folder of ["processors/kit", "deploy/migrations/audit", "services/app"])
    await mkdir(join(dir, folder), { recursive: true });
  const list =
    'import { audit } from "x";\n// first\nimport { b } from "y";\nexport const processors: readonly Processor[] = [audit, b];\n';
  await writeFile(join(dir, processorList), list);
});
afterEach(() => rm(dir, { recursive: true }));

const make = (name: string, topics: readonly string[] = ["agent.tool.denied"], packageDir = dir) =>
  workshopActions({ packageDir, rootDir: packageDir }, () =>
    Promise.reject(new Error("no configuration is needed")),
  ).newProcessor({} as Common, { name, topics });

it("writes a consumer into the folder of the project and lists it", async () => {
  const report = await make("refusals", ["agent.tool.denied", "agent.tool.deferred"]);
  expect(report.exit ?? 0).toBe(0);
  expect(await readFile(join(dir, "processors/refusals/refusals.ts"), "utf8")).toContain(
    'topics: ["agent.tool.denied", "agent.tool.deferred"]',
  );
  expect(await readFile(join(dir, "deploy/migrations/refusals/0001_refusals.sql"), "utf8")).toContain(
    "CREATE TABLE refusals",
  );
  expect(await readFile(join(dir, processorList), "utf8")).toContain("= [audit, b, refusals];");
});

it("refuses what is there already, and changes nothing then", async () => {
  await make("refusals");
  const before = await readFile(join(dir, processorList), "utf8");
  await expect(make("refusals")).rejects.toThrow(/is taken/);
  await expect(make("audit")).rejects.toThrow(/is taken/);
  await expect(make("other", ["agent.tool.refused"])).rejects.toThrow(/near it are/);
  expect(await readFile(join(dir, processorList), "utf8")).toBe(before);
});

it("says so in an installed package, which has no list to change", async () => {
  await rm(join(dir, processorList));
  await expect(make("refusals")).rejects.toThrow(/clone of the project/);
});
