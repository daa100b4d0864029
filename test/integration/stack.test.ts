import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import pg from "pg";
import ts from "typescript";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { probeKafka, probeTcp } from "../../services/stack/probes.ts";
import { downStack, stackStatus, upStack } from "../../services/stack/stack.ts";
import type { StackHandle, UpOptions } from "../../services/stack/stack.ts";
import { eventually } from "../harness/eventually.ts";
import { projectDir } from "../harness/stack.ts";

const name = `own-${String(process.pid)}`;
const stackDir = join(projectDir, ".fabric", name);
const programDir = join(projectDir, ".fabric", `${name}-program`);
const place = { rootDir: projectDir, name };
const options: UpOptions = { ...place, detach: true, way: "local" };

/** Processes whose arguments, or working folder, are in that folder: what a stack may leave behind. */
const processesIn = async (folder: string): Promise<string[]> => {
  const found: string[] = [];
  for (const pid of (await readdir("/proc")).filter((entry) => /^\d+$/.test(entry))) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (Number(pid) !== process.pid && command.includes(`${folder}/`))
      found.push(command.replaceAll("\0", " "));
  }
  return found;
};

const query = async (handle: { postgresUrl: string }, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: handle.postgresUrl });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
};

const subjects = async (handle: { registryUrl: string }): Promise<unknown> =>
  (await fetch(`${handle.registryUrl}/subjects`)).json();

const register = async (handle: { registryUrl: string }, subject: string): Promise<unknown> => {
  const answer = await fetch(`${handle.registryUrl}/subjects/${subject}/versions`, {
    method: "POST",
    headers: { "content-type": "application/vnd.schemaregistry.v1+json" },
    body: JSON.stringify({ schema: JSON.stringify({ type: "string" }) }),
  });
  return answer.json();
};

const kafkaPort = (handle: StackHandle): number => Number(handle.kafkaBrokers[0]?.split(":")[1]);

/** The room as a program of its own, to be killed: Node 20 runs no TypeScript. */
const compileProgram = async (): Promise<void> => {
  const sources = (await readdir(join(projectDir, "services/stack"))).filter(
    (file) => !file.endsWith(".test.ts"),
  );
  for (const source of [...sources.map((file) => `services/stack/${file}`), "schemas/faults.ts"]) {
    const text = await readFile(join(projectDir, source), "utf8");
    const { outputText } = ts.transpileModule(text, {
      fileName: source,
      compilerOptions: {
        module: ts.ModuleKind.ESNext,
        target: ts.ScriptTarget.ES2023,
        rewriteRelativeImportExtensions: true,
      },
    });
    const target = join(programDir, source.replace(/\.ts$/, ".js"));
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, outputText);
  }
};

/** Another process that brings the same stack up, and prints the pids. */
const upElsewhere = (): ChildProcess => {
  const stack = JSON.stringify(join(programDir, "services/stack/stack.js"));
  const script = `import { upStack } from ${stack};
    const stack = await upStack({ ...${JSON.stringify(options)}, log: (line) => console.error(line) });
    console.log(JSON.stringify(stack.pids));`;
  return spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "pipe"],
  });
};

const outputOf = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let output = "";
    let errors = "";
    child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    child.on("close", (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`exit code ${String(code)}: ${errors}`));
    });
  });

beforeAll(compileProgram);
afterAll(async () => {
  await downStack({ ...place, wipe: true });
  await rm(programDir, { recursive: true, force: true });
});

