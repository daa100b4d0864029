import { CLIENT_WRITES } from "./client-writes.ts";
import { toGitPaths } from "./git-words.ts";
import { toFdCommands, toFdRoots } from "./found-by-fd.ts";
import { hasName, scanAllOptions } from "./options.ts";
import type { OpaqueReason, Word, WrittenPath } from "./parsed-command.ts";
import { toGateCandidates } from "./glob-candidates.ts";
import { toHiddenReads } from "./hidden-reads.ts";
import type { PathShape } from "./path-shape.ts";
import { PATH_TABLE } from "./path-table.ts";
import { toSecretWords } from "./secret-words.ts";
import { toTwoDashes } from "./tool-paths.ts";

/** Joins and cleans a path as text: `.` and `..` vanish, links are for whoever sees the disk. */
export function resolvePath(from: string, path: string): string {
  const joined = path.startsWith("/") || /^~(\/|$)/.test(path) ? path : `${from}/${path}`;
  const root = joined.startsWith("~") ? "~" : "";
  const parts: string[] = [];
  let above = 0;
  for (const part of joined.slice(root.length).split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) above += 1;
  }
  // Above the home directory nothing is known but the way up; above the root there is only the root.
  const up = root === "~" ? "/..".repeat(above) : "";
  const tail = parts.length === 0 ? "" : `/${parts.join("/")}`;
  return `${root}${up}${tail}` === "" ? "/" : `${root}${up}${tail}`;
}

export type PathEffects = {
  writes: WrittenPath[];
  reads: string[];
  unresolvedReads: string[];
  unknownReads: string[];
  opaque: OpaqueReason[];
};

/** The directories that a command may run in: several after a `cd` that may have failed, none known after one that is not fixed. */
export type Directories = readonly string[] | undefined;

/** Where a path word may lie: one path for each possible directory, or undefined when that is not certain. */
export function toPaths(word: Word, directories: Directories): string[] | undefined {
  const text =
    word.kind === "literal"
      ? word.text
      : word.reason === "home" && word.source.startsWith("~/")
        ? word.source
        : word.source === "~"
          ? "~"
          : undefined;
  if (text === undefined || text === "") return undefined;
  if (text.startsWith("/") || (word.kind === "unresolved" && text.startsWith("~")))
    return [resolvePath("/", text)];
  return directories?.map((directory) => resolvePath(directory, text.startsWith("~") ? `./${text}` : text));
}

