import { hasName, scanLeadingOptions } from "./options.ts";
import type { Assignment, Layer, OpaqueReason, Where, Word } from "./parsed-command.ts";
import {
  FOREIGN_SHELL_NAMES,
  INTERPRETERS,
  PROGRAM_TABLE,
  SHELL_NAMES,
  UNPARSED_LAUNCHERS,
} from "./program-table.ts";
import type { InterpreterShape, LaunchShape } from "./program-table.ts";

/** What a program starts, besides itself. */
export type Launch =
  | {
      readonly kind: "words";
      readonly words: readonly Word[];
      readonly assignments?: readonly Assignment[];
      readonly where?: Where;
      readonly isSameShell?: boolean;
      /** The directory changes in a way that is known, or not (`undefined` inside). */
      readonly directory?: { readonly to: Word };
    }
  | {
      readonly kind: "code";
      readonly code: Word;
      readonly layer: Layer;
      readonly where?: Where;
      readonly isSameShell?: boolean;
    }
  /** Code comes from standard input. */
  | { readonly kind: "input"; readonly language: string }
  | { readonly kind: "file"; readonly file: Word; readonly language: string }
  | { readonly kind: "opaque"; readonly reason: OpaqueReason };

export const toOpaque = (kind: OpaqueReason["kind"], detail: string, program: string): Launch => ({
  kind: "opaque",
  reason: { kind, detail, program },
});
export const toSource = (word: Word): string => (word.kind === "literal" ? word.text : word.source);

/** What a wrapper, a shell or an interpreter runs when it is called with these words. */
export function toLaunches(program: string, args: readonly Word[]): readonly Launch[] {
  const shape = PROGRAM_TABLE.get(program)?.launch;
  if (shape !== undefined) return toWrapped(program, shape, args);
  if (SHELL_NAMES.has(program)) return toShell(program, args);
  // `C:\\Windows\\cmd.exe` is one word to bash; Windows knows no case.
  if (FOREIGN_SHELL_NAMES.has(program.replace(/^.*\\/, "").toLowerCase()))
    return [toOpaque("foreign_shell", args.map(toSource).join(" "), program)];
  if (UNPARSED_LAUNCHERS.has(program))
    return [toOpaque("unparsed_launcher", args.map(toSource).join(" "), program)];
  const interpreter = INTERPRETERS.get(program) ?? INTERPRETERS.get(program.replace(/[\d.]+$/, ""));
  if (interpreter !== undefined) return toInterpreted(program, interpreter, args);
  return [];
}

