import { fitsDotName } from "./glob-candidates.ts";
import type { Word } from "./parsed-command.ts";

/** Longest pattern of a name that is looked at. */
const MAX_NAME = 1_024;
const MAX_FILTER = 20_000;
const toText = (word: Word): string => (word.kind === "literal" ? word.text : word.prefix);
const unknown = (source: string): Word => ({ kind: "unresolved", reason: "input", source, prefix: "" });

/** Files that programs find for themselves below a folder, and that others leave out: hidden ones, and named by a glob. */
export function toHiddenReads(program: string, args: readonly Word[]): Word[] {
  const texts = args.map(toText);
  if (/^(?:e|f|z)?grep$|^rg$|^ag$|^ack$|^ug(?:rep)?$/.test(program)) {
    const found = texts.flatMap((text, index) => {
      const [, option, attached] = /^(--include|--glob|--iglob|-g|-G)(?:=?)([\s\S]*)$/.exec(text) ?? [];
      if (option === undefined) return [];
      const value = attached !== undefined && attached !== "" ? attached : (texts[index + 1] ?? "");
      return value.startsWith("!") ? [] : [toNamed(value)];
    });
    const seesHidden =
      (program === "rg" &&
        texts.some((text) =>
          /^(?:--hidden|-[a-zA-Z]*\.[a-zA-Z]*|-[a-zA-Z]*u[a-zA-Z]*u[a-zA-Z]*)$/.test(text),
        )) ||
      (program === "rg" && texts.filter((text) => /^(?:-u|--unrestricted)$/.test(text)).length > 1) ||
      (program === "ag" &&
        texts.some((text) => /^(?:--hidden|--unrestricted|-[a-zA-Z]*u[a-zA-Z]*)$/.test(text))) ||
      (/^ug/.test(program) && texts.some((text) => /^(?:--hidden|-\.)$/.test(text)));
    return [...found.flat(), ...(seesHidden ? [unknown(`${program} --hidden`)] : [])];
  }
  if (/^(?:jq|gojq|jaq|yq)$/.test(program)) return args.flatMap((word) => toLoads(program, word));
  return [];
}

/** Files that a filter of jq or yq names by itself: `load("x")`, `import "x" as $x`. */
function toLoads(program: string, word: Word): Word[] {
  const text = word.kind === "literal" ? word.text : word.source;
  if (text.length > MAX_FILTER) return [unknown(program)];
  if (program !== "yq")
    return /(?:^|[^.\w"$])(?:import|include)\s*"/.test(text) ? [unknown(text.slice(0, MAX_NAME))] : [];
  return [...text.matchAll(/(?:^|[^.\w"$])load(?:_\w+)?\s*\(\s*(?:"([^"\\]*)"\s*\))?/g)].map(([all, file]) =>
    file === undefined || word.kind !== "literal" ? unknown(all) : { kind: "literal", text: file },
  );
}

/** A pattern of names that a search takes: one that fits a hidden secret may read it. */
export function toNamed(pattern: string): Word[] {
  const name = pattern.slice(pattern.lastIndexOf("/") + 1);
  // No file has such a name, and the signs in it take quadratic time.
  if (name.length > MAX_NAME) return [unknown(name.slice(0, MAX_NAME))];
  if (!/[*?[{]/.test(name)) return [{ kind: "literal", text: name }];
  return fitsDotName(name)
    ? [unknown(name)]
    : [{ kind: "unresolved", reason: "glob", source: name.replace(/\{[^}]*\}/g, "*"), prefix: "" }];
}

/** What `find` finds, where its tests bound the names; undefined: anything. */
export function toFoundNames(args: readonly Word[]): Word[] | undefined {
  if (args.some((word) => word.kind === "unresolved" && word.reason !== "glob")) return undefined;
  const texts = args.map((word) => (word.kind === "literal" ? word.text : word.source));
  const end = texts.findIndex((text) => /^-(?:exec|execdir|ok|okdir|print0?|delete|fprint.*)$/.test(text));
  const tests = end === -1 ? texts : texts.slice(0, end);
  const branches: string[][] = [[]];
  for (const [at, text] of tests.entries()) {
    if (/^(?:-o|-or|,)$/.test(text)) branches.push([]);
    if (/^-i?name$/.test(text) && !/^(?:!|-not)$/.test(tests[at - 1] ?? ""))
      branches.at(-1)?.push(tests[at + 1] ?? "");
  }
  if (branches.some((names) => names.length === 0)) return undefined;
  return branches.flatMap((names) => toNamed(names[0] ?? ""));
}

/** The names that a program lists, where its words bound them; undefined: anything. */
export function toListedNames(program: string, args: readonly Word[]): Word[] | undefined {
  if (program === "find") return toFoundNames(args);
  if (args.some((word) => word.kind === "unresolved" && word.reason !== "glob")) return undefined;
  const texts = args.map((word) => (word.kind === "literal" ? word.text : word.source));
  const operands = texts.filter((text) => !text.startsWith("-"));
  if (program === "ls")
    return operands.length > 0 && operands.every((text) => /\.\w+$/.test(text))
      ? args.filter((word) => !toText(word).startsWith("-"))
      : undefined;
  if (program === "git" && /^(?:ls-files|diff)$/.test(texts[0] ?? "")) {
    const globs = texts.slice(texts.indexOf("--") + 1).filter((text) => /[*?[]/.test(text));
    const others = texts.includes("--") ? texts.slice(texts.indexOf("--") + 1) : operands.slice(1);
    return globs.length > 0 && others.every((text) => globs.includes(text))
      ? globs.flatMap(toNamed)
      : undefined;
  }
  return undefined;
}

/** Whether a stage only picks among the lines that it gets. */
export function isNameFilter(words: readonly Word[]): boolean {
  const [head, ...args] = words;
  if (head?.kind !== "literal" || args.some(({ kind }) => kind !== "literal")) return false;
  const operands = args.map(toText).filter((text) => !text.startsWith("-"));
  if (/^(?:sort|uniq)$/.test(head.text)) return operands.length === 0;
  if (/^(?:head|tail)$/.test(head.text)) return operands.every((text) => /^\d+$/.test(text));
  return (
    head.text === "grep" && operands.length === 1 && !args.some((word) => /^-\w*[fer]|^--/.test(toText(word)))
  );
}
