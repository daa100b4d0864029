import { toGitPaths } from "./git-words.ts";
import { toGateCandidates } from "./glob-candidates.ts";
import { toHiddenReads } from "./hidden-reads.ts";
import type { Word, WrittenPath } from "./parsed-command.ts";
import type { PathShape } from "./path-shape.ts";
import { PATH_TABLE } from "./path-table.ts";
import type { Directories, PathEffects } from "./path-words.ts";
import { toGlobPaths, toPaths, toReads } from "./path-words.ts";
import { PROGRAM_WRITES } from "./program-writes.ts";
import { toSecretWords } from "./secret-words.ts";
import { applyShape } from "./shape-paths.ts";

/** Programs that tell of a file, but not what is in it. */
const PRINTS_NO_CONTENT = /^(wc|stat|file|md5sum|sha\d+sum|ls|du|tree)$/;

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
  const special = PROGRAM_WRITES.get(program === "bsdtar" ? "tar" : program);
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
