import { expandBraces } from "./brace-expansion.ts";
import type { Sign } from "./brace-expansion.ts";
import { toNamed } from "./hidden-reads.ts";
import type { UnresolvedReason, Word } from "./parsed-command.ts";
import { endsWord, hidesExpansion, toAnsiText, toDoubleQuoted, toUnquotedPieces } from "./quoting.ts";
import type { SyntaxNode } from "./syntax-tree.ts";

/** What a word is read against: its script, the variables whose value is certain, and where to report a missed expansion. */
export type WordScope = {
  readonly source: string;
  readonly constants: ReadonlyMap<string, string>;
  /** Undefined: not known, and written `~`. Null: not the one that `~` means elsewhere. */
  readonly home: string | undefined | null;
  /** Value of `$IFS` is the default one, so that splitting is known. */
  readonly splitsOnBlanks: boolean;
  readonly onMismatch: (detail: string) => void;
  /** What variables can be that are no constants; null: nobody knows. Absent: anything may be anything. */
  readonly bounded?: ReadonlyMap<string, readonly string[] | null> | undefined;
  /** What the variables of `while read` loops can be. */
  readonly read?: ReadonlyMap<string, readonly string[]> | undefined;
  /** `sh` may leave braces as they stand. */
  readonly keepsBraces?: boolean;
};

type Part =
  | { readonly kind: "text"; readonly text: string; readonly isQuoted: boolean }
  | { readonly kind: "split"; readonly text: string }
  | { readonly kind: "home" }
  | {
      readonly kind: "unresolved";
      readonly reason: UnresolvedReason;
      readonly choices?: readonly string[];
      readonly isQuoted?: boolean;
      /** It brings a folder from outside of the text, and no more. */
      readonly isFolder?: boolean;
    };
type Unresolved = Word & { readonly kind: "unresolved" };

