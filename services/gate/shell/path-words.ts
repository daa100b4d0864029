import type { OpaqueReason, Word, WrittenPath } from "./parsed-command.ts";

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

/** What a command touches, as far as its words tell. */
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
export function toGlobPaths(word: Word, directories: Directories): string[] | undefined {
  if (word.kind !== "unresolved" || word.reason !== "glob") return undefined;
  const glob = word.glob ?? word.source;
  if (/[$`'"\\({]/.test(glob)) return undefined;
  if (/^[/~]/.test(glob)) return [resolvePath("/", glob)];
  return directories?.map((directory) => resolvePath(directory, glob));
}
