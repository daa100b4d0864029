import type { Word } from "./parsed-command.ts";

export type Option = { readonly name: string; readonly value: Word | undefined };
export type Scan =
  | { readonly ok: true; readonly options: readonly Option[]; readonly rest: readonly Word[] }
  | { readonly ok: false; readonly detail: string };

const nameSets = new Map<string, ReadonlySet<string>>();
function toNames(text: string): ReadonlySet<string> {
  const known = nameSets.get(text);
  if (known !== undefined) return known;
  const made = new Set(text.split(" ").filter((name) => name !== ""));
  nameSets.set(text, made);
  return made;
}

/** True when the blank-separated list has the name. */
export function hasName(list: string | undefined, name: string): boolean {
  return list !== undefined && toNames(list).has(name);
}

/**
 * Reads the options in front of the operands, as getopt does for programs that start others. Strict: an option that is
 * in no list, or a word that is not fixed, might hide where the command begins.
 */
export function scanLeadingOptions(
  args: readonly Word[],
  known: { flags: string; values: string; takesNumbers?: boolean },
): Scan {
  const options: Option[] = [];
  let at = 0;
  for (; at < args.length; at += 1) {
    const word = args[at];
    if (word === undefined) break;
    if (word.kind === "unresolved") {
      if (known.flags.trim() === "" && known.values.trim() === "") break;
      if (word.prefix !== "" && !word.prefix.startsWith("-")) break;
      if (word.reason === "home" || word.source.startsWith("<(")) break;
      const name = /^(--[\w-]+)=/.exec(word.prefix)?.[1];
      if (name !== undefined && hasName(known.values, name)) {
        options.push({ name, value: word });
        continue;
      }
      return { ok: false, detail: word.source };
    }
    const text = word.text;
    if (text === "--") {
      at += 1;
      break;
    }
    if (!text.startsWith("-") || (text === "-" && !hasName(known.flags, "-"))) break;
    if (known.takesNumbers === true && /^-\d+$/.test(text)) continue;
    const next = args[at + 1];
    const found =
      text.startsWith("--") || text === "-" ? readLong(text, known, next) : readCluster(text, known, next);
    if (found === undefined) return { ok: false, detail: text };
    options.push(...found.options);
    at += found.taken;
  }
  return { ok: true, options, rest: args.slice(at) };
}

type Known = { flags: string; values: string };
type Found = { options: Option[]; taken: number };

function readLong(text: string, known: Known, next: Word | undefined): Found | undefined {
  const [, name = text, value] = /^(--?[\w-]*)=?([\s\S]*)$/.exec(text) ?? [];
  if (text.includes("=")) {
    if (!hasName(known.values, name) && !hasName(known.flags, name)) return undefined;
    return { options: [{ name, value: { kind: "literal", text: value ?? "" } }], taken: 0 };
  }
  if (hasName(known.flags, text)) return { options: [{ name: text, value: undefined }], taken: 0 };
  if (hasName(known.values, text)) return { options: [{ name: text, value: next }], taken: 1 };
  return undefined;
}

function readCluster(text: string, known: Known, next: Word | undefined): Found | undefined {
  // `-tt` of strace and `-pe` of node are names of their own.
  if (hasName(known.flags, text)) return { options: [{ name: text, value: undefined }], taken: 0 };
  if (hasName(known.values, text)) return { options: [{ name: text, value: next }], taken: 1 };
  const options: Option[] = [];
  for (let at = 1; at < text.length; at += 1) {
    const name = `-${text[at] ?? ""}`;
    if (hasName(known.values, name)) {
      const attached = text.slice(at + 1);
      const value: Word | undefined = attached === "" ? next : { kind: "literal", text: attached };
      options.push({ name, value });
      return { options, taken: attached === "" ? 1 : 0 };
    }
    if (!hasName(known.flags, name)) return undefined;
    options.push({ name, value: undefined });
  }
  return { options, taken: 0 };
}

/** Operands and values of named options wherever they stand; every other option counts as a flag. */
export function scanAllOptions(
  args: readonly Word[],
  values: string,
): { options: readonly Option[]; operands: readonly Word[] } {
  const options: Option[] = [];
  const operands: Word[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    if (word === undefined) break;
    const text = word.kind === "literal" ? word.text : word.prefix;
    if (text === "--" && word.kind === "literal") {
      operands.push(...args.slice(at + 1));
      break;
    }
    if (!text.startsWith("-") || text === "-") {
      operands.push(word);
      continue;
    }
    const long = /^(--[\w-]+)(?:=([\s\S]*))?$/.exec(text);
    if (long !== null) {
      const name = long[1] ?? text;
      if (long[2] !== undefined)
        options.push({ name, value: word.kind === "literal" ? { kind: "literal", text: long[2] } : word });
      else if (hasName(values, name)) {
        options.push({ name, value: args[at + 1] });
        at += 1;
      } else options.push({ name, value: undefined });
      continue;
    }
    for (let letter = 1; letter < text.length; letter += 1) {
      const name = `-${text[letter] ?? ""}`;
      if (!hasName(values, name)) {
        options.push({ name, value: undefined });
        continue;
      }
      const attached = text.slice(letter + 1);
      if (word.kind === "unresolved") options.push({ name, value: word });
      else if (attached !== "") options.push({ name, value: { kind: "literal", text: attached } });
      else {
        options.push({ name, value: args[at + 1] });
        at += 1;
      }
      break;
    }
  }
  return { options, operands };
}

const BRANCH_NAME =
  /^"\$\(git (?:branch --show-current|rev-parse --abbrev-ref HEAD|symbolic-ref --short HEAD)\)"$/;

/** Whether a word is the name of the branch that is checked out, quoted: none begins with a dash. */
export const isBranchName = (word: Word): boolean => word.kind !== "literal" && BRANCH_NAME.test(word.source);

/** Whether a word that the text does not fix may be one more option: one that takes back what the others say. */
export function mayBeOption(word: Word): boolean {
  if (word.kind === "literal" || word.reason === "home" || word.source.startsWith("<(")) return false;
  if (isBranchName(word)) return false;
  if (word.choices !== undefined && word.choices.length > 0)
    return word.choices.some((one) =>
      one.kind === "literal" ? one.text.startsWith("-") : mayBeOption({ ...one, choices: [] }),
    );
  // `*.patch` finds no name that is an option.
  if (word.reason === "glob" && /^[^$`]*\*\.\w+$/.test(word.source)) return word.prefix.startsWith("-");
  return word.prefix === "" || word.prefix.startsWith("-");
}
