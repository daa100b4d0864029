// Runs every step of `make check`, two at a time, to the end even when one fails; prints one line a step with its
// time, then what the failed steps said, and closes with `N passed, N failed`.
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";

const CACHE = "node_modules/.cache/house";
mkdirSync(CACHE, { recursive: true });

const vitest = (...args) => ["vitest", "run", "--project", "check", ...args];

/** The longest first, so that two at a time end soon. */
const steps = [
  ["lint", "typed lint rules", ["eslint", ".", "--max-warnings", "0"]],
  [
    "types",
    "product and tests compile",
    [
      "tsc",
      "-p",
      "tsconfig.json",
      "--noEmit",
      "--incremental",
      "--tsBuildInfoFile",
      `${CACHE}/types.tsbuildinfo`,
    ],
  ],
  ["unused", "no unused file, export or dependency", ["knip", "--no-progress"]],
  [
    "format",
    "prettier",
    ["prettier", "--check", "--log-level", "warn", "--cache", "--cache-location", `${CACHE}/prettier`, "."],
  ],
  ["imports", "who may import whom, and the planted faults are found", vitest("test/house/imports.test.ts")],
  ["house", "words, topics, generated files", vitest("--exclude", "test/house/imports.test.ts")],
];

const wanted = process.argv.slice(2);
const queue = steps.filter(([name]) => wanted.length === 0 || wanted.includes(name));
const failures = [];
let passed = 0;

function run([name, promise, [bin, ...args]]) {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [binOf(bin), ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined },
    });
    const said = [];
    child.stdout.on("data", (chunk) => said.push(chunk));
    child.stderr.on("data", (chunk) => said.push(chunk));
    child.on("error", (error) => said.push(Buffer.from(String(error))));
    child.on("close", (code) => {
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
      process.stdout.write(
        `${code === 0 ? "ok    " : "FAILED"}  ${name.padEnd(8)} ${seconds.padStart(5)} s  ${promise}\n`,
      );
      if (code === 0) passed += 1;
      else failures.push([name, Buffer.concat(said).toString()]);
      resolve();
    });
  });
}

function binOf(name) {
  return {
    eslint: "node_modules/eslint/bin/eslint.js",
    tsc: "node_modules/typescript/bin/tsc",
    knip: "node_modules/knip/bin/knip.js",
    prettier: "node_modules/prettier/bin/prettier.cjs",
    vitest: "node_modules/vitest/vitest.mjs",
  }[name];
}

async function worker() {
  for (let step = queue.shift(); step !== undefined; step = queue.shift()) await run(step);
}
await Promise.all([worker(), worker()]);

for (const [name, said] of failures) process.stdout.write(`\n--- ${name}\n${said.trimEnd()}\n`);
if (failures.length > 0) process.stdout.write("\n");
process.stdout.write(`${passed} passed, ${failures.length} failed\n`);
process.exitCode = failures.length === 0 && passed > 0 ? 0 : 1;
