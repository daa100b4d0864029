import { mayRunText } from "./arithmetic.ts";
import { findDeclared } from "./declared-programs.ts";
import type { DeclaredCall } from "./declared-programs.ts";
import { toEmbedded } from "./embedded-code.ts";
import { toFullWords, toKnownName } from "./full-words.ts";
import { isKnownGit } from "./git-words.ts";
import { toLaunches, toSource } from "./launch.ts";
import { isPackageRunner } from "./package-runners.ts";
import type { Launch } from "./launch.ts";
import { MadeLinks } from "./made-links.ts";
import type { Assignment, Layer, OpaqueReason, SimpleCommand, Word, WrittenPath } from "./parsed-command.ts";
import { resolvePath, toPaths } from "./path-words.ts";
import { toPathEffects } from "./paths.ts";
import { BUILTIN_NAMES, PROGRAM_TABLE, SYSTEM_DIRECTORIES } from "./program-table.ts";
import { toSqlOf, toSqlReasons } from "./sql-clients.ts";
import { classifyVariable } from "./variable-table.ts";

import { CHANGES_DIRECTORY, union } from "./place.ts";
import type { ParseContext, Place } from "./place.ts";

const MAX_WRAPPERS = 24;
/** Folders around the one that a runner of packages starts in. */
const MAX_OUTER_PACKAGES = 6;
/** Words that the grammar should have read as syntax; where they stand for a program it has lost its way. */
const RESERVED =
  /^(\{|\}|if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|in|\[\[|\]\]|\(|\)|\(\()$/;
const CHANGES_HOME = /^(sudo|doas|su|env|runuser|pkexec|unshare|exec)$/;
const ZSH_ONLY = /(^|\s)=\w|[*?\])]\(|\$\{\(|=\(|\b(autoload|zmodload)\b/;

/** What one command does, by its words: the programs that it starts, the paths that it writes, the code that it hands on. */
export abstract class CommandRunner {
  protected readonly context: ParseContext;
  protected readonly steps: (() => void)[] = [];
  protected readonly functions = new Set<string>();
  protected readonly commands: SimpleCommand[] = [];
  protected readonly writes = new Map<string, WrittenPath>();
  protected readonly reads = new Set<string>();
  protected readonly unresolvedReads = new Set<string>();
  protected readonly unknownReads = new Set<string>();
  protected readonly operands = new Set<string>();
  protected readonly opaque = new Map<string, OpaqueReason>();
  protected readonly links = new MadeLinks();
  /** A function's or a loop's body was read with the directory of its definition. */
  protected keepsDirectories = false;

  constructor(context: ParseContext) {
    this.context = context;
  }

  protected abstract runCode(text: string, place: Place): void;

  protected report(kind: OpaqueReason["kind"], detail: string, more: Partial<OpaqueReason> = {}): void {
    const reason: OpaqueReason = { kind, detail: detail.slice(0, 2_000), ...more };
    const key = `${kind} ${reason.detail}`;
    const before = this.opaque.get(key);
    this.opaque.set(key, before === undefined ? reason : { ...reason, ...joinFiles(before, reason) });
  }

  /** What is touched through links that the text itself makes, whenever it makes them. */
  protected followLinks(): void {
    if (this.links.isEmpty) return;
    for (const { path, extent, by } of [...this.writes.values()])
      for (const real of this.links.follow(path, !/^(ln|rm|unlink)$/.test(by)))
        if (real === null) this.report("unresolved_path", path, { isWrite: true });
        else this.addWrite({ path: real, extent, by });
    for (const path of [...this.reads])
      for (const real of this.links.follow(path, true))
        if (real === null) {
          this.unresolvedReads.add(path);
          this.unknownReads.add(path);
        } else this.reads.add(real);
    for (const path of [...this.operands])
      for (const real of this.links.follow(path, true)) if (real !== null) this.operands.add(real);
  }

  /** Steps run in the order given. */
  protected then(...steps: (() => void)[]): void {
    for (let at = steps.length - 1; at >= 0; at -= 1) {
      const step = steps[at];
      if (step !== undefined) this.steps.push(step);
    }
  }

  protected toInner(place: Place, layer: Layer): Place {
    return { ...place, within: [...place.within, layer].slice(-40) };
  }

  protected toCopy(place: Place, layer: Layer): Place {
    return { ...this.toInner(place, layer), shell: { ...place.shell, lastCd: undefined } };
  }

  protected addWrite(write: WrittenPath): void {
    this.writes.set(
      `${write.extent} ${write.path}`,
      this.writes.get(`${write.extent} ${write.path}`) ?? write,
    );
  }

  protected judgeName(name: string): void {
    if (classifyVariable(name, undefined) !== "none") this.report("environment", name);
  }

  protected judgeAssignments(assignments: readonly Assignment[], place: Place): void {
    for (const { name, value } of assignments) {
      const bare = name.replace(/\[.*/s, "").replace(/\+$/, "");
      const effect = classifyVariable(bare, this.toSetting(value));
      if (effect === "search_path") this.report("search_path", `${name}=${toSource(value)}`);
      if (effect === "loader") this.report("environment", `${name}=${toSource(value)}`);
      if (effect === "output") {
        const paths = this.toOutputs(value, place);
        if (paths === undefined) this.report("environment", `${name}=${toSource(value)}`);
        else for (const path of paths) this.addWrite({ path, extent: "tree", by: bare });
      }
      if (effect === "command" && value.kind === "literal") {
        if (value.text !== "" && !/^(TAR_OPTIONS|MAKEFLAGS)$/.test(bare))
          this.runCode(value.text, { ...this.toCopy(place, "environment"), stdin: { kind: "inherited" } });
        else if (value.text !== "" && !/^-j\d*$/.test(value.text))
          this.report("environment", `${name}=${value.text}`);
      } else if (effect === "command") this.report("unresolved_code", `${name}=${toSource(value)}`);
    }
  }

  /** The files that a variable names for a program to write; undefined: the text does not tell. */
  private toOutputs(value: Word, place: Place): readonly string[] | undefined {
    const setting = value.kind === "literal" ? value.text : this.toSetting(value);
    if (setting === undefined || setting.includes(":")) return undefined;
    const isOfTop = value.kind !== "literal";
    const folders = isOfTop && this.context.cwd !== undefined ? [this.context.cwd] : place.shell.directories;
    return toPaths({ kind: "literal", text: setting }, folders);
  }

  /** A value as its variable is judged by: paths below the folder of the call stand as such. */
  private toSetting(value: Word): string | undefined {
    const top = this.context.cwd;
    if (value.kind === "literal")
      return top === undefined ? value.text : value.text.replaceAll(`${top}/`, "").replaceAll(top, ".");
    const rest = /^"?(?:\$PWD|\$\{PWD\}|\$\(pwd\))(\/[\w./-]*)?"?$/.exec(value.source);
    return rest === null ? undefined : `.${rest[1] ?? ""}`;
  }

  protected judgeArithmetic(text: string, place: Place): void {
    if (mayRunText(text, place.script.textVariables)) this.report("arithmetic_text", text);
  }

  protected record(
    program: string,
    path: string,
    argv: readonly Word[],
    assignments: readonly Assignment[],
    place: Place,
    declared?: DeclaredCall,
  ): void {
    const isNamed = !path.includes("/");
    const directories = place.shell.directories;
    const inputText = place.stdin.text ?? place.stdin.piped;
    this.commands.push({
      program,
      path,
      kind:
        isNamed && this.functions.has(path)
          ? "function"
          : isNamed && BUILTIN_NAMES.has(program)
            ? "builtin"
            : "program",
      argv,
      assignments,
      within: place.within,
      wrappers: place.wrappers,
      cwd: directories?.length === 1 ? directories[0] : undefined,
      ...(directories !== undefined && directories.length > 1 ? { folders: directories } : {}),
      where: place.where,
      input: place.stdin.kind,
      ...(inputText === undefined ? {} : { inputText }),
      risk:
        program === "git" && !isKnownGit(argv)
          ? "unknown"
          : (declared?.risk ?? PROGRAM_TABLE.get(toKnownName(program))?.risk ?? "unknown"),
      ...(declared === undefined ? {} : { declared: toDeclared(declared) }),
    });
  }

  /** One command by its words; what it starts follows as further steps. */
  protected interpret(words: readonly Word[], assignments: readonly Assignment[], place: Place): void {
    let [head, ...argv] = words;
    // `! ! rm x` and `time ! rm x` run rm; the grammar takes the second `!` for a program.
    while (head?.kind === "literal" && head.text === "!") [head, ...argv] = argv;
    if (head === undefined) return;
    const isAtHome = head.kind === "unresolved" && head.reason === "home" && head.source.startsWith("~/");
    if (head.kind === "unresolved" && !isAtHome) {
      this.report("unresolved_program", [head, ...argv].map(toSource).join(" "));
      return;
    }
    const path = toSource(head);
    const program = path.includes("/") ? resolvePath("/", path).replace(/^.*\//, "") : path;
    const known = toKnownName(program);
    argv = [...toFullWords(known, argv)];
    if (program === "" || RESERVED.test(path)) {
      this.report("grammar_mismatch", path);
      return;
    }
    // A program of the workspace is not the one that people know by that name.
    const declared = path.includes("/") ? undefined : findDeclared(this.context.programs, program, argv);
    this.record(program, path, argv, assignments, place, declared);
    if (
      (path.includes("/") && !SYSTEM_DIRECTORIES.has(resolvePath("/", path).replace(/\/[^/]*$/, ""))) ||
      (path.includes("/") && !/^[/~]/.test(path))
    ) {
      this.judgeLocalProgram(head, path, program, place);
    }
    if (place.wrappers.length >= MAX_WRAPPERS) {
      this.report("too_deep", "too many wrappers", { program });
      return;
    }
    if (!path.includes("/") && place.isShell && /^(cd|pushd|popd)$/.test(program))
      this.changeDirectory(program, argv, place);
    else if (!/^(command|builtin|time|eval)$/.test(program)) place.shell.lastCd = undefined;
    if (/^(read|printf|mapfile|readarray|getopts)$/.test(program))
      for (const word of program === "printf" ? argv.slice(0, 2) : argv)
        if (word.kind === "literal") this.judgeName(word.text.replace(/^-v/, "").replace(/\[.*/s, ""));
    const isInteger =
      /^(declare|typeset|local|readonly|export)$/.test(program) &&
      argv.some((word) => /^-\w*i/.test(toSource(word)));
    if (program === "let") for (const word of argv) this.judgeArithmetic(toSource(word), place);
    if (isInteger && place.script.textVariables.size > 0)
      this.report("arithmetic_text", argv.map(toSource).join(" "));
    if (place.where === "here") {
      this.links.note(known, argv, place.shell.directories);
      const effects = toPathEffects(known, argv, place.shell.directories, declared?.shape);
      for (const write of effects.writes) this.addWrite(write);
      for (const read of effects.reads) this.reads.add(read);
      for (const read of effects.unresolvedReads) this.unresolvedReads.add(read);
      for (const read of effects.unknownReads) this.unknownReads.add(read);
      for (const { kind, detail, ...more } of effects.opaque) this.report(kind, detail, more);
    }
    this.judgeSql(place);
    const launches = [
      ...toLaunches(program, argv),
      ...toEmbedded(program, argv),
      ...(declared?.launches ?? []),
    ];
    this.then(...launches.map((launch) => () => this.start(launch, program, place)));
  }

  /** A program outside of the system's folders is code from a file. */
  private judgeLocalProgram(head: Word, path: string, program: string, place: Place): void {
    const named = toPaths(head, place.shell.directories);
    this.links.noteClimb(head, place.shell.directories);
    const candidates = place.wrappers.at(-1) === undefined ? undefined : this.toOuterPackages(named, place);
    const files = candidates?.flat() ?? named;
    this.report("local_program", path, {
      program,
      ...toFiles(files, place),
      ...(candidates === undefined ? {} : { candidates }),
    });
    for (const file of files ?? [path]) this.operands.add(file);
  }

  /** A runner of packages finds a program in the folder that it starts in, or in one around it. Undefined: it is none. */
  private toOuterPackages(
    files: readonly string[] | undefined,
    place: Place,
  ): readonly (readonly string[])[] | undefined {
    const top = this.context.cwd === undefined ? undefined : resolvePath("/", this.context.cwd);
    if (files === undefined || top === undefined || !isPackageRunner(place.wrappers.at(-1) ?? ""))
      return undefined;
    return files.map((file) => {
      const at = file.lastIndexOf("/node_modules/");
      const found = [file];
      for (let folder = file.slice(0, at); folder.startsWith(`${top}/`);) {
        folder = folder.slice(0, folder.lastIndexOf("/"));
        found.push(`${folder}${file.slice(at)}`);
      }
      return found.slice(0, MAX_OUTER_PACKAGES);
    });
  }

  /** Clients of databases run what they are given as other interpreters do; only SQL that stands in the text is known. */
  private judgeSql(place: Place): void {
    const command = this.commands.at(-1);
    const sql = command === undefined ? null : toSqlOf(command);
    if (command === undefined || sql === null) return;
    for (const { kind, detail, ...more } of toSqlReasons(command, sql)) this.report(kind, detail, more);
    for (const file of sql.files)
      for (const path of toPaths(file, place.shell.directories) ?? [toSource(file)]) this.operands.add(path);
  }

  protected start(launch: Launch, program: string, place: Place): void {
    const where = "where" in launch && launch.where !== undefined ? launch.where : place.where;
    const isSameShell = "isSameShell" in launch && launch.isSameShell === true;
    const outside: Place = {
      ...place,
      where,
      wrappers: [...place.wrappers, program],
      isHomeKnown: place.isHomeKnown && !CHANGES_HOME.test(program),
      isShell: place.isShell && isSameShell,
      shell: isSameShell
        ? place.shell
        : { directories: where === "here" ? place.shell.directories : undefined, lastCd: undefined },
    };
    switch (launch.kind) {
      case "opaque":
        this.report(launch.reason.kind, launch.reason.detail, {
          program,
          ...(launch.reason.language === undefined ? {} : { language: launch.reason.language }),
        });
        return;
      case "words": {
        const directory = launch.directory?.to;
        const moved: Place =
          directory === undefined
            ? outside
            : {
                ...outside,
                shell: { directories: toPaths(directory, place.shell.directories), lastCd: undefined },
              };
        this.then(
          () => this.judgeAssignments(launch.assignments ?? [], outside),
          () => this.interpret(withNames(launch.words, place.stdin.names), launch.assignments ?? [], moved),
        );
        return;
      }
      case "code":
        if (launch.code.kind === "unresolved")
          this.report("unresolved_code", launch.code.source, { program });
        else
          this.startCode(launch.code.text, program, {
            ...this.toInner(outside, launch.layer),
            isShell: isSameShell ? place.isShell : true,
          });
        return;
      case "input": {
        const given = place.stdin.text;
        if (given?.kind === "literal" && launch.language === "bash")
          this.startCode(given.text, program, {
            ...this.toInner(outside, "heredoc"),
            isShell: true,
            stdin: { kind: "inherited" },
          });
        else if (given !== undefined && launch.language !== "bash")
          this.report("inline_code", toSource(given), { program, language: launch.language });
        else this.report("code_from_input", place.stdin.kind, { program, language: launch.language });
        return;
      }
      case "file":
        if (launch.file.kind === "unresolved" && launch.file.source.startsWith("<(")) {
          this.report("code_from_input", launch.file.source, { program, language: launch.language });
          return;
        }
        this.startFile(launch.file, launch.language, program, { ...place, where });
        return;
    }
  }

  private startFile(file: Word, language: string, program: string, place: Place): void {
    const files = toPaths(file, place.shell.directories);
    for (const one of files ?? [toSource(file)]) this.operands.add(one);
    this.report("script_file", toSource(file), { program, language, ...toFiles(files, place) });
  }

  protected startCode(code: string, program: string, place: Place): void {
    const dialect = /^(eval|trap|alias)$/.test(program)
      ? place.dialect
      : program === "bash" || program === "rbash"
        ? "bash"
        : /^(zsh|ksh|ksh93|mksh)$/.test(program)
          ? "zsh"
          : "posix";
    if (dialect === "zsh" && ZSH_ONLY.test(code)) this.report("foreign_shell", code);
    this.runCode(code, { ...place, dialect });
  }

  protected changeDirectory(program: string, argv: readonly Word[], place: Place): void {
    // A `cd` whose name was hidden from the search for it, after bodies were read without it.
    if (this.keepsDirectories && !CHANGES_DIRECTORY.test(place.script.source))
      this.report("unresolved_path", "a directory changed out of sight", { isWrite: true });
    const operands = argv.filter((word) => !(word.kind === "literal" && /^-[LPe@]+$|^--$/.test(word.text)));
    const [target] = operands;
    const home: Word = { kind: "unresolved", reason: "home", source: "~", prefix: "" };
    const word =
      target ??
      (this.context.home === undefined ? home : ({ kind: "literal", text: this.context.home } as const));
    const isKnown =
      program !== "popd" &&
      operands.length <= 1 &&
      !this.functions.has(program) &&
      !(program === "pushd" && target === undefined) &&
      !(word.kind === "literal" && /^([-+]\d*|)$/.test(word.text)) &&
      !/CDPATH|HOME=/.test(place.script.source);
    const to = isKnown ? toPaths(word, place.shell.directories) : undefined;
    place.shell.directories = to === undefined ? undefined : union(place.shell.directories, to);
    place.shell.lastCd = to;
  }
}

/** Words in which names from the input take a place, with what the text says of those names. */
const toDeclared = ({
  signals,
  trusted,
  isVerbNamed,
  line,
}: DeclaredCall): NonNullable<SimpleCommand["declared"]> => ({
  signals,
  trusted,
  isVerbNamed,
  line,
});

/** The files of both; none as soon as one of them names none. */
function joinFiles(one: OpaqueReason, other: OpaqueReason): Pick<OpaqueReason, "files" | "candidates"> {
  const starts = [...(one.candidates ?? []), ...(other.candidates ?? [])];
  const candidates = starts.length === 0 ? {} : { candidates: starts };
  if (one.files === undefined || other.files === undefined) return { files: [], ...candidates };
  return { files: [...new Set([...one.files, ...other.files])], ...candidates };
}

/** Only files of this machine are those that the gate can look at. */
const toFiles = (
  files: readonly string[] | undefined,
  { where, within }: Place,
): Pick<OpaqueReason, "files"> =>
  files === undefined || where !== "here" || within.some((layer) => HIDES_CODE.test(layer)) ? {} : { files };
/** A program that stands in another's option, a variable or an alias is not what the line seems to run. */
const HIDES_CODE = /^(?:option|environment|alias)$/;

function withNames(words: readonly Word[], names: readonly Word[] | undefined): readonly Word[] {
  if (names === undefined) return words;
  return words.map((word) =>
    word.kind === "unresolved" &&
    word.reason === "input" &&
    word.choices === undefined &&
    (word.source === "(input)" || word.source === "{}")
      ? { ...word, choices: names }
      : word,
  );
}
