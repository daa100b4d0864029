import { execFile } from "node:child_process";
import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Processor } from "../../processors/kit/processor.ts";
import { eventOf } from "../../processors/kit/given.ts";
import { draft } from "../../schemas/envelope.ts";
import { processorList, toProcessorFiles } from "../../services/scaffold/processor-files.ts";
import { newUuidV7 } from "../../services/platform/ids.ts";
import { migrate } from "../../services/platform/migrate.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import { openHostRig } from "../harness/host-rig.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { projectDir } from "../harness/stack.ts";

const runFile = promisify(execFile);
const dir = join(projectDir, ".fabric", "readme", String(process.pid));
let rig: HostRig;

beforeEach(async () => {
  rig = await openHostRig();
});
afterEach(async () => {
  await rig.close();
});
afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

/** The code block that follows a file's name in the README. */
async function snippet(file: string): Promise<string> {
  const readme = await readFile(join(projectDir, "README.md"), "utf8");
  const found = new RegExp(`\`${file.replaceAll(".", "\\.")}\`:\\n\\n\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(
    readme,
  );
  if (found?.[1] === undefined) throw new Error(`README.md has no code block for ${file}`);
  return found[1];
}

/** Lays the snippets out as the README says, beside links to the real kit and schemas. */
async function layOut(source: string): Promise<string> {
  await mkdir(join(dir, "processors", "refusals"), { recursive: true });
  await mkdir(join(dir, "migrations", "refusals"), { recursive: true });
  for (const [target, name] of [
    ["processors/kit", "processors/kit"],
    ["schemas", "schemas"],
    ["node_modules", "node_modules"],
    ["deploy/migrations/roles.json", "migrations/roles.json"],
  ] as const) {
    await symlink(join(projectDir, target), join(dir, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  }
  const file = join(dir, "processors", "refusals", "refusals.ts");
  await writeFile(file, source);
  await writeFile(
    join(dir, "migrations", "refusals", "0001_refusals.sql"),
    await snippet("deploy/migrations/refusals/0001_refusals.sql"),
  );
  await writeFile(
    join(dir, "tsconfig.json"),
    JSON.stringify({
      extends: join(projectDir, "tsconfig.json"),
      include: ["processors/refusals"],
      exclude: [],
    }),
  );
  return file;
}

async function compile(): Promise<string> {
  return runFile(process.execPath, [join(projectDir, "node_modules/typescript/bin/tsc"), "-p", dir]).then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );
}

/** The files that `fabric new processor` writes, by their path in the folder of this test. */
async function layOutNew(name: string): Promise<ReadonlyMap<string, string>> {
  await layOut(await snippet("processors/refusals/refusals.ts"));
  const list = await readFile(join(projectDir, processorList), "utf8");
  const { files } = toProcessorFiles({ name, topics: ["agent.tool.denied"], taken: [], list });
  const placed = new Map<string, string>();
  for (const [path, text] of files) {
    const file = join(dir, path.replace(/^deploy\//, ""));
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, text);
    placed.set(path, file);
  }
  return placed;
}

describe("the README's consumer", () => {
  it("begins as what the command writes: it compiles, its test passes, and its table fills", async () => {
    const readme = await readFile(join(projectDir, "README.md"), "utf8");
    expect(readme).toContain("fabric new processor refusals --topic agent.tool.denied");
    const placed = await layOutNew("counted-twice");
    await writeFile(
      join(dir, "tsconfig.json"),
      JSON.stringify({
        extends: join(projectDir, "tsconfig.json"),
        include: ["processors/counted-twice"],
        exclude: [],
      }),
    );
    expect(await compile()).toBe("");
    const vitest = join(projectDir, "node_modules/vitest/vitest.mjs");
    const ran = await runFile(process.execPath, [vitest, "run", "--root", dir, "processors/counted-twice"]);
    expect(ran.stdout).toMatch(/1 passed/);
    const { countedTwice } = (await import(
      placed.get("processors/counted-twice/counted-twice.ts") ?? ""
    )) as { countedTwice: Processor };
    await migrate({
      adminUrl: rig.database.url,
      migrationsDir: join(dir, "migrations"),
      owners: ["counted-twice"],
    });
    await rig.createTopics(["agent.tool.denied"], 3);
    const host = openDatabase({
      url: rig.database.roleUrl("fabric_host"),
      applicationName: "readme-counted",
      searchPath: ["host", "counted-twice"],
    });
    const running = rig.start([countedTwice], { database: host });
    await rig.publish(Array.from({ length: 6 }, (_, index) => refusal(index)));
    const rows = await eventually(
      async () => (await host.query("SELECT tenant_id, event_type, events FROM counted_twice")).rows,
      (found) => found.some((row) => row["events"] === 6n),
    );
    expect(rows).toEqual([{ tenant_id: "acme", event_type: "agent.tool.denied", events: 6n }]);
    await running.stop();
    await host.end();
  });

  it("compiles as it stands, and a wrong topic or field does not", async () => {
    const source = await snippet("processors/refusals/refusals.ts");
    await layOut(source);
    expect(await compile()).toBe("");
    await layOut(source.replace("agent.tool.denied", "agent.tool.refused"));
    expect(await compile()).toMatch(/agent\.tool\.refused/);
    await layOut(source.replace("event.policy?.reason_code", "event.policy?.reason"));
    expect(await compile()).toMatch(/'reason' does not exist/);
  });

  it("fills its table from the topic, and counts a record that is published twice once", async () => {
    const file = await layOut(await snippet("processors/refusals/refusals.ts"));
    const { refusals } = (await import(file)) as { refusals: Processor };
    await migrate({
      adminUrl: rig.database.url,
      migrationsDir: join(dir, "migrations"),
      owners: ["refusals"],
    });
    await rig.createTopics(["agent.tool.denied"], 3);
    const host = openDatabase({
      url: rig.database.roleUrl("fabric_host"),
      applicationName: "readme-consumer",
      searchPath: ["host", "refusals"],
    });
    const running = rig.start([refusals], { database: host });
    const events = Array.from({ length: 12 }, (_, index) => refusal(index));
    await rig.publish(events);
    await rig.publish(events.slice(0, 5));
    await rig.publish([refusal(99)]);
    const rows = await eventually(
      async () => (await host.query("SELECT tool, reason, calls FROM refusals ORDER BY tool")).rows,
      (found) => found.reduce((sum, row) => sum + Number(row["calls"]), 0) >= 13,
    );
    expect(rows).toEqual([
      { tool: "file.write", reason: "STATIC_DENY", calls: 7n },
      { tool: "shell.run", reason: "STATIC_DENY", calls: 6n },
    ]);
    await running.stop();
    await host.end();
  });
});

function refusal(index: number) {
  return eventOf(
    draft(
      "agent.tool.denied",
      { decision_id: `d-${String(index)}`, effect_class: "execute", message: "no" },
      {
        subject: {
          tool: index % 2 === 0 ? "shell.run" : "file.write",
          action: null,
          resource_ref: null,
          data_class: "internal",
        },
        policy: {
          revision: "policy@test.1",
          risk: "low",
          decision: "deny",
          reason_code: "STATIC_DENY",
          matched_rules: ["r"],
        },
      },
    ),
    {
      eventId: `evt_${newUuidV7(Date.now())}`,
      tenantId: "acme",
      correlationId: `cor_${String(index)}`,
      recordedAtMs: Date.UTC(2026, 0, 2),
    },
  );
}
