// Runs vitest projects (arguments) and then looks for processes that the tests left behind: each is a failure, and is
// ended. Every process of a run carries FABRIC_RUN_MARK in its environment, however far it detached itself.
// Writes a JSON report of vitest to .fabric/reports/ and closes with `N passed, N failed`.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { leftBehind, endAll } from "./processes.mjs";

const REPORT = ".fabric/reports/tests.json";
const GRACE_MS = 3_000;

const projects = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const options = process.argv.slice(2).filter((argument) => argument.startsWith("-"));
const mark = process.env.FABRIC_RUN_MARK ?? `run-${process.pid}-${Date.now()}`;

mkdirSync(".fabric/reports", { recursive: true });
rmSync(REPORT, { force: true });

const child = spawn(
  process.execPath,
  [
    "node_modules/vitest/vitest.mjs",
    "run",
    ...projects.flatMap((project) => ["--project", project]),
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${REPORT}`,
    ...options,
  ],
  { stdio: "inherit", env: { ...process.env, FABRIC_RUN_MARK: mark } },
);
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// Ctrl-C reaches vitest by itself; a second one from here would make it skip its teardown.
process.on("SIGINT", () => undefined);

const exitCode = await new Promise((resolve) => {
  child.on("error", () => resolve(1));
  child.on("close", (code) => resolve(code ?? 1));
});

let { passed, failed, skipped } = countsOf(REPORT);
// vitest failed without a failed test: a file that does not load, a server that does not start, an unhandled error.
if (exitCode !== 0 && failed === 0) failed += 1;
// A run that tested nothing proves nothing.
if (passed + failed === 0) failed += 1;

const deadlineMs = Date.now() + GRACE_MS;
let left = leftBehind(mark);
while (left.length > 0 && Date.now() < deadlineMs) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  left = leftBehind(mark);
}
if (left.length > 0) {
  failed += 1;
  process.stdout.write("\nprocesses that the tests left behind (ended now):\n");
  for (const { pid, command } of left) process.stdout.write(`  ${pid}  ${command}\n`);
  await endAll(mark);
}

process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`);
process.exitCode = failed > 0 ? 1 : 0;

/** Counts of a vitest JSON report; a file that failed before its first test counts as one failure. */
function countsOf(path) {
  let report;
  try {
    report = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { passed: 0, failed: 0, skipped: 0 };
  }
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const { status, assertionResults } of report.testResults) {
    const failures = assertionResults.filter((test) => test.status === "failed").length;
    counts.failed += status === "failed" && failures === 0 ? 1 : failures;
    counts.passed += assertionResults.filter((test) => test.status === "passed").length;
    counts.skipped += assertionResults.filter((test) => !["passed", "failed"].includes(test.status)).length;
  }
  return counts;
}