describe("a local stack", () => {
  let stack: StackHandle;

  it("is started once when two processes ask at the same moment", async () => {
    const [first, second] = await Promise.all([outputOf(upElsewhere()), outputOf(upElsewhere())]);
    expect(JSON.parse(first)).toEqual(JSON.parse(second));
  });

  it("is found running by the next one, and not started again", async () => {
    const startedAtMs = Date.now();
    stack = await upStack(options);
    expect(Date.now() - startedAtMs).toBeLessThan(30_000);
    expect(Object.keys(stack.pids).sort()).toEqual(["kafka", "postgres", "registry"]);
    expect(stack.way).toBe("local");
  });

  it("serves a broker, a registry and a database, each by its own protocol", async () => {
    expect(await probeKafka("127.0.0.1", kafkaPort(stack))).toBe(true);
    expect(await subjects(stack)).toEqual([]);
    expect(
      await query(stack, "SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user"),
    ).toEqual([{ current_user: "fabric", rolsuper: true }]);
    const { parts } = await stackStatus(place);
    expect(parts.map(({ healthy }) => healthy)).toEqual([true, true, true]);
  });

  it("asks for the password", async () => {
    const address = new URL(stack.postgresUrl);
    address.password = "guessed";
    await expect(query({ postgresUrl: address.href }, "SELECT 1")).rejects.toThrow(
      /password authentication failed/,
    );
  });

  it("keeps a subject and its id over the registry's restart", async () => {
    const registered = await register(stack, "kept-value");
    await stack.restart("registry");
    expect(await subjects(stack)).toEqual(["kept-value"]);
    expect(await register(stack, "kept-value")).toEqual(registered);
  });

  it.each(["kafka", "postgres", "registry"] as const)(
    "recovers, data and ports kept, when %s was killed",
    async (part) => {
      await query(stack, "CREATE TABLE IF NOT EXISTS kept (line text)");
      await query(stack, `INSERT INTO kept VALUES ('${part}')`);
      const before = { ...stack.pids };
      await stack.kill(part);
      const after = await upStack(options);
      expect(after.pids[part]).not.toBe(before[part]);
      expect(after.kafkaBrokers).toEqual(stack.kafkaBrokers);
      expect(after.postgresUrl).toBe(stack.postgresUrl);
      expect(await query(after, `SELECT line FROM kept WHERE line = '${part}'`)).toEqual([{ line: part }]);
      expect(await subjects(after)).toEqual(["kept-value"]);
      stack = after;
    },
  );

  it("starts one server again when only that is asked for", async () => {
    await stack.kill("kafka");
    expect(await probeTcp("127.0.0.1", kafkaPort(stack))).toBe(false);
    await stack.start("kafka");
    expect(await probeKafka("127.0.0.1", kafkaPort(stack))).toBe(true);
  });

  it("has a registry that finds the database again after its restart, by itself", async () => {
    const { registry } = stack.pids;
    await stack.restart("postgres");
    await eventually(
      () => subjects(stack),
      (found) => Array.isArray(found) && found.includes("kept-value"),
      { what: "the registry's answer", deadlineMs: 30_000 },
    );
    expect(stack.pids.registry).toBe(registry);
  });

  it("replaces a server that hangs", async () => {
    const { kafka } = stack.pids;
    await stack.kill("kafka", "SIGSTOP");
    const again = await upStack(options);
    expect(again.pids.kafka).not.toBe(kafka);
    stack = again;
  });

  it("is not restarted with other settings while others use it, and is when nobody does", async () => {
    const user = await upStack({ ...options, detach: false });
    const wished: UpOptions = { ...options, postgres: { max_connections: 60 } };
    expect((await upStack(wished)).pids).toEqual(user.pids);
    await user.stop();
    const alone = await upStack(wished);
    expect(alone.pids.kafka).toBe(user.pids.kafka);
    expect(await query(alone, "SHOW max_connections")).toEqual([{ max_connections: "60" }]);
  });

  it("leaves no process when it is taken down, and can be taken down twice", async () => {
    await downStack(place);
    expect(await processesIn(stackDir)).toEqual([]);
    await downStack(place);
    expect((await stackStatus(place)).parts.every(({ healthy }) => !healthy)).toBe(true);
  });

  it("recovers when its starter was killed halfway, stale files of a dead database included", async () => {
    const starter = upElsewhere();
    await eventually(
      () => processesIn(stackDir),
      (found) =>
        found.some((command) => command.includes("kafka.Kafka")) &&
        found.some((command) => command.includes("/data")),
      { what: "broker and database on their way", deadlineMs: 30_000 },
    );
    starter.kill("SIGKILL");
    stack = await upStack(options);
    expect(await subjects(stack)).toEqual(["kept-value"]);
    const servers = (await processesIn(stackDir)).filter((command) => command.includes("kafka.Kafka"));
    expect(servers).toHaveLength(1);

    await stack.kill("postgres");
    // The pid of a living stranger in the file of a dead server: PostgreSQL alone would refuse to start.
    const pidFile = join(stackDir, "postgres", "data", "postmaster.pid");
    const lines = (await readFile(pidFile, "utf8")).split("\n");
    await writeFile(pidFile, [String(process.pid), ...lines.slice(1)].join("\n"));
    stack = await upStack(options);
    expect(await query(stack, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  it("is taken down by its processes' own records when its file is damaged", async () => {
    await writeFile(join(stackDir, "stack.json"), "{");
    await downStack(place);
    expect(await processesIn(stackDir)).toEqual([]);
    stack = await upStack(options);
    expect(await subjects(stack)).toEqual(["kept-value"]);
  });

  it("forgets everything when it is wiped", async () => {
    await downStack({ ...place, wipe: true });
    expect(await processesIn(stackDir)).toEqual([]);
    expect(await readdir(join(projectDir, ".fabric"))).not.toContain(basename(stackDir));
  });

  it("ends with its last user, when nobody asked for it to stay", async () => {
    const first = await upStack({ ...options, detach: false });
    const second = await upStack({ ...options, detach: false });
    await first.stop();
    await first.stop();
    expect(await query(second, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await second.stop();
    expect(await processesIn(stackDir)).toEqual([]);
  });
});

describe("a stack in a folder that only its owner can enter", () => {
  let rootDir: string;
  let closedPlace: { rootDir: string; name: string };
  afterEach(async () => {
    await downStack({ ...closedPlace, wipe: true });
    await rm(rootDir, { recursive: true, force: true });
  });

  it("still has a database, the npm package's here, and leaves nothing of it", async () => {
    rootDir = await mkdtemp(join(tmpdir(), "fabric-closed-"));
    await chmod(rootDir, 0o700);
    closedPlace = { rootDir, name: "closed" };
    await mkdir(join(rootDir, ".fabric"));
    await symlink(join(projectDir, ".fabric", "downloads"), join(rootDir, ".fabric", "downloads"));
    const stack = await upStack({ ...closedPlace, detach: false, way: "local", postgresFrom: "npm" });
    expect(await query(stack, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    const [row] = (await query(stack, "SHOW data_directory")) as { data_directory: string }[];
    const home = dirname(row?.data_directory ?? "");
    await downStack({ ...closedPlace, wipe: true });
    expect(await processesIn(home)).toEqual([]);
    await expect(readdir(home)).rejects.toMatchObject({ code: "ENOENT" });
  });
});