/** Reads the paths that a program writes and reads from its words. */
export function toPathEffects(
  program: string,
  args: readonly Word[],
  directories: Directories,
  declared?: PathShape,
): PathEffects {
  const effects: PathEffects = {
    writes: [],
    reads: [],
    unresolvedReads: [],
    unknownReads: [],
    opaque: [],
  };
  const write = (word: Word, extent: WrittenPath["extent"]): void => {
    if (word.kind === "unresolved" && /^[<>]\(/.test(word.source)) return;
    const paths = toPaths(word, directories);
    if (paths !== undefined) effects.writes.push(...paths.map((path) => ({ path, extent, by: program })));
    else {
      // A glob writes below the directory in front of it: certain, as long as no part climbs up again.
      const source = word.kind === "literal" ? word.text : word.source;
      const folder =
        word.kind === "unresolved" &&
        word.reason === "glob" &&
        !source.includes("..") &&
        !/[$`{]/.test(source)
          ? word.prefix.replace(/[^/]*$/, "")
          : undefined;
      const below =
        folder === undefined
          ? undefined
          : toPaths({ kind: "literal", text: folder === "" ? "." : folder }, directories);
      for (const path of (toGlobPaths(word, directories) ?? []).flatMap(toGateCandidates))
        effects.writes.push({ path, extent, by: program });
      if (below !== undefined && word.kind === "unresolved" && !word.prefix.startsWith("~"))
        effects.writes.push(...below.map((path): WrittenPath => ({ path, extent: "tree", by: program })));
      else effects.opaque.push({ kind: "unresolved_path", detail: source, program, isWrite: true });
    }
  };
  const read = (word: Word): void => {
    if (word.kind === "literal" && (word.text === "-" || word.text === "")) return;
    const found = toReads(word, directories);
    effects.reads.push(...found.reads);
    effects.unresolvedReads.push(...found.unresolvedReads);
    if (!PRINTS_NO_CONTENT.test(program)) effects.unknownReads.push(...found.unknownReads);
  };
  for (const word of toHiddenReads(program, args)) read(word);
  const here: Word = { kind: "literal", text: "." };
  const special = SPECIAL.get(program === "bsdtar" ? "tar" : program);
  if (special !== undefined) special(args, write, here);
  for (const word of toSecretWords(program, args)) read(word);
  if (program === "git") {
    const { files, folders, reads } = toGitPaths(args);
    files.forEach((word) => write(word, "file"));
    folders.forEach((word) => write(word, "tree"));
    reads.forEach(read);
  }
  for (const shape of [PATH_TABLE.get(program), declared])
    if (shape !== undefined) applyShape(program, args, shape, { write, read, here, directories, effects });
  return effects;
}

/** How the words of one call are taken in. */
type Sink = {
  readonly write: Write;
  readonly read: (word: Word) => void;
  readonly here: Word;
  readonly directories: Directories;
  readonly effects: PathEffects;
};

/** What a program touches by the shape of its command line. */
function applyShape(
  program: string,
  args: readonly Word[],
  shape: PathShape,
  { write, read, here, directories, effects }: Sink,
): void {
  const { options, operands } = scanAllOptions(
    args.map((word) => (word.kind === "literal" ? { ...word, text: toTwoDashes(program, word.text) } : word)),
    shape.values,
  );
  const has = (names: string | undefined): boolean => options.some(({ name }) => hasName(names, name));
  for (const { name, value } of options) {
    if (
      value !== undefined &&
      hasName(shape.outputs, name) &&
      !has(shape.unless) &&
      !(value.kind === "literal" && value.text === "-") &&
      !(shape.pipes === true && value.kind === "literal" && value.text.trimStart().startsWith("|"))
    )
      write(value, "file");
    if (value !== undefined && hasName(shape.into, name)) write(value, "tree");
    if (value !== undefined && hasName(shape.inputs, name)) read(value);
  }
  const isScriptGiven =
    has("--reference") ||
    // `chmod -x file`: the mode looks like an option.
    (program === "chmod" && args.some((word) => word.kind === "literal" && /^-[rwxXst]+$/.test(word.text))) ||
    ((program === "sed" || /awk|grep/.test(program)) && has("-e -f --expression --file"));
  const after = operands.slice(isScriptGiven ? 0 : 1);
  if (!has(shape.unless) && (shape.onlyWith === undefined || has(shape.onlyWith))) {
    if (shape.writes === "all") operands.forEach((word) => write(word, shape.extent));
    if (shape.writes === "after_first") after.forEach((word) => write(word, shape.extent));
    if (shape.writes === "last") {
      const isInto = has(shape.into);
      const target = isInto
        ? undefined
        : operands.length === 1 && program === "ln"
          ? here
          : operands.length > 1
            ? operands.at(-1)
            : undefined;
      if (target !== undefined && !isRemote(program, target)) write(target, shape.extent);
      if (program === "install" && has("-d --directory")) operands.forEach((word) => write(word, "tree"));
      const into = isInto ? options.find(({ name }) => hasName(shape.into, name))?.value : target;
      if (into !== undefined && (program !== "cp" || has("-r -R -a --recursive --archive")))
        for (const path of toFilled(into, isInto ? operands : operands.slice(0, -1), program, directories))
          effects.writes.push({ path, extent: "tree", by: program });
      if (shape.movesSources === true)
        (isInto ? operands : operands.slice(0, -1)).forEach((word) => write(word, "tree"));
      if (program === "rsync" && has("--remove-source-files"))
        operands.forEach((word) => write(word, "tree"));
    }
  }
  if (program === "install" && has("-d --directory")) operands.forEach((word) => writeParents(word, write));
  if (program === "mkdir" && has("-p --parents")) operands.forEach((word) => writeParents(word, write));
  const suffix = program === "sed" ? toBackupSuffix(args) : "";
  if (suffix !== "") after.forEach((word) => write(withSuffix(word, suffix), "file"));
  if (program === "uniq" && operands[1] !== undefined) write(operands[1], "file");
  if (shape.reads === "all") operands.forEach(read);
  if (shape.reads === "after_first") after.forEach(read);
  if (shape.reads === "but_last") operands.slice(0, -1).forEach(read);
}

/**
 * What copies lay into the current folder or one above it: by the name of each source, and `*` where a source brings
 * names of its own.
 */
function toFilled(into: Word, sources: readonly Word[], program: string, directories: Directories): string[] {
  const folders = (toPaths(into, directories) ?? []).filter((folder) =>
    directories?.some((here) => here === folder || here.startsWith(folder === "/" ? "/" : `${folder}/`)),
  );
  const names = sources.map((word) => {
    const text = word.kind === "literal" ? word.text : (word.glob ?? word.source);
    const bringsItsOwn = program === "rsync" ? /(^|\/)\.?\/?$/.test(text) : /(^|\/)\.\.?\/*$/.test(text);
    const name = bringsItsOwn ? "*" : text.replace(/\/+$/, "").replace(/^.*\//, "");
    return word.kind === "unresolved" && word.reason !== "glob" && word.reason !== "home" ? "*" : name;
  });
  return folders.flatMap((folder) =>
    names.flatMap((name) => {
      const path = `${folder === "/" ? "" : folder}/${name}`;
      return [path, ...toGateCandidates(path)];
    }),
  );
}

/** Programs that tell of a file, but not what is in it. */
const PRINTS_NO_CONTENT = /^(wc|stat|file|md5sum|sha\d+sum|ls|du|tree)$/;

/** What a word that names a file reads: paths, or words that do not say which. */
export function toReads(
  word: Word,
  directories: Directories,
): Pick<PathEffects, "reads" | "unresolvedReads" | "unknownReads"> {
  const none = { reads: [], unresolvedReads: [], unknownReads: [] };
  if (word.kind === "unresolved" && /^[<>]\(/.test(word.source)) return none;
  const paths = toPaths(word, directories) ?? toGlobPaths(word, directories);
  if (paths !== undefined) return { ...none, reads: paths };
  if (word.kind === "literal") return { ...none, unresolvedReads: [word.text] };
  if (word.choices !== undefined) {
    const each = word.choices.map((choice) => toReads(choice, directories));
    return {
      reads: each.flatMap(({ reads }) => reads),
      unresolvedReads: each.flatMap(({ unresolvedReads }) => unresolvedReads),
      unknownReads: each.flatMap(({ unknownReads }) => unknownReads),
    };
  }
  const isPlainGlob = word.reason === "glob" && toGlobPaths(word, ["/"]) !== undefined;
  const isUnknown = word.reason !== "home" && !isPlainGlob && word.isNameFixed !== true;
  return { ...none, unresolvedReads: [word.source], unknownReads: isUnknown ? [word.source] : [] };
}

/** A glob as a path with its signs in it: `/project/src/*.ts`. Which files it finds is for whoever sees the disk. */
function toGlobPaths(word: Word, directories: Directories): string[] | undefined {
  if (word.kind !== "unresolved" || word.reason !== "glob") return undefined;
  const glob = word.glob ?? word.source;
  if (/[$`'"\\({]/.test(glob)) return undefined;
  if (/^[/~]/.test(glob)) return [resolvePath("/", glob)];
  return directories?.map((directory) => resolvePath(directory, glob));
}

/** `sed -i.bak`: the letters behind `-i` name the copy that is kept. */
function toBackupSuffix(args: readonly Word[]): string {
  for (const word of args) {
    const text = word.kind === "literal" ? word.text : word.prefix;
    const match = /^(?:-[nrEsuz]*i|--in-place=)([\s\S]+)$/.exec(text);
    if (match?.[1] !== undefined) return match[1];
  }
  return "";
}

function withSuffix(word: Word, suffix: string): Word {
  if (word.kind === "literal" && !/[*/]/.test(suffix)) return { kind: "literal", text: word.text + suffix };
  return {
    kind: "unresolved",
    reason: "variable",
    source: `${word.kind === "literal" ? word.text : word.source}${suffix}`,
    prefix: "",
  };
}

const isRemote = (program: string, word: Word): boolean =>
  /^(scp|rsync)$/.test(program) && /^[^/]*:/.test(word.kind === "literal" ? word.text : word.source);

type Write = (word: Word, extent: WrittenPath["extent"]) => void;

function writeParents(word: Word, write: Write): void {
  if (word.kind !== "literal" || word.text.startsWith("/")) return;
  const parts = word.text.split("/");
  for (let length = 1; length < parts.length; length += 1) {
    const parent = parts.slice(0, length).join("/");
    if (parent !== "" && !/(^|\/)\.\.?$/.test(parent)) write({ kind: "literal", text: parent }, "file");
  }
}

const CMAKE_WRITES =
  /^(rm|remove|remove_directory|touch|copy|copy_if_different|copy_directory|rename|make_directory|create_symlink|create_hardlink)$/;

const toText = (word: Word): string => (word.kind === "literal" ? word.text : word.source);
/** Wherever the names in an archive lead. */
const fromArchive: Word = {
  kind: "unresolved",
  reason: "variable",
  source: "(names in the archive)",
  prefix: "",
};

/** `tar xfC a.tar dir` as `tar -x -f a.tar -C dir`: letters with a value take the next words in their order. */
function toNewStyle(args: readonly Word[]): readonly Word[] {
  const first = args[0]?.kind === "literal" ? args[0].text : "";
  if (!/^[A-Za-z]+$/.test(first)) return args;
  const values = args.slice(1);
  const options = [...first].flatMap((letter): Word[] => {
    const option: Word = { kind: "literal", text: `-${letter}` };
    const value = /[fCTXbgIFKLNVH]/.test(letter) ? values.shift() : undefined;
    return value === undefined ? [option] : [option, value];
  });
  return [...options, ...values];
}

/** What one name of an archive becomes below the folder that it is laid out in. */
function toMember(folder: Word | undefined, member: Word): Word {
  const start = folder === undefined ? "" : `${toText(folder)}/`;
  const text = `${start}${toText(member).replace(/^\/+/, "")}`;
  if (member.kind === "literal" && folder?.kind !== "unresolved")
    return /[*?[]/.test(member.text)
      ? { kind: "unresolved", reason: "glob", source: text, prefix: text.replace(/[*?[][\s\S]*$/, "") }
      : { kind: "literal", text };
  return member.kind === "unresolved" && folder === undefined
    ? member
    : { kind: "unresolved", reason: "variable", source: text, prefix: "" };
}

/** Commands that end, empty or change what they are given. */
const ENDS_FILES =
  /^(?:\S+ )*(?:\S*\/)?(?:rm|rmdir|unlink|shred|mv|truncate|chmod|chown|chgrp|sed -i\S*|tee)(?: |$)/;

/** Programs whose words are no plain list of options and operands. */
const SPECIAL: ReadonlyMap<string, (args: readonly Word[], write: Write, here: Word) => void> = new Map<
  string,
  (args: readonly Word[], write: Write, here: Word) => void
>([
  [
    "cmake",
    (args: readonly Word[], write: Write) => {
      const [mode, verb, ...rest] = args;
      if (mode?.kind !== "literal" || mode.text !== "-E" || verb?.kind !== "literal") return;
      if (!CMAKE_WRITES.test(verb.text)) return;
      const { operands } = scanAllOptions(rest, "");
      (/^(copy|create)/.test(verb.text) ? operands.slice(-1) : operands).forEach((word) =>
        write(word, "tree"),
      );
    },
  ],
  ...["fd", "fdfind"].map((name): [string, (args: readonly Word[], write: Write) => void] => [
    name,
    (args: readonly Word[], write: Write) => {
      // What is found below is gone afterwards, or another.
      const isEnding = toFdCommands(args).some(({ words }) => ENDS_FILES.test(words.map(toText).join(" ")));
      if (isEnding) toFdRoots(args).forEach((root) => write(root, "tree"));
    },
  ]),
  [
    "yq",
    (args: readonly Word[], write: Write, here: Word) => {
      // Each document into a file whose name an expression makes; a number alone stays in the folder.
      const { options } = scanAllOptions(args, "-s --split-exp -o -p --output-format --input-format --arg");
      for (const { name, value } of options)
        if (/^(-s|--split-exp)$/.test(name))
          write(
            value?.kind === "literal" && /^(?:"[\w-]+"\s*\+\s*)?\$index$/.test(value.text.trim())
              ? here
              : { kind: "unresolved", reason: "variable", source: "(names in the document)", prefix: "" },
            "tree",
          );
    },
  ],
  [
    "cpio",
    (args: readonly Word[], write: Write, here: Word) => {
      const { options, operands } = scanAllOptions(args, "-D -O -F -E -H -C -R --directory --file --format");
      const value = (pattern: RegExp): Word | undefined =>
        options.find(({ name }) => pattern.test(name))?.value;
      const has = (pattern: RegExp): boolean => options.some(({ name }) => pattern.test(name));
      const archive = value(/^-O$/) ?? (has(/^(-o|--create)$/) ? value(/^(-F|--file)$/) : undefined);
      if (archive !== undefined) write(archive, "file");
      if (has(/^(-i|--extract)$/) && !has(/^(-t|--list)$/)) {
        write(value(/^(-D|--directory)$/) ?? here, "tree");
        // Absolute names in the archive are taken as they are.
        if (!has(/^--no-absolute-filenames$/)) write(fromArchive, "tree");
      }
      const target = operands.at(-1);
      if (has(/^(-p|--pass-through)$/) && target !== undefined) write(target, "tree");
    },
  ],
  [
    "jar",
    (args: readonly Word[], write: Write, here: Word) => {
      const [mode, file] = args;
      const { options } = scanAllOptions(args, "-C --dir -f --file");
      if (options.some(({ name }) => name === "--extract" || name === "-x" || name === "--dir"))
        write(options.find(({ name }) => name === "--dir")?.value ?? here, "tree");
      for (const { name, value } of options)
        if (name === "-C" && value !== undefined && mode !== undefined && /x/.test(toText(mode)))
          write(value, "tree");
      if (mode?.kind !== "literal" || !/^-?[a-zA-Z0]+$/.test(mode.text)) return;
      if (mode.text.includes("x")) write(here, "tree");
      if (/[cu]/.test(mode.text) && mode.text.includes("f") && file !== undefined) write(file, "file");
    },
  ],
  [
    "ar",
    (args: readonly Word[], write: Write, here: Word) => {
      const { options, operands } = scanAllOptions(args, "--output");
      const mode = args.map(toText).find((text) => !text.startsWith("--")) ?? "";
      if (!mode.replace(/^-/, "").startsWith("x") && !options.some(({ name }) => name === "-x")) return;
      if (operands.length > 0) write(options.find(({ name }) => name === "--output")?.value ?? here, "tree");
    },
  ],
  ...["dpkg", "dpkg-deb"].map((name): [string, (args: readonly Word[], write: Write) => void] => [
    name,
    (args: readonly Word[], write: Write) => {
      const { options, operands } = scanAllOptions(args, "");
      if (options.some((one) => /^(-[xXR]|--extract|--vextract|--raw-extract)$/.test(one.name)))
        write(operands[1] ?? fromArchive, "tree");
    },
  ]),
  [
    "pax",
    (args: readonly Word[], write: Write, here: Word) => {
      const { options, operands } = scanAllOptions(args, "-f -s -o -x -b");
      const has = (letter: string): boolean => options.some(({ name }) => name === letter);
      if (!has("-r")) {
        const file = options.find(({ name }) => name === "-f")?.value;
        if (has("-w") && file !== undefined) write(file, "file");
        return;
      }
      write(has("-w") ? (operands.at(-1) ?? here) : here, "tree");
      // Names are changed on the way, or absolute.
      write(fromArchive, "tree");
    },
  ],
  [
    "protoc",
    (args: readonly Word[], write: Write) => {
      for (const { name, value } of scanAllOptions(args, "-I --proto_path").options)
        if (value?.kind === "literal" && /_out$/.test(name))
          write({ kind: "literal", text: value.text.replace(/^[^/.~]*:/, "") }, "tree");
    },
  ],
  ...CLIENT_WRITES,
  [
    "dd",
    (args: readonly Word[], write: Write) => {
      for (const word of args) {
        const text = word.kind === "literal" ? word.text : word.source;
        if (!/^"?of=/.test(text)) {
          if (word.kind === "unresolved" && word.prefix === "") write(word, "file");
          continue;
        }
        if (word.kind === "literal") write({ kind: "literal", text: word.text.slice(3) }, "file");
        else write({ ...word, source: word.source.slice(3), prefix: word.prefix.slice(3) }, "file");
      }
    },
  ],
  [
    "flock",
    (args: readonly Word[], write: Write) => {
      const { operands } = scanAllOptions(args, "-E -w -c --conflict-exit-code --timeout --wait --command");
      const [lock] = operands;
      if (lock !== undefined && !(lock.kind === "literal" && /^\d+$/.test(lock.text))) write(lock, "file");
    },
  ],
  [
    "mktemp",
    (args: readonly Word[], write: Write) => {
      const { options, operands } = scanAllOptions(args, "-p --suffix");
      const folder = options.find(({ name }) => /^(-p|--tmpdir)$/.test(name))?.value;
      const [template] = operands;
      if (template?.kind === "unresolved") write(template, "tree");
      else if (template === undefined || folder !== undefined || options.some(({ name }) => name === "-t"))
        write(folder ?? { kind: "literal", text: "/tmp" }, "tree");
      else write({ kind: "literal", text: template.text.replace(/[^/]*$/, "") || "." }, "tree");
    },
  ],
  [
    "find",
    (args: readonly Word[], write: Write, here: Word) => {
      const roots: Word[] = [];
      for (const word of args) {
        if (word.kind === "literal" && /^[-(!,)]/.test(word.text)) break;
        roots.push(word);
      }
      const isDeleting = args.some((word) => word.kind === "literal" && word.text === "-delete");
      if (isDeleting) (roots.length === 0 ? [here] : roots).forEach((word) => write(word, "tree"));
      args.forEach((word, index) => {
        const target = args[index + 1];
        if (
          word.kind === "literal" &&
          /^-(fprint|fprint0|fprintf|fls)$/.test(word.text) &&
          target !== undefined
        )
          write(target, "file");
      });
    },
  ],
  [
    "tar",
    (args: readonly Word[], write: Write, here: Word) => {
      const rest = toNewStyle(args);
      const { options, operands } = scanAllOptions(
        rest,
        "-f -C -T -X -b -I -F -g --file --directory --files-from --exclude-from --one-top-level --transform --xform",
      );
      const isBsd = options.some(
        ({ value }) => value?.kind === "literal" && /^([,/|#@]).*\1.*\1/.test(value.text),
      );
      const has = (pattern: RegExp): boolean => options.some(({ name }) => pattern.test(name));
      const file = options.find(({ name }) => /^(-f|--file)$/.test(name))?.value;
      if (has(/^(-x|--extract|--get)$/)) {
        const folder = options.filter(({ name }) => /^(-C|--directory)$/.test(name)).at(-1)?.value;
        if (!has(/^(-O|--to-stdout)$/)) {
          write(folder ?? here, "tree");
          for (const member of operands) write(toMember(folder, member), "tree");
        }
        // Names in the archive are taken as they are, or changed on the way.
        if (has(/^(-P|--absolute-names)$/)) write({ kind: "literal", text: "/" }, "tree");
        if (has(/^(--transform|--xform)$/) || options.some(({ name }) => name === "-s" && isBsd))
          write({ kind: "unresolved", reason: "variable", source: "--transform", prefix: "" }, "tree");
      }
      if (
        has(/^(-c|-r|-u|-A|--create|--append|--update|--delete)$/) &&
        file !== undefined &&
        !(file.kind === "literal" && file.text === "-")
      )
        write(file, "file");
    },
  ],
  [
    "unzip",
    (args: readonly Word[], write: Write, here: Word) => {
      const { options, operands } = scanAllOptions(args, "-d -P");
      if (options.some(({ name }) => /^-[lptvz]$/.test(name))) return;
      // `-:` takes names that climb.
      if (args.some((word) => /^-\w*:/.test(toText(word)))) write(fromArchive, "tree");
      const folder = options.find(({ name }) => name === "-d")?.value;
      write(folder ?? here, "tree");
      for (const member of operands.slice(1)) write(toMember(folder, member), "tree");
    },
  ],
  ...["7z", "7za", "7zr"].map((name): [string, (args: readonly Word[], write: Write, here: Word) => void] => [
    name,
    (args: readonly Word[], write: Write, here: Word) => {
      const { options, operands } = scanAllOptions(args, "-o -p -w");
      if (!/^[xe]$/.test(operands[0] === undefined ? "" : toText(operands[0]))) return;
      const folder = options.find(({ name }) => name === "-o")?.value;
      write(folder ?? here, "tree");
      for (const member of operands.slice(2)) write(toMember(folder, member), "tree");
    },
  ]),
  [
    "curl",
    (args: readonly Word[], write: Write, here: Word) => {
      const { options } = scanAllOptions(
        args,
        "-o -d -H -X -u -A -e -b -c -F -T -m -w -x -K --output --data --header --request --user --write-out",
      );
      if (options.some(({ name }) => /^(-O|--remote-name|--remote-name-all|-J)$/.test(name)))
        write(here, "tree");
      for (const { name, value } of options)
        if (/^(-w|--write-out)$/.test(name) && value?.kind === "literal")
          for (const [, file = ""] of value.text.matchAll(/%output\{(?:>>)?([^}]*)\}/g))
            write({ kind: "literal", text: file }, "file");
    },
  ],
  [
    "wget",
    (args: readonly Word[], write: Write, here: Word) => {
      const { options } = scanAllOptions(
        args,
        "-O -P -o -a -U -t -T -i --output-document --directory-prefix",
      );
      if (
        !options.some(({ name }) =>
          /^(-O|-P|--output-document|--directory-prefix|--spider|--version|--help)$/.test(name),
        ) &&
        args.length > 0
      )
        write(here, "tree");
    },
  ],
  [
    "git",
    (args: readonly Word[], write: Write, here: Word) => {
      const verbAt = args.findIndex((word) => word.kind === "literal" && word.text === "clone");
      if (verbAt === -1 || args.slice(0, verbAt).some((word) => word.kind !== "literal")) return;
      if (
        args
          .slice(0, verbAt)
          .some((word) => word.kind === "literal" && !word.text.startsWith("-") && !word.text.includes("="))
      )
        return;
      const { operands } = scanAllOptions(
        args.slice(verbAt + 1),
        "-b -o -c -j -u --branch --origin --depth --config --reference --template --upload-pack --filter --jobs --separate-git-dir",
      );
      const [from, to] = operands;
      if (from === undefined) return;
      const name =
        from.kind === "literal"
          ? from.text
              .replace(/\/+$/, "")
              .replace(/\.git$/, "")
              .replace(/^.*[/:]/, "")
          : "";
      write(to ?? (name === "" ? here : { kind: "literal", text: name }), "tree");
    },
  ],
]);