function toWrapped(program: string, shape: LaunchShape, args: readonly Word[]): readonly Launch[] {
  const code = shape.code ?? "";
  const optional = shape.appendsInput === true ? splitReplaceOption(args) : args;
  const scan = scanLeadingOptions(optional, {
    flags: `${shape.flags} ${shape.queries ?? ""}`,
    values: `${shape.values} ${code} ${program === "env" ? "-S --split-string" : ""}`,
    takesNumbers: shape.takesNumbers ?? false,
  });
  if (!scan.ok) return [toOpaque("unknown_option", scan.detail, program)];
  const options = scan.options;
  if (options.some(({ name }) => hasName(shape.queries, name))) return [];
  const launches: Launch[] = [];
  if (program === "ssh")
    for (const { name, value } of options)
      if (name === "-o" && value !== undefined && !/^(?!\w*command)[\w]+[= ]/i.test(toSource(value)))
        launches.push(toOpaque("inline_code", toSource(value), program));
      else if (name === "-F" && value !== undefined)
        launches.push({ kind: "file", file: value, language: "ssh_config" });
  const where = shape.where === undefined ? {} : { where: shape.where };
  let rest = scan.rest;
  const splits = options.filter(({ name }) => name === "-S" || name === "--split-string");
  if (program === "env" && splits.length > 0) {
    const value = splits[0]?.value;
    if (splits.length > 1 || value?.kind !== "literal" || !/^[\w\s./=:@%+,-]*$/.test(value.text))
      return [toOpaque("unresolved_code", value === undefined ? "-S" : toSource(value), program)];
    const words = value.text.split(/\s+/).filter((text) => text !== "");
    return toWrapped(program, shape, [...words.map((text): Word => ({ kind: "literal", text })), ...rest]);
  }
  const assignments: Assignment[] = [];
  const takeAssignments = (): void => {
    while (shape.takesAssignments === true && rest[0] !== undefined) {
      const head = rest[0];
      const text = head.kind === "literal" ? head.text : head.prefix;
      const match = /^([^=\s]+)=([\s\S]*)$/.exec(text);
      if (match?.[1] === undefined) break;
      const value: Word = head.kind === "literal" ? { kind: "literal", text: match[2] ?? "" } : head;
      assignments.push({ name: match[1], value });
      rest = rest.slice(1);
    }
  };
  takeAssignments();
  const codes = options.filter(({ name }) => hasName(code, name));
  for (const option of codes)
    launches.push({
      kind: "code",
      code: option.value ?? { kind: "unresolved", reason: "syntax", source: option.name, prefix: "" },
      layer: "code",
      ...where,
    });
  if (shape.takes === "code") {
    if (codes.length === 0 && shape.alone === "shell") launches.push({ kind: "input", language: "bash" });
    // `su user -c code` takes its options after the operand as well.
    const late = rest.findIndex((word) => hasName(code, toSource(word)));
    if (late >= 0 && codes.length === 0)
      return [
        {
          kind: "code",
          code: rest[late + 1] ?? { kind: "unresolved", reason: "syntax", source: "-c", prefix: "" },
          layer: "code",
          ...where,
        },
      ];
    if (codes.length > 0 || rest.length <= 1) return launches;
    return [...launches, toOpaque("unresolved_code", rest.map(toSource).join(" "), program)];
  }
  if (codes.length > 0) return launches;
  const skipped = rest.slice(0, shape.positionals ?? 0);
  if (
    skipped.some(
      (word) =>
        word.kind === "unresolved" &&
        /^(variable|glob|brace|substitution)$/.test(word.reason) &&
        !word.source.startsWith('"'),
    )
  )
    return [...launches, toOpaque("unresolved_program", skipped.map(toSource).join(" "), program)];
  rest = rest.slice(shape.positionals ?? 0);
  if (shape.positionals !== undefined && rest[0]?.kind === "literal") {
    // GNU programs end their options at the first operand, but `flock file -c code` and `ssh host -t cmd` do not.
    if (program === "flock" && hasName(code, rest[0].text) && rest[1] !== undefined)
      return [{ kind: "code", code: rest[1], layer: "code" }];
    if (rest[0].text.startsWith("-") && (program === "ssh" || program === "flock"))
      return [...launches, toOpaque("unknown_option", rest[0].text, program)];
  }
  takeAssignments();
  if (rest.length === 0 && shape.appendsInput === true) rest = [{ kind: "literal", text: "echo" }];
  if (rest.length === 0) {
    if (
      shape.alone === "shell" ||
      (program === "sudo" && options.some(({ name }) => /^(-s|-i|--shell|--login)$/.test(name)))
    )
      launches.push({ kind: "input", language: "bash" });
    if (program === "ssh" && scan.rest.length > 0) launches.push({ kind: "input", language: "remote" });
    return launches;
  }
  const isSameShell = shape.isSameShell ?? false;
  if (shape.takes === "joined")
    return [
      ...launches,
      {
        kind: "code",
        code: joinWords(rest),
        layer: program === "eval" ? "eval" : "code",
        isSameShell,
        ...where,
      },
    ];
  const directory = options.filter(({ name }) => hasName(shape.directory, name)).at(-1)?.value;
  return [
    ...launches,
    {
      kind: "words",
      words: shape.appendsInput === true ? withInput(rest, options) : rest,
      assignments,
      isSameShell,
      ...where,
      ...(directory === undefined ? {} : { directory: { to: directory } }),
    },
  ];
}

