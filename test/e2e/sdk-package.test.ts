import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, cp, mkdir, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { projectDir } from "../harness/stack.ts";

const runFile = promisify(execFile);
const folder = join(projectDir, ".fabric", "sdk-package", String(process.pid));
const installed = join(folder, "node_modules", "policy-hook-fabric");

beforeAll(async () => {
  if (!existsSync(join(projectDir, "dist", "services", "adapters", "sdk", "sdk.js")))
    throw new Error("run `make test`: it builds dist/ first");
  await mkdir(installed, { recursive: true });
  await copyFile(join(projectDir, "package.json"), join(installed, "package.json"));
  await cp(join(projectDir, "dist"), join(installed, "dist"), { recursive: true });
  await copyFile(
    join(projectDir, "test", "fixtures", "sdk-stranger-harness.txt"),
    join(folder, "harness.ts"),
  );
  // Types of Node, and of nothing else: none of the package's own dependencies is there.
  for (const name of ["@types/node", "undici-types"]) {
    await mkdir(join(folder, "node_modules", name, ".."), { recursive: true });
    await symlink(join(projectDir, "node_modules", name), join(folder, "node_modules", name));
  }
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        target: "ES2022",
        lib: ["ES2022"],
        module: "NodeNext",
        types: ["node"],
        strict: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
        outDir: "out",
        rootDir: ".",
      },
      files: ["harness.ts"],
    }),
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const tsc = (): Promise<string> =>
  runFile(process.execPath, [join(projectDir, "node_modules/typescript/bin/tsc"), "-p", folder]).then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );

describe("a harness of somebody who has the package and none of its dependencies", () => {
  it("compiles against its types, strictly and without leaving out declarations", async () => {
    expect(await tsc()).toBe("");
  });

  it("runs, and nothing runs without the gate", async () => {
    const { stdout } = await runFile(process.execPath, [join(folder, "out", "harness.js")], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual(["hook: HOOK_DENIED", "gate: GATE_UNREACHABLE"]);
  });

  it("does not compile when it takes a hook for something that it is not", async () => {
    const source = join(folder, "harness.ts");
    const right = await readFile(source, "utf8");
    await writeFile(source, right.replace('{ deny: "not that file" }', "{ deny: true }"));
    expect(await tsc()).toContain("harness.ts");
    await writeFile(source, right);
  });

  it("sees the SDK and nothing else of the package", async () => {
    await writeFile(
      join(folder, "inside.mjs"),
      'await import("policy-hook-fabric/dist/services/gate/server.js");\n',
    );
    await expect(runFile(process.execPath, [join(folder, "inside.mjs")])).rejects.toThrow(
      /ERR_PACKAGE_PATH_NOT_EXPORTED/,
    );
    expect(await readdir(join(installed, "node_modules")).catch(() => [])).toEqual([]);
  });
});
