import { z } from "zod";
import { commandIntents } from "../built-in-signals.ts";
import type { DeclaredProgram, DeclaredPrograms, DeclaredUse } from "../shell/declared-programs.ts";
import { toOwnRisk } from "../shell/known-programs.ts";
import type { Risk } from "../shell/parsed-command.ts";
import type { PolicyProblem } from "./problem.ts";
import { parseYamlFile } from "./yaml-file.ts";
import type { YamlFile, YamlPath } from "./yaml-file.ts";

/** What a program is, as a bundle may say, and what classification calls it. */
const effects = {
  plain: "plain",
  "project-code": "project_code",
  interpreter: "interpreter",
  network: "network",
  packages: "packages",
  infrastructure: "infrastructure",
} as const satisfies Record<string, Risk>;
const entriesMax = 500;
const partsMax = 64;

/** Few keys, each of a form. */
function keysLike(pattern: RegExp, problem: string) {
  return (one: Readonly<Record<string, unknown>>, context: z.core.$RefinementCtx): void => {
    const keys = Object.keys(one);
    if (keys.length > partsMax)
      context.addIssue({ code: "custom", message: `at most ${String(partsMax)} are taken` });
    for (const key of keys)
      if (!pattern.test(key)) context.addIssue({ code: "custom", path: [key], message: problem });
  };
}

const useParts = {
  effect: z.enum(Object.keys(effects) as [keyof typeof effects]).optional(),
  trusted: z.literal(true, "`trusted` is true, or is left out").optional(),
  reason: z.string().min(10, "say who decided it, and why").max(300).optional(),
  signals: z
    .array(z.string().refine((name) => commandIntents.has(name), "no intent of a command has this name"))
    .max(partsMax)
    .default([]),
  operands: z
    .enum(["nothing", "reads", "writes", "writes-last", "command", "code", "script"])
    .default("nothing"),
  options: z
    .record(z.string(), z.enum(["flag", "value", "reads", "writes", "writes-below", "runs", "script"]))
    .superRefine(keysLike(/^--?[A-Za-z0-9][\w.-]*$/, "an option has the form `--out` or `-o`"))
    .default({}),
};
const useShape = z.strictObject(useParts);
const programShape = z.strictObject({
  program: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$/, "a program is a name such as `acme-lint`, and no path"),
  ...useParts,
  subcommands: z
    .record(z.string(), useShape)
    .superRefine(
      keysLike(/^\w[\w.:-]*( \w[\w.:-]*){0,3}$/, "a subcommand has the form `deploy` or `db reset`"),
    )
    .default({}),
});
const programsSchema = z.strictObject({ programs: z.array(programShape).max(entriesMax) });

type Written = z.output<typeof useShape>;

/** `programs.yaml`: a bundle's own programs, compiled. */
export function parsePrograms(
  file: string,
  text: string,
  problems: PolicyProblem[],
): DeclaredPrograms | null {
  const parsed = parseYamlFile(file, text, programsSchema, problems);
  if (parsed === null) return null;
  const names = new Set<string>();
  for (const { name, line } of parsed.declared("programs", "program")) {
    if (names.has(name)) problems.push({ file, line, text: `${name}: the program is there twice` });
    names.add(name);
  }
  const programs = new Map<string, DeclaredProgram>();
  parsed.value.programs.forEach((one, index) => {
    const path = ["programs", index];
    const own = toOwnRisk(one.program);
    const uses = Object.entries(one.subcommands);
    judgeUse(parsed, path, one.program, one, own, problems);
    if (own === null && one.effect === undefined && one.trusted === undefined && uses.length === 0)
      problems.push({
        file,
        line: parsed.lineOf([...path, "program"]),
        text: `${one.program}: say its \`effect\`, its \`subcommands\`, or \`trusted: true\` with a \`reason\``,
      });
    for (const [words, use] of uses)
      judgeUse(parsed, [...path, "subcommands", words], `${one.program} ${words}`, use, own, problems);
    const use = toUse(one, null, parsed.lineOf([...path, "program"]));
    programs.set(one.program, {
      use,
      subcommands: new Map(
        uses.map(([words, inner]) => [
          words,
          toUse(inner, use, parsed.lineOf([...path, "subcommands", words])),
        ]),
      ),
      depth: Math.max(0, ...uses.map(([words]) => words.split(" ").length)),
    });
  });
  return programs;
}

/** A subcommand takes from its program what it does not say itself. */
function toUse(one: Written, outer: DeclaredUse | null, line: number): DeclaredUse {
  const isSaid = one.effect !== undefined || one.trusted !== undefined;
  return {
    risk: isSaid ? effects[one.effect ?? "plain"] : (outer?.risk ?? null),
    trusted: one.trusted === true ? (one.reason ?? "") : isSaid ? null : (outer?.trusted ?? null),
    signals: [...(outer?.signals ?? []), ...one.signals],
    options: new Map([...(outer?.options ?? []), ...Object.entries(one.options)]),
    operands: one.operands === "nothing" ? (outer?.operands ?? "nothing") : one.operands,
    line,
  };
}

function judgeUse(
  parsed: YamlFile<unknown>,
  path: YamlPath,
  name: string,
  one: Written,
  own: Risk | null,
  problems: PolicyProblem[],
): void {
  const report = (key: string, text: string): void => {
    problems.push({ file: parsed.file, line: parsed.lineOf([...path, key]), text: `${name}: ${text}` });
  };
  if (one.trusted === true && one.reason === undefined)
    report("trusted", "`trusted` needs a `reason`: who decided it, and why");
  if (one.trusted === undefined && one.reason !== undefined)
    report("reason", "a `reason` belongs to `trusted: true`");
  if (one.trusted === true && one.effect !== undefined)
    report("trusted", "`trusted` and `effect` are two answers to one question; give one");
  if (own === null) return;
  // What the gate knows, a bundle only adds to: nobody calls `curl` plain by a line in a file.
  if (one.trusted === true)
    report(
      "trusted",
      "the gate knows this program, and a bundle cannot trust it; change the rule that asks for it",
    );
  if (one.effect !== undefined && (own !== "plain" || one.effect === "plain"))
    report(
      "effect",
      `the gate knows this program as ${own === "unknown" ? "one with effects" : own.replace("_", "-")}; leave \`effect\` out, and add \`signals\`, \`options\` or \`subcommands\``,
    );
}