/** The words that one run of adjacent nodes becomes: none for an empty variable, several for one that is split. */
export function toWords(nodes: readonly SyntaxNode[], scope: WordScope): Word[] {
  const parts = nodes.flatMap((node, index) => toParts(node, scope, false, nodes[index + 1]));
  const first = nodes[0];
  const last = nodes.at(-1);
  if (first === undefined || last === undefined) return [];
  const source = scope.source.slice(first.start, last.end);
  const only = parts.length === 1 ? parts[0] : undefined;
  if (only?.kind === "split" && scope.splitsOnBlanks && !/[*?[\\]/.test(only.text))
    return only.text
      .split(/[ \t\n]+/)
      .filter((text) => text !== "")
      .map((text) => ({ kind: "literal", text }));
  if (scope.keepsBraces === true || nodes.some(({ type }) => type === "variable_assignment"))
    return [toWord(parts, source, scope)];
  const words = expandBraces(parts.flatMap(toSigns));
  if (words === undefined || words.length === 1) return [toWord(parts, source, scope)];
  return words
    .filter((signs) => signs.length > 0)
    .map((signs) => toWord(toJoined(signs), source, scope, source));
}

const toSigns = (part: Part): Sign<Part>[] =>
  part.kind === "text" && part.text !== "" && !part.isQuoted && /[{},]/.test(part.text)
    ? [...part.text].map((text) => ({ text, isQuoted: false }))
    : [{ part }];

function toJoined(signs: readonly Sign<Part>[]): Part[] {
  const parts: Part[] = [];
  for (const sign of signs) {
    const last = parts.at(-1);
    if (sign.text === undefined) parts.push(sign.part);
    else if (last?.kind === "text" && last.isQuoted === sign.isQuoted)
      parts.splice(-1, 1, { ...last, text: last.text + sign.text });
    else parts.push({ kind: "text", text: sign.text, isQuoted: sign.isQuoted });
  }
  return parts;
}

/** The one word that an assignment's value, a redirection's target or a quoted node becomes: never split. */
export function toSingleWord(node: SyntaxNode, scope: WordScope): Word {
  const parts = toParts(node, scope, false, undefined).map((part): Part =>
    part.kind === "split" ? { kind: "text", text: part.text, isQuoted: true } : part,
  );
  return toWord(parts, scope.source.slice(node.start, node.end), scope);
}

function toWord(parts: readonly Part[], source: string, scope: WordScope, braces?: string): Word {
  const word = toBareWord(parts, source, scope);
  if (word.kind === "literal" || word.reason === "home") return word;
  const glob = word.reason === "glob" ? toGlob(parts, word, scope, braces !== undefined) : {};
  return { ...word, ...glob, ...toChoices(parts, source, scope), ...toFixedName(parts) };
}

/** The pattern, when the source is no good as one: a quoted sign counts as any. */
function toGlob(
  parts: readonly Part[],
  word: Unresolved,
  scope: WordScope,
  isExpanded: boolean,
): Pick<Unresolved, "glob"> {
  if (!isExpanded && !/['"\\$]/.test(word.source)) return {};
  let text = "";
  for (const [index, part] of parts.entries()) {
    if (part.kind === "unresolved") return {};
    if (part.kind === "home") {
      if (index > 0 || scope.home === null) return {};
      text = scope.home ?? "~";
    } else text += part.kind === "text" && part.isQuoted ? part.text.replace(/[*?[\]]/g, "?") : part.text;
  }
  return { glob: text };
}

const MAX_CHOICES = 64;

function toChoices(parts: readonly Part[], source: string, scope: WordScope): Pick<Unresolved, "choices"> {
  let made: Part[][] = [[]];
  let isOpen = false;
  for (const part of parts) {
    if (part.kind !== "unresolved") {
      made = made.map((before) => [...before, part]);
      continue;
    }
    isOpen = true;
    const choices = part.choices;
    if (choices === undefined || choices.length * made.length > MAX_CHOICES) return {};
    if (part.isQuoted !== true && (!scope.splitsOnBlanks || choices.some((text) => /\s/.test(text))))
      return {};
    made = made.flatMap((before) =>
      choices.map((text): Part[] => [
        ...before,
        // The value of a loop may be a glob itself, and quotes around its use do not change what it was.
        ...(/^~(\/|$)/.test(text)
          ? [{ kind: "home" } as const, { kind: "text", text: text.slice(1), isQuoted: false } as const]
          : [{ kind: "text", text, isQuoted: false } as const]),
      ]),
    );
  }
  if (!isOpen) return {};
  return {
    choices: made.map((choice) => {
      const word = toBareWord(choice, source, scope);
      return word.kind === "literal" || word.reason !== "glob"
        ? word
        : { ...word, ...toGlob(choice, word, scope, true) };
    }),
  };
}

/** Names that are secrets in one folder and ordinary in another. */
const FOLDER_SECRETS =
  /^(config|credentials|environ|token|hosts\.yml|config\.json|auth\.json|known_hosts|db)$/i;

function toFixedName(parts: readonly Part[]): Pick<Unresolved, "isNameFixed"> {
  const last = parts.findLastIndex(({ kind }) => kind === "unresolved");
  if (parts.some((part) => part.kind === "unresolved" && part.isFolder !== true)) return {};
  const tail = parts.slice(last + 1);
  if (tail.some(({ kind }) => kind !== "text")) return {};
  const text = tail.map((part) => (part.kind === "text" ? part.text : "")).join("");
  const name = /^\/(?:[^*?[\]{}()]*\/)?([^/*?[\]{}()]+)$/.exec(text)?.[1];
  return last === -1 || name === undefined || FOLDER_SECRETS.test(name) || /^\.\.?$/.test(name)
    ? {}
    : { isNameFixed: true };
}

function toBareWord(parts: readonly Part[], source: string, scope: WordScope): Word {
  let text = "";
  // The word with every quoted character hidden: what globs, braces and the tilde are looked for in.
  let mask = "";
  let reason: UnresolvedReason | undefined;
  let prefix: string | undefined;
  let startsAtHome = false;
  for (const part of parts) {
    if (part.kind === "text" || part.kind === "split") {
      text += part.text;
      mask += part.kind === "text" && !part.isQuoted ? part.text : "\0".repeat(part.text.length);
      if (part.kind === "split" && (!scope.splitsOnBlanks || /[\s*?[\\]/.test(part.text)))
        reason ??= "variable";
    } else if (part.kind === "home" && text === "" && !startsAtHome) {
      startsAtHome = true;
    } else {
      reason ??= part.kind === "home" ? "variable" : part.reason;
      prefix ??= text;
    }
  }
  if (/[*?[]|[+@!]\(/.test(mask)) {
    reason ??= "glob";
    prefix ??= text.slice(0, mask.search(/[*?[]|[+@!]\(/));
  }
  if (/\{[^{}]*(,|\.\.)/.test(mask)) {
    reason ??= "brace";
    prefix ??= text.slice(0, mask.indexOf("{"));
  }
  if (/^~/.test(mask)) {
    if (/^~(\/|$)/.test(mask)) {
      startsAtHome = true;
      text = text.slice(1);
      if (prefix !== undefined) prefix = prefix.slice(1);
    } else {
      reason ??= "home";
      prefix ??= "";
    }
  }
  if (startsAtHome && scope.home === null) reason ??= "variable";
  if (startsAtHome && typeof scope.home === "string" && reason === undefined)
    return { kind: "literal", text: scope.home + text };
  if (startsAtHome && reason === undefined)
    return { kind: "unresolved", reason: "home", source: `~${text}`, prefix: "" };
  if (reason === undefined) return { kind: "literal", text };
  const home = startsAtHome ? (scope.home ?? "~") : "";
  return {
    kind: "unresolved",
    reason,
    source: startsAtHome ? source.replace(/^"?(\$\{?HOME\}?|~)/, "~").replace(/"$/, "") : source,
    prefix: home + (prefix ?? ""),
  };
}

function toParts(
  node: SyntaxNode,
  scope: WordScope,
  isQuoted: boolean,
  next: SyntaxNode | undefined,
): Part[] {
  const text = scope.source.slice(node.start, node.end);
  switch (node.type) {
    case "raw_string":
      return [{ kind: "text", text: text.slice(1, -1), isQuoted: true }];
    case "ansi_c_string": {
      const decoded = toAnsiText(text.slice(2, -1));
      return decoded === undefined
        ? [{ kind: "unresolved", reason: "encoding" }]
        : [{ kind: "text", text: decoded, isQuoted: true }];
    }
    case "string":
    case "translated_string":
      return toStringParts(node, scope);
    case "concatenation":
    case "command_name":
      return node.children.flatMap((child, index) =>
        toParts(child, scope, isQuoted, node.children[index + 1]),
      );
    case "variable_assignment": {
      const [name, equals, value] = [node.children[0], node.children[1], node.children[2]];
      if (name === undefined || equals === undefined) return [{ kind: "unresolved", reason: "syntax" }];
      const head = scope.source.slice(name.start, equals.end);
      return [
        { kind: "text", text: head, isQuoted: true },
        ...(value === undefined ? [] : toParts(value, scope, isQuoted, undefined)),
      ];
    }
    case "simple_expansion":
    case "expansion":
      return [toVariablePart(node, text, scope, isQuoted)];
    case "command_substitution":
      return [toSubstitutionPart(text, scope, isQuoted)];
    case "process_substitution":
      return [{ kind: "unresolved", reason: "substitution" }];
    case "arithmetic_expansion":
      // Digits, whichever they are.
      return [{ kind: "unresolved", reason: "arithmetic", choices: ["0"] }];
    case "array":
    case "subscript":
      return [{ kind: "unresolved", reason: "syntax" }];
    case "$":
      // `$"…"`: the dollar belongs to the string.
      return next?.type === "string" ? [] : [{ kind: "text", text, isQuoted: true }];
    default:
      // The grammar takes the line end in front of `\\rm` into the word: two commands become one.
      if (hidesExpansion(text) || endsWord(text)) scope.onMismatch(text);
      return toUnquotedPieces(text).map((piece) => ({ kind: "text", ...piece }));
  }
}

/** The grammar leaves some blanks of a string out of its children: what is between them is text as well. */
function toStringParts(node: SyntaxNode, scope: WordScope): Part[] {
  const parts: Part[] = [];
  const opening = node.children.find(({ type }) => type === '"');
  let at = opening?.end ?? node.start + 1;
  const end = node.end - 1;
  const addText = (to: number): void => {
    const text = scope.source.slice(at, to);
    if (hidesExpansion(text)) scope.onMismatch(text);
    if (text !== "") parts.push({ kind: "text", text: toDoubleQuoted(text), isQuoted: true });
  };
  for (const child of node.children) {
    if (child.start < at || child.type === "string_content" || child.type === '"' || child.type === "$")
      continue;
    addText(child.start);
    parts.push(...toParts(child, scope, true, undefined));
    at = child.end;
  }
  addText(end);
  if (parts.length === 0) parts.push({ kind: "text", text: "", isQuoted: true });
  return parts;
}

function toVariablePart(node: SyntaxNode, text: string, scope: WordScope, isQuoted: boolean): Part {
  const name = /^\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))$/.exec(text);
  const plain = name?.[1] ?? name?.[2];
  const withDefault = /^\$\{([A-Za-z_][A-Za-z0-9_]*):?-/.exec(text);
  const constant = scope.constants.get(plain ?? withDefault?.[1] ?? "");
  if (constant !== undefined && (plain !== undefined || constant !== ""))
    return isQuoted ? { kind: "text", text: constant, isQuoted: true } : { kind: "split", text: constant };
  if (plain === "HOME" && !scope.constants.has("HOME")) return { kind: "home" };
  const unknown = { kind: "unresolved", reason: "variable" } as const;
  if (/^\$(?:[$?#!]|\{[$?#!]\})$/.test(text)) return { ...unknown, choices: ["0"] };
  const read = scope.read?.get(plain ?? "");
  if (read !== undefined) return { ...unknown, choices: read, isQuoted };
  if (plain === undefined || scope.bounded === undefined) return unknown;
  const values = scope.bounded.get(plain);
  if (values === null) return unknown;
  if (values !== undefined) return { ...unknown, choices: values, isQuoted };
  if (plain === "PWD") return { ...unknown, choices: ["."] };
  if (/^(RANDOM|SRANDOM|SECONDS|LINENO|UID|EUID|PPID)$/.test(plain)) return { ...unknown, choices: ["0"] };
  return { ...unknown, isFolder: true };
}

const toPlain = (word: Word): string => (word.kind === "literal" ? word.text : word.source);

/** What a substitution prints, where everybody knows it: numbers, and the folder of the work. */
function toSubstitutionPart(text: string, scope: WordScope, isQuoted: boolean): Part {
  const code = text.replace(/^\$\(|^`|\)$|`$/g, "").trim();
  const unknown = { kind: "unresolved", reason: "substitution" } as const;
  if (/^(?:pwd|seq|date|git|npm|find)\s*\(\)/m.test(scope.source)) return unknown;
  if (/^pwd(?: -[LP])?$/.test(code)) return { ...unknown, choices: ["."] };
  if (/^seq(?: -?\d+){1,3}$/.test(code) || /^date \+%[sYFmd]$/.test(code))
    return { ...unknown, choices: ["0"], isQuoted };
  const [, , found] =
    /^(?:find(?: [\w./][\w./-]*)*(?: -type f)? -name|git ls-files(?: --)?) (['"]?)([\w.*?-]+)\1(?: -type f)?$/.exec(
      code,
    ) ?? [];
  const [name] = found === undefined ? [] : toNamed(found);
  if (name !== undefined && (name.kind === "literal" || name.reason === "glob"))
    return { ...unknown, choices: [toPlain(name)], isQuoted };
  return /^(?:git rev-parse --show-toplevel|npm (?:prefix|root))$/.test(code)
    ? { ...unknown, isFolder: true }
    : unknown;
}