/** `-i`, `-l`, `-e` of xargs take a value only when it is attached; they are rewritten to forms with one meaning. */
function splitReplaceOption(args: readonly Word[]): Word[] {
  let isLeading = true;
  return args.flatMap((word): Word[] => {
    if (!isLeading || word.kind !== "literal" || !word.text.startsWith("-") || word.text === "--") {
      isLeading = false;
      return [word];
    }
    const match = /^(?:-i|--replace=?)(.*)$/.exec(word.text);
    if (match !== null) {
      const mark = match[1] === undefined || match[1] === "" ? "{}" : match[1];
      return [
        { kind: "literal", text: "-I" },
        { kind: "literal", text: mark },
      ];
    }
    if (/^(-l\d*|-e.*|--eof.*|--max-lines.*)$/.test(word.text)) return [];
    return [word];
  });
}

const FROM_INPUT: Word = { kind: "unresolved", reason: "input", source: "(input)", prefix: "" };

function withInput(
  words: readonly Word[],
  options: readonly { name: string; value: Word | undefined }[],
): Word[] {
  const mark = options.filter(({ name }) => name === "-I" || name === "-J").at(-1)?.value;
  if (mark === undefined) return [...words, FROM_INPUT];
  const text = toSource(mark);
  return words.map((word) => replaceMark(word, text));
}

/** A word in which the input, or a found path, takes the place of a mark. */
export function replaceMark(word: Word, mark: string): Word {
  const at = mark === "" ? 0 : toSource(word).indexOf(mark);
  if (at === -1) return word;
  return {
    kind: "unresolved",
    reason: "input",
    source: toSource(word),
    prefix: word.kind === "literal" ? word.text.slice(0, at) : word.prefix.slice(0, at),
  };
}

/** Words joined by blanks, as `eval` and `ssh` do; one word that is not fixed makes all of it so. */
export function joinWords(words: readonly Word[]): Word {
  const source = words.map(toSource).join(" ");
  return words.every((word) => word.kind === "literal")
    ? { kind: "literal", text: source }
    : { kind: "unresolved", reason: "variable", source, prefix: "" };
}

const SHELL_OPTIONS = {
  flags:
    "-a -b -c -e -f -h -i -k -l -m -n -p -r -s -t -u -v -x -B -C -D -E -H -P -T --login --noprofile --norc --posix --restricted --verbose --noediting +e +x +u +m +B +H",
  values: "-o -O +o +O --rcfile --init-file",
};

function toShell(program: string, args: readonly Word[]): readonly Launch[] {
  if (args.length === 1 && /^(--version|--help)$/.test(toSource(args[0] ?? FROM_INPUT))) return [];
  const scan = scanLeadingOptions(args, SHELL_OPTIONS);
  if (!scan.ok) return [toOpaque("unknown_option", scan.detail, program)];
  const launches: Launch[] = [];
  for (const { name, value } of scan.options)
    if (/^--(rcfile|init-file)$/.test(name) && value !== undefined)
      launches.push({ kind: "file", file: value, language: "bash" });
  let rest = scan.rest;
  while (rest[0]?.kind === "literal" && rest[0].text.startsWith("+")) rest = rest.slice(1);
  const first = rest[0];
  const has = (name: string): boolean => scan.options.some((option) => option.name === name);
  // An interactive shell reads its start files and keeps a history.
  if (has("-i")) launches.push(toOpaque("code_from_input", "interactive", program));
  if (has("-c"))
    return [
      ...launches,
      first === undefined
        ? toOpaque("unresolved_code", "-c", program)
        : { kind: "code", code: first, layer: "code" },
    ];
  if (
    has("-s") ||
    first === undefined ||
    (first.kind === "literal" && /^(-|\/dev\/stdin|\/dev\/fd\/\d+|\/proc\/self\/fd\/\d+)$/.test(first.text))
  )
    return [...launches, { kind: "input", language: "bash" }];
  return [...launches, { kind: "file", file: first, language: "bash" }];
}

