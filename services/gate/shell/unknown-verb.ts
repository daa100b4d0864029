import { toKnownName } from "./full-words.ts";
import { hasName } from "./options.ts";
import { ORDINARY_VERBS } from "./ordinary-verbs.ts";
import type { OrdinaryVerbs } from "./ordinary-verbs.ts";
import type { SimpleCommand, Word } from "./parsed-command.ts";

/** Most words that lead to a verb. */
const LONGEST = 4;

/** The verbs below some words, taken apart once. */
type Branch = {
  readonly exact: ReadonlySet<string>;
  readonly beginnings: readonly string[];
  readonly isAlone: boolean;
};
type Program = OrdinaryVerbs & {
  readonly branches: ReadonlyMap<string, Branch>;
  /** Words after which a further one is the verb. */
  readonly leading: ReadonlySet<string>;
};

const PROGRAMS: ReadonlyMap<string, Program> = new Map(
  Object.entries(ORDINARY_VERBS).map(([name, table]): [string, Program] => {
    const branches = new Map(
      Object.entries(table.verbs).map(([words, verbs]): [string, Branch] => {
        const all = verbs.split(" ").filter((verb) => verb !== "");
        return [
          words,
          {
            exact: new Set(all.filter((verb) => !verb.endsWith("*") && verb !== ".")),
            beginnings: all.filter((verb) => verb.endsWith("*")).map((verb) => verb.slice(0, -1)),
            isAlone: all.includes("."),
          },
        ];
      }),
    );
    return [name, { ...table, branches, leading: new Set(branches.keys()) }];
  }),
);

/** Whether a program whose verbs are known is called with another one, or with one that the text does not fix. */
export function hasUnknownVerb(command: SimpleCommand): boolean {
  if (command.kind !== "program") return false;
  const called = toCalled(command);
  const program = PROGRAMS.get(called.program);
  // A bundle that names the verb has looked at it.
  if (program === undefined || command.declared?.isVerbNamed === true) return false;
  return isUnknown(program, called.argv);
}

/** `python -m pip list` as `pip list`. */
function toCalled({ program, argv }: SimpleCommand): {
  readonly program: string;
  readonly argv: readonly Word[];
} {
  const name = toKnownName(program);
  const [option, module] = argv;
  return name.startsWith("python") &&
    option?.kind === "literal" &&
    option.text === "-m" &&
    module?.kind === "literal"
    ? { program: module.text, argv: argv.slice(2) }
    : { program: name, argv };
}

function isUnknown(program: Program, argv: readonly Word[]): boolean {
  const before: string[] = [];
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at];
    if (word === undefined) break;
    const text = word.kind === "literal" ? word.text : word.prefix;
    if (text.startsWith("-") && text !== "-") {
      if (text !== "--" && hasName(program.values, text)) at += 1;
      continue;
    }
    // `cargo +nightly build`: which one runs, not what it does.
    if (before.length === 0 && text.startsWith("+")) continue;
    // What stands in its place may be empty, and then the next word is the verb.
    if (word.kind === "unresolved") return true;
    const found = judge(program, before, text);
    if (found !== "leads") return found === "other" || hasOption(program, [...before, text].join(" "), argv);
    before.push(text);
    if (before.length > LONGEST) return true;
  }
  if (before.length === 0) return hasOption(program, "", argv);
  const branch = toBranch(program, before);
  return branch !== undefined && (!branch.isAlone || hasOption(program, before.join(" "), argv));
}

function judge(program: Program, before: readonly string[], text: string): "ordinary" | "leads" | "other" {
  const { groups, leading, tasksBut } = program;
  if (hasName(groups, text)) return "leads";
  const branch = toBranch(program, before);
  if (
    branch !== undefined &&
    (branch.exact.has(text) || branch.beginnings.some((one) => text.startsWith(one)))
  )
    return "ordinary";
  const words = [...before, text].join(" ");
  if (leading.has(words)) return "leads";
  if (before.length === 0 && leading.has("*") && groups === undefined) return "leads";
  if (before.length === 1 && leading.has("* *")) return "leads";
  return tasksBut !== undefined && before.length === 0 && !hasName(tasksBut, text) ? "ordinary" : "other";
}

function toBranch({ branches, groups }: Program, before: readonly string[]): Branch | undefined {
  if (groups !== undefined) return branches.get("*");
  return (
    branches.get(before.join(" ")) ??
    (before.length > 0 ? branches.get(before.map(() => "*").join(" ")) : undefined)
  );
}

/** Whether a word is one of the options that make a verb another one, alone or in a cluster of letters. */
function hasOption({ unless }: Program, words: string, argv: readonly Word[]): boolean {
  const options = unless?.[words];
  if (options === undefined) return false;
  return argv.some((word) => {
    if (word.kind === "unresolved") return word.prefix === "" && !word.source.startsWith('"');
    const [name = ""] = word.text.split("=", 1);
    return (
      hasName(options, name) ||
      (/^-[A-Za-z]{2,}$/.test(name) && [...name.slice(1)].some((letter) => hasName(options, `-${letter}`)))
    );
  });
}
