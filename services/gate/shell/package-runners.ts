import { toKnownName } from "./full-words.ts";
import { toOpaque, toSource } from "./launch.ts";
import type { Launch } from "./launch.ts";
import { hasName, scanLeadingOptions } from "./options.ts";
import type { Word } from "./parsed-command.ts";
import { PROGRAM_TABLE } from "./program-table.ts";

/** Runners that take a program of the installed packages first, and fetch it where there is none. */
const FETCHING: ReadonlyMap<string, string> = new Map([
  ["npx", ""],
  ["bunx", ""],
  ["npm", "exec x"],
  ["bun", "x"],
]);

/** Flags after which the same program runs, and nothing more is fetched than without them. */
const FETCHING_FLAGS = "--no --no-install --offline --prefer-offline -q --quiet --silent -s --bun";

/** True for a program that runs those of `node_modules/.bin`, wherever around its folder they are. */
export const isPackageRunner = (program: string): boolean =>
  FETCHING.has(program) || INSTALLED_OR_SYSTEM.test(program);

/** Runners that start a command in the project's own environment. Verb, flags, and options with a value. */
type Environment = { readonly verb: string; readonly flags: string; readonly values: string };
const ENVIRONMENTS: ReadonlyMap<string, Environment> = new Map<string, Environment>([
  ["pnpm", { verb: "exec", flags: "-r --recursive --parallel --silent", values: "" }],
  ["yarn", { verb: "exec", flags: "--silent", values: "" }],
  [
    "uv",
    {
      verb: "run",
      flags:
        "--frozen --locked --offline --no-sync --exact --all-extras --no-dev --quiet -q --verbose -v --isolated --no-project",
      values: "--extra --group --package",
    },
  ],
  ["poetry", { verb: "run", flags: "-q --quiet -n --no-interaction", values: "" }],
  ["pipenv", { verb: "run", flags: "", values: "" }],
  ["pdm", { verb: "run", flags: "-s", values: "" }],
  ["hatch", { verb: "run", flags: "", values: "" }],
  ["bundle", { verb: "exec", flags: "--keep-file-descriptors", values: "" }],
  ["conda", { verb: "run", flags: "--no-capture-output --live-stream", values: "-n --name -p --prefix" }],
  ["mamba", { verb: "run", flags: "--no-capture-output --live-stream", values: "-n --name -p --prefix" }],
]);

/** Runs what is installed, or what the system has by that name. */
const INSTALLED_OR_SYSTEM = /^(?:pnpm|yarn)$/;
const NAME = /^[A-Za-z0-9][\w.-]*$/;
const SCOPED = /^@[a-z0-9][\w.-]*\/[a-z0-9][\w.-]*$/i;

/** What `npx tsc`, `uv run pytest` and `bundle exec rspec` start; undefined: it is no such call. */
export function toRunByPackages(program: string, args: readonly Word[]): readonly Launch[] | undefined {
  const fetchingVerbs = FETCHING.get(program);
  if (fetchingVerbs !== undefined) {
    const rest = fetchingVerbs === "" ? args : afterVerb(args, fetchingVerbs);
    return rest === undefined ? undefined : [toInstalled(program, args, rest)];
  }
  const environment = ENVIRONMENTS.get(program);
  const rest = environment === undefined ? undefined : afterVerb(args, environment.verb);
  if (environment === undefined || rest === undefined) return undefined;
  const scan = scanLeadingOptions(rest, environment);
  const [head] = scan.ok ? scan.rest : [];
  if (!scan.ok || head === undefined || /:\/\/|^-$/.test(toSource(head))) return [opaque(program, args)];
  // `uv run x.py` runs the file by itself.
  if (program === "uv" && head?.kind === "literal" && /^[^:]*\.pyw?$/.test(head.text))
    return [{ kind: "file", file: head, language: "python" }];
  if (INSTALLED_OR_SYSTEM.test(program) && head?.kind === "literal" && NAME.test(head.text))
    return [
      {
        kind: "words",
        words: PROGRAM_TABLE.has(toKnownName(head.text))
          ? scan.rest
          : [{ kind: "literal", text: `node_modules/.bin/${head.text}` }, ...scan.rest.slice(1)],
      },
    ];
  return [{ kind: "words", words: scan.rest }];
}

/** The words behind a verb that stands first. */
function afterVerb(args: readonly Word[], verbs: string): readonly Word[] | undefined {
  const [first, ...rest] = args;
  return first?.kind === "literal" && hasName(verbs, first.text) ? rest : undefined;
}

const opaque = (program: string, args: readonly Word[]): Launch =>
  toOpaque("unparsed_launcher", args.map(toSource).join(" "), program);

/** The program as the file that it is when it is installed: one that is not there cannot be bound, and is fetched. */
function toInstalled(program: string, args: readonly Word[], rest: readonly Word[]): Launch {
  const scan = scanLeadingOptions(rest, { flags: FETCHING_FLAGS, values: "" });
  const [head, ...words] = scan.ok ? scan.rest : [];
  if (head?.kind !== "literal") return opaque(program, args);
  const file = NAME.test(head.text)
    ? `node_modules/.bin/${head.text}`
    : SCOPED.test(head.text)
      ? `node_modules/${head.text}/package.json`
      : undefined;
  if (file === undefined) return opaque(program, args);
  return { kind: "words", words: [{ kind: "literal", text: file }, ...words] };
}