function toInterpreted(program: string, shape: InterpreterShape, args: readonly Word[]): readonly Launch[] {
  const launches: Launch[] = [];
  const isTestRun = shape.language === "javascript" && args.some((word) => toSource(word) === "--test");
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    if (word === undefined) break;
    if (word.kind === "unresolved") {
      if (isTestRun && isGlobBelow(word)) continue;
      return [...launches, { kind: "file", file: word, language: shape.language }];
    }
    const text = word.text;
    if (text === "-" || text === "/dev/stdin")
      return [...launches, { kind: "input", language: shape.language }];
    if (!text.startsWith("-")) {
      launches.push({ kind: "file", file: word, language: shape.language });
      if (isTestRun) continue;
      return launches;
    }
    if (shape.tasks?.test(text) === true) return launches;
    if (hasName(shape.queries, text)) return launches;
    if (args.length === 1 && hasName(shape.tellsAlone, text)) return launches;
    if (shape.module !== undefined && text.startsWith(shape.module)) return launches;
    const name = /^--[\w-]+/.exec(text)?.[0] ?? text;
    const attached = text.startsWith("--") ? /=([\s\S]*)$/.exec(text)?.[1] : undefined;
    if (hasName(shape.code, name) || isCodeCluster(shape, text)) {
      const inCluster = /^-c(.+)$/s.exec(text)?.[1];
      const code = attached ?? (shape.language === "python" ? inCluster : undefined);
      return [
        ...launches,
        {
          kind: "opaque",
          reason: {
            kind: "inline_code",
            detail: code ?? toSource(args[at + 1] ?? FROM_INPUT),
            program,
            language: shape.language,
          },
        },
      ];
    }
    const load = (shape.loads ?? "")
      .split(" ")
      .find(
        (option) => option !== "" && (option.startsWith("--") ? name === option : text.startsWith(option)),
      );
    if (load !== undefined) {
      const isApart = text === load && attached === undefined;
      const loaded = isApart
        ? args[at + 1]
        : ({ kind: "literal", text: attached ?? text.slice(load.length) } as const);
      const launch = toLoaded(program, shape, text, loaded);
      if (launch !== undefined) launches.push(launch);
      if (isApart) at += 1;
    } else if (hasName(shape.values, text)) at += 1;
  }
  return isTestRun ? launches : [...launches, { kind: "input", language: shape.language }];
}

/** `test/*.test.js`: files that a run without names would find as well. */
const isGlobBelow = (word: Word): boolean =>
  word.kind === "unresolved" &&
  word.reason === "glob" &&
  /^[\w*?][^$`]*$/.test(word.source) &&
  !word.source.includes("..");

/** What an option loads before the script: a file by its path, or something that only the interpreter finds. */
function toLoaded(
  program: string,
  shape: InterpreterShape,
  option: string,
  loaded: Word | undefined,
): Launch | undefined {
  if (loaded?.kind === "literal" && /^(?:\.{0,2}\/)[^:]*$/.test(loaded.text))
    return { kind: "file", file: loaded, language: shape.language };
  if (loaded?.kind === "literal" && MODULES.get(shape.language)?.test(loaded.text) === true) return undefined;
  return toOpaque("inline_code", `${option} ${toSource(loaded ?? FROM_INPUT)}`, program);
}
/** Names of installed modules: what the script itself could ask for. */
const MODULES: ReadonlyMap<string, RegExp> = new Map([
  ["javascript", /^(?:@[\w-]+\/)?[A-Za-z][\w.-]*(?:\/[\w.-]+)*$/],
  ["ruby", /^[A-Za-z][\w-]*(?:\/[\w-]+)*$/],
]);

/** `perl -ne`, `perl -pi -e`, `python -Bc`, `ruby -rjson -ne`: the letter of the code option ends a cluster. */
function isCodeCluster(shape: InterpreterShape, text: string): boolean {
  if (text.startsWith("--")) return false;
  const letters = shape.code
    .split(" ")
    .filter((option) => /^-\w$/.test(option))
    .map((option) => option[1]);
  if (shape.language === "python") return /^-[bBdEhiIOqsSuvxP]*c/.test(text);
  return letters.some((letter) => letter !== undefined && new RegExp(`^-[A-Za-z0-9.]*${letter}`).test(text));
}
