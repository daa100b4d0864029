import { beforeAll, describe, expect, it } from "vitest";
import { gateRequestSchema } from "../../../schemas/gate.ts";
import type { Classified, Classify } from "../classified.ts";
import { createClassifier } from "../classifier.ts";
import { diffBundles } from "../revisions/diff-bundles.ts";
import { loadBashParser } from "../shell/load-bash-parser.ts";
import { loadSqlParser } from "../sql/load-sql-parser.ts";
import { givenBundle } from "./given-bundle.ts";
import { parsePolicy } from "./parse-policy.ts";
import type { Policy } from "./policy.ts";
import { toTrusted } from "./trusted-programs.ts";

const programs = `programs:
  - program: acme-fmt
    effect: plain
    operands: writes
    options: { --out: writes, --into: writes-below, --config: reads, --hook: runs, --plugin: script, -j: value }
  - program: acmectl
    options: { --context: value }
    subcommands:
      get: { effect: plain }
      db reset: { effect: infrastructure, signals: [infra.destroy] }
      deploy: { effect: infrastructure, signals: [deploy] }
      exec: { effect: plain, operands: command, options: { --quiet: flag } }
      sh: { effect: plain, operands: code }
  - program: ship-logs
    trusted: true
    reason: reviewed by the security team in June
  - program: make
    subcommands: { stage: { signals: [deploy] } }
  - program: gh
    subcommands: { stack: { signals: [network.send] } }
  - program: acme-run
    effect: interpreter
    operands: script
`;

let classify: Classify;
let policy: Policy;
beforeAll(async () => {
  const [bash, sql] = await Promise.all([loadBashParser(), loadSqlParser()]);
  classify = createClassifier({ bash, sql, home: "/home/u" });
  const parsed = parsePolicy(givenBundle({ "programs.yaml": programs }), "small");
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  ({ policy } = parsed);
});

const ask = (command: string, by: Policy = policy): Classified =>
  classify(
    gateRequestSchema.parse({
      runtime: "own",
      session_id: "s",
      tool: "shell.run",
      input: { command },
      working_directory: "/project",
    }),
    by,
  );

describe("a bundle's own programs", () => {
  it.each([
    ["acme-fmt src/a.ts", ""],
    ["acme-fmt --out=/etc/x src/a.ts", "path.outside-workspace.write"],
    ["acme-fmt --into ../x a", "path.outside-workspace.write"],
    ["acme-fmt --config /data/c a", "path.outside-workspace.read"],
    ["acme-fmt -j 4 ../a", "path.outside-workspace.write"],
    ["acme-fmt .env", "file.secret secret.read"],
    ["acme-fmt --hook 'git push -f' a", "git.push git.push.force"],
    ["acme-fmt --hook $X a", "command.opaque command.opaque.unresolved_code command.unbound"],
    ["acme-fmt --plugin ./p.js a", "code.workspace command.opaque command.opaque.script_file"],
    ["acmectl get x", ""],
    ["acmectl --context prod get x", ""],
    ["acmectl db reset", "infra.destroy program.infrastructure"],
    ["acmectl db list", "command.unknown-program program.unknown"],
    ["acmectl --context prod deploy", "deploy program.infrastructure"],
    ["acmectl $X", "command.unknown-program deploy infra.destroy program.unknown"],
    ["acmectl exec --quiet git push", "git.push"],
    ["acmectl exec --what git push", "command.opaque command.opaque.unknown_option command.unbound"],
    ["acmectl sh 'git push'", "git.push"],
    ["ship-logs --to nowhere", ""],
    [
      "./ship-logs",
      "code.workspace command.opaque command.opaque.local_program program.unknown task.release",
    ],
    ["make stage", "deploy program.project-code"],
    ["make test", "program.project-code"],
    ["gh stack submit", "network.send"],
    ["gh other submit", "command.unknown-verb"],
    ["acme-run x.acme", "code.workspace command.opaque command.opaque.script_file program.interpreter"],
  ])("are judged by what it says: %s", (command, expected) => {
    expect(ask(command).signals.join(" ")).toBe(expected);
  });

  it("are unknown to another bundle, whatever was parsed before", () => {
    const other = parsePolicy(givenBundle(), "small");
    if (!other.ok) throw new Error("no policy");
    expect(ask("ship-logs").signals).toEqual([]);
    expect(ask("ship-logs", other.policy).signals).toContain("command.unknown-program");
    expect(ask("ship-logs").signals).toEqual([]);
  });

  it("are part of its digest, of its differences, and of what a check shows", () => {
    const changed = programs.replace("in June", "in July");
    const other = parsePolicy(givenBundle({ "programs.yaml": changed }), "small");
    expect(other.ok && other.policy.digest).not.toBe(policy.digest);
    const differences = diffBundles(
      givenBundle({ "programs.yaml": programs }),
      givenBundle({ "programs.yaml": changed }),
    );
    expect(differences.map(({ where, what, change }) => `${change} ${what} of ${where}`)).toEqual([
      "changed ship-logs of programs of programs.yaml",
    ]);
    expect(toTrusted(policy.programs)).toEqual([
      { program: "ship-logs", line: 14, reason: "reviewed by the security team in June" },
    ]);
  });

  it.each([
    ["  - program: curl\n    effect: plain", 3, "the gate knows this program as network"],
    ["  - program: rm\n    trusted: true\n    reason: we like it a lot", 3, "a bundle cannot trust it"],
    ["  - program: rm\n    effect: plain", 3, "one with effects"],
    ["  - program: python3.12\n    effect: plain", 3, "the gate knows this program as interpreter"],
    ["  - program: npx\n    effect: plain", 3, "project-code"],
    ["  - program: claude\n    effect: plain", 3, "one with effects"],
    ["  - program: git\n    subcommands: { push: { effect: plain } }", 3, "one with effects"],
    [
      "  - program: sudo\n    subcommands: { x: { trusted: true, reason: we like it a lot } }",
      3,
      "cannot trust",
    ],
    ["  - program: x\n    trusted: true", 3, "needs a `reason`"],
    ["  - program: x\n    trusted: true\n    reason: short", 4, "say who decided it"],
    [
      "  - program: x\n    effect: plain\n    trusted: true\n    reason: long enough to read",
      4,
      "two answers",
    ],
    ["  - program: x", 2, "say its `effect`"],
    ["  - program: ./x\n    effect: plain", 2, "and no path"],
    ["  - program: x\n    effect: harmless", 3, "effect"],
    ["  - program: x\n    effect: plain\n    signals: [no.such]", 4, "no intent of a command"],
    ["  - program: x\n    effect: plain\n    options: { out: writes }", 4, "an option has the form"],
    ["  - program: x\n    effect: plain\n    optoins: {}", 4, "the key is not known"],
    ["  - program: x\n    effect: plain\n  - program: x\n    effect: plain", 4, "there twice"],
  ])("are refused with file and line: %s", (text, line, why) => {
    const parsed = parsePolicy(givenBundle({ "programs.yaml": `programs:\n${text}\n` }), "small");
    const problems = parsed.ok ? [] : parsed.problems;
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ file: "programs.yaml", line });
    expect(problems[0]?.text).toContain(why);
  });

  it("may be called more than the gate knows, and never less", () => {
    const files = givenBundle({ "programs.yaml": "programs:\n  - program: jq\n    effect: network\n" });
    const parsed = parsePolicy(files, "small");
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    expect(ask("jq . x", parsed.policy).signals).toEqual(["program.network"]);
  });
});
