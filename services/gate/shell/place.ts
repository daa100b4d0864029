import type { DeclaredPrograms } from "./declared-programs.ts";
import type { Input, Layer, Where, Word } from "./parsed-command.ts";
import type { Directories } from "./path-words.ts";
import type { SyntaxNode } from "./syntax-tree.ts";

/**
 * Where the command line is run: relative paths are resolved against `cwd`, and are not known without one; `~` stays
 * when `home` is not known.
 */
export type ParseContext = {
  readonly cwd?: string;
  readonly home?: string;
  /** What the bundle says of programs of its own. */
  readonly programs?: DeclaredPrograms;
};

export const CHANGES_DIRECTORY = /(^|[^\w.-])(cd|pushd|popd)([^\w.-]|$)/;
const MAX_DIRECTORIES = 4;

/** A shell process, or a copy of one: what `cd` changes. */
export type Shell = { directories: Directories; lastCd: Directories };
export type Script = {
  readonly source: string;
  readonly constants: readonly { name: string; value: string; from: number }[];
  readonly textVariables: ReadonlySet<string>;
  readonly bounded?: ReadonlyMap<string, readonly string[] | null> | undefined;
  readonly splitsOnBlanks: boolean;
  readonly setsHome: boolean;
};

export function toBareScript(source: string): Script {
  return {
    source,
    constants: [],
    textVariables: new Set(),
    splitsOnBlanks: !source.includes("IFS"),
    setsHome: /(^|[^$\w{])HOME\b/.test(source),
  };
}
export type Stdin = {
  readonly kind: Input;
  readonly text?: Word;
  /** The names of files that come by a pipe, where the text bounds them. */
  readonly names?: readonly Word[];
  /** What the command in front of a pipe prints. It is never read as a script: that stays opaque. */
  readonly piped?: Word;
};
export type Tail = { readonly stdin: Stdin | undefined; readonly redirects: readonly SyntaxNode[] };
export type Place = {
  readonly shell: Shell;
  readonly script: Script;
  readonly within: readonly Layer[];
  readonly wrappers: readonly string[];
  readonly where: Where;
  readonly stdin: Stdin;
  /** What the variables of `while read` loops around can be. */
  readonly read?: ReadonlyMap<string, readonly string[]>;
  /** What the grammar puts behind a chain belongs to the last command of the chain alone. */
  readonly tail?: Tail;
  readonly codeDepth: number;
  /** False once a wrapper runs the command in another process: its `cd` is then no concern of this shell. */
  readonly isShell: boolean;
  /** Whose rules the text is read by; `sh` may be dash, which takes some of bash's words for programs. */
  readonly dialect: "bash" | "posix" | "zsh";
  /** False once `HOME` may be another one: below `sudo`, or where the text names it. */
  readonly isHomeKnown: boolean;
};

export function union(first: Directories, second: Directories): Directories {
  if (first === undefined || second === undefined) return undefined;
  const all = [...new Set([...first, ...second])];
  return all.length > MAX_DIRECTORIES ? undefined : all;
}

/** The value of a word `NAME=value`. */
export function dropName(word: Word): Word {
  if (word.kind === "literal") return { kind: "literal", text: word.text.slice(word.text.indexOf("=") + 1) };
  const after = (text: string): string => text.slice(text.indexOf("=") + 1);
  return { ...word, source: after(word.source), prefix: after(word.prefix) };
}

export function withoutTail({ tail: _, ...place }: Place): Place {
  return place;
}

/** Nodes without a blank between them make one word, also where the grammar gives several. */
export function toRuns(nodes: readonly SyntaxNode[]): SyntaxNode[][] {
  const runs: SyntaxNode[][] = [];
  for (const node of nodes) {
    const run = runs.at(-1);
    if (run !== undefined && run.at(-1)?.end === node.start) run.push(node);
    else runs.push([node]);
  }
  return runs;
}
