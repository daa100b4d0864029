import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bench } from "./figure.ts";

/** A bundle on disk, and how many Cedar policies it holds. */
export interface BenchBundle {
  readonly dir: string;
  readonly policies: number;
  /** What its added policies deny: a program and its verb. */
  readonly denied: readonly string[];
}

/**
 * The default bundle, filled up to `wanted` Cedar policies: each added one forbids a command of its own, which a signal
 * of its own finds by what a command runs.
 */
export async function writeBundle(bench: Bench, wanted: number): Promise<BenchBundle> {
  const folder = await mkdtemp(join(tmpdir(), "fabric-bench-policy-"));
  bench.onEnd(() => rm(folder, { recursive: true, force: true }));
  const dir = join(folder, "bench");
  await cp(join(bench.projectDir, "deploy", "policy", "default"), dir, { recursive: true });
  // Its own cases are no part of what decides.
  await rm(join(dir, "cases"), { recursive: true, force: true });
  const denyFile = join(dir, "static-deny.cedar");
  const signalsFile = join(dir, "signals.yaml");
  const deny = await readFile(denyFile, "utf8");
  const permits = await readFile(join(dir, "authorization.cedar"), "utf8");
  const shipped = countPolicies(deny) + countPolicies(permits);
  const numbers = Array.from({ length: Math.max(0, wanted - shipped) }, (_, index) =>
    String(index + 1).padStart(3, "0"),
  );
  const added = numbers.map(
    (number) => `
@id("deny.bench-${number}")
@message("bench-${number} destroy is denied")
forbid (principal, action == Action::"run", resource)
when { context.signals.contains("bench.command-${number}") };
`,
  );
  const signals = numbers.map(
    (number) =>
      `  - id: bench.command-${number}\n    tools: [shell.run]\n    command: { any: ["bench-${number} destroy"] }\n`,
  );
  await writeFile(denyFile, deny + added.join(""));
  await writeFile(signalsFile, `${(await readFile(signalsFile, "utf8")).trimEnd()}\n${signals.join("")}`);
  return {
    dir,
    policies: shipped + numbers.length,
    denied: numbers.map((number) => `bench-${number} destroy`),
  };
}

function countPolicies(cedar: string): number {
  return cedar.match(/^@id\(/gm)?.length ?? 0;
}
