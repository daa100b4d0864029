import { joinWords, toOpaque, toSource } from "./launch.ts";
import type { Launch } from "./launch.ts";
import { scanAllOptions, scanLeadingOptions } from "./options.ts";
import type { Risk, Word } from "./parsed-command.ts";
import type { PathShape } from "./path-shape.ts";

/** What the value of an option means; `flag` takes none, `value` one that touches nothing. */
export type OptionMeaning = "flag" | "value" | "reads" | "writes" | "writes-below" | "runs" | "script";

/** What operands are: files that are read or written, a command, a line of shell code, or a file of code. */
export type OperandMeaning = "nothing" | "reads" | "writes" | "writes-last" | "command" | "code" | "script";

/** What a bundle says of a program, or of one of its subcommands. */
export type DeclaredUse = {
  /** Null: what the gate knows of it by itself; of a program that it does not know, nothing. */
  readonly risk: Risk | null;
  /** Why people trust it as it is; null: they do not. */
  readonly trusted: string | null;
  /** Intents that it stands for, beside those that the gate finds. */
  readonly signals: readonly string[];
  readonly options: ReadonlyMap<string, OptionMeaning>;
  readonly operands: OperandMeaning;
  /** Line of the bundle's file. */
  readonly line: number;
};

export type DeclaredProgram = {
  readonly use: DeclaredUse;
  /** By words in front, one blank between them. */
  readonly subcommands: ReadonlyMap<string, DeclaredUse>;
  /** Most words of a subcommand. */
  readonly depth: number;
};

/** A bundle's own programs, by name. */
export type DeclaredPrograms = ReadonlyMap<string, DeclaredProgram>;

/** What a bundle says of one call. */
export type DeclaredCall = {
  readonly risk: Risk | null;
  readonly trusted: string | null;
  readonly signals: readonly string[];
  /** Whether it names the subcommand, and not just the program. */
  readonly isVerbNamed: boolean;
  readonly line: number;
  readonly shape: PathShape;
  readonly launches: readonly Launch[];
};

/** What a bundle says of a call; undefined: it does not know the program. */
export function findDeclared(
  programs: DeclaredPrograms | undefined,
  program: string,
  argv: readonly Word[],
): DeclaredCall | undefined {
  const declared = programs?.get(program);
  if (declared === undefined) return undefined;
  const { use, rest, isFixed, isVerbNamed } = findUse(declared, argv);
  const all = isFixed ? [use] : [use, ...declared.subcommands.values()];
  return {
    risk: isFixed ? use.risk : "unknown",
    trusted: isFixed ? use.trusted : null,
    signals: [...new Set(all.flatMap(({ signals }) => signals))],
    isVerbNamed: isFixed && isVerbNamed,
    line: use.line,
    shape: toShape(use),
    launches: toLaunches(program, use, rest),
  };
}

/** The subcommand with the most words that fit. A word that the text does not fix may be any of them. */
function findUse(
  { use, subcommands, depth }: DeclaredProgram,
  argv: readonly Word[],
): {
  readonly use: DeclaredUse;
  readonly rest: readonly Word[];
  readonly isFixed: boolean;
  readonly isVerbNamed: boolean;
} {
  if (depth === 0) return { use, rest: argv, isFixed: true, isVerbNamed: false };
  const { operands } = scanAllOptions(argv, namesOf(use, "value reads writes writes-below runs script"));
  const first = operands.slice(0, depth);
  let found = use;
  let isFixed = true;
  let last: Word | undefined;
  for (const [at, word] of first.entries()) {
    if (word.kind === "unresolved") {
      isFixed = false;
      break;
    }
    const one = subcommands.get(
      first
        .slice(0, at + 1)
        .map(toSource)
        .join(" "),
    );
    if (one !== undefined) [found, last] = [one, word];
  }
  return {
    use: found,
    rest: last === undefined ? argv : argv.slice(argv.indexOf(last) + 1),
    isFixed,
    isVerbNamed: last !== undefined,
  };
}

const namesOf = ({ options }: DeclaredUse, meanings: string): string =>
  [...options]
    .filter(([, meaning]) => ` ${meanings} `.includes(` ${meaning} `))
    .map(([name]) => name)
    .join(" ");

const shapes = new WeakMap<DeclaredUse, PathShape>();
function toShape(use: DeclaredUse): PathShape {
  const known = shapes.get(use);
  if (known !== undefined) return known;
  const { operands } = use;
  const made: PathShape = {
    values: namesOf(use, "value reads writes writes-below runs script"),
    writes: operands === "writes" ? "all" : operands === "writes-last" ? "last" : "none",
    extent: "tree",
    outputs: namesOf(use, "writes"),
    into: namesOf(use, "writes-below"),
    inputs: namesOf(use, "reads"),
    ...(operands === "reads" ? { reads: "all" } : operands === "writes-last" ? { reads: "but_last" } : {}),
  };
  shapes.set(use, made);
  return made;
}

function toLaunches(program: string, use: DeclaredUse, rest: readonly Word[]): Launch[] {
  const values = namesOf(use, "value reads writes writes-below runs script");
  const { options, operands } = scanAllOptions(rest, values);
  const launches = options.flatMap(({ name, value }): Launch[] => {
    const meaning = use.options.get(name);
    if (meaning !== "runs" && meaning !== "script") return [];
    if (value === undefined) return [toOpaque("unresolved_code", name, program)];
    return meaning === "runs"
      ? [{ kind: "code", code: value, layer: "option" }]
      : [{ kind: "file", file: value, language: program }];
  });
  const [first] = operands;
  if (use.operands === "script" && first !== undefined)
    launches.push({ kind: "file", file: first, language: program });
  if (use.operands === "command" || use.operands === "code") {
    const scan = scanLeadingOptions(rest, { flags: namesOf(use, "flag"), values });
    if (!scan.ok) launches.push(toOpaque("unknown_option", scan.detail, program));
    else if (scan.rest.length > 0 && use.operands === "command")
      launches.push({ kind: "words", words: scan.rest });
    else if (scan.rest.length > 0) launches.push({ kind: "code", code: joinWords(scan.rest), layer: "code" });
  }
  return launches;
}
