import { toGateCandidates } from "./glob-candidates.ts";
import { hasName, scanAllOptions } from "./options.ts";
import type { Word } from "./parsed-command.ts";
import type { PathShape } from "./path-shape.ts";
import type { Directories, PathEffects } from "./path-words.ts";
import { toPaths } from "./path-words.ts";
import { toTwoDashes } from "./tool-paths.ts";
import type { Write } from "./writes.ts";

/** How the words of one call are taken in. */
type Sink = {
  readonly write: Write;
  readonly read: (word: Word) => void;
  readonly here: Word;
  readonly directories: Directories;
  readonly effects: PathEffects;
};

/** What a program touches by the shape of its command line. */
export function applyShape(
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

function writeParents(word: Word, write: Write): void {
  if (word.kind !== "literal" || word.text.startsWith("/")) return;
  const parts = word.text.split("/");
  for (let length = 1; length < parts.length; length += 1) {
    const parent = parts.slice(0, length).join("/");
    if (parent !== "" && !/(^|\/)\.\.?$/.test(parent)) write({ kind: "literal", text: parent }, "file");
  }
}
