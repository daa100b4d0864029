/**
 * What a bash command line runs, as a value: the only thing that rules see of a command.
 *
 * Certain: every program of every simple command, wherever it hides, with the words that are fixed by the text alone.
 * Opaque: everything else. A reason in `opaque` says that something runs, or is written, that the text does not name.
 * A command line with an opaque reason is never allowed by itself; one without names everything that it runs.
 */
export type ParsedCommand = {
  readonly commands: readonly SimpleCommand[];
  readonly writes: readonly WrittenPath[];
  readonly reads: readonly string[];
  /** Words that name what is read, but not which file. A fact for rules; it makes nothing opaque. */
  readonly unresolvedReads: readonly string[];
  /** Those among them of which the text does not even fix the last name. */
  readonly unknownReads: readonly string[];
  /** Files whose content is code that runs: their digests belong into the plan. Resolved where the directory is known. */
  readonly operands: readonly string[];
  readonly assignments: readonly Assignment[];
  readonly opaque: readonly OpaqueReason[];
  /** Touched paths as they are spelled, where a name in them is climbed out of: `link/../x`. */
  readonly climbs?: readonly Climb[];
};

/** A path as text, and the spelling that the kernel walks along. */
export type Climb = { readonly path: string; readonly spelled: string };

/** One word after expansion: its text, or why the text alone does not fix it. */
export type Word =
  | { readonly kind: "literal"; readonly text: string }
  | {
      readonly kind: "unresolved";
      readonly reason: UnresolvedReason;
      /** As written; a leading `~` or `$HOME` is always written `~`. */
      readonly source: string;
      /** The literal text in front of the first part that is not fixed. */
      readonly prefix: string;
      /** The pattern of a glob, where it is written in another way: with quotes, or with braces around it. */
      readonly glob?: string;
      /** All that it can be, by the text: what a loop goes over. Only good to know what is read. */
      readonly choices?: readonly Word[];
      /** Which folder is not known, but the name in it is: `$DIR/package.json`. */
      readonly isNameFixed?: boolean;
    };

export type UnresolvedReason =
  "variable" | "substitution" | "arithmetic" | "glob" | "brace" | "home" | "input" | "encoding" | "syntax";

export type Assignment = { readonly name: string; readonly value: Word };

/** What a command was found inside of, outermost first. */
export type Layer =
  | "substitution"
  | "process_substitution"
  | "subshell"
  | "pipe"
  | "function"
  | "condition"
  | "loop"
  | "heredoc"
  | "code"
  | "eval"
  | "trap"
  | "option"
  | "environment"
  | "alias";

/** The machine that the command runs on. */
export type Where = "here" | "container" | "remote";

/** What the command reads on its standard input. */
export type Input = "inherited" | "pipe" | "heredoc" | "file";

export type SimpleCommand = {
  /** Last part of the path that it was called by: `rm` for `/usr/bin/rm`, `\rm` and `'r''m'`. */
  readonly program: string;
  readonly path: string;
  readonly kind: "builtin" | "function" | "program";
  /** The words after the program. */
  readonly argv: readonly Word[];
  readonly assignments: readonly Assignment[];
  readonly within: readonly Layer[];
  /** Programs that started this one, outermost first: `sudo`, `env`, `xargs`. */
  readonly wrappers: readonly string[];
  /** The directory it runs in, when there is exactly one. */
  readonly cwd: string | undefined;
  /** All that it may run in, when the text leaves a few. */
  readonly folders?: readonly string[];
  readonly where: Where;
  readonly input: Input;
  /** What it reads there, where the text says so: a here-document, or what a plain `echo` prints. */
  readonly inputText?: Word;
  readonly risk: Risk;
  /** What the bundle says of it. */
  readonly declared?: {
    readonly signals: readonly string[];
    readonly trusted: string | null;
    /** Whether it names the verb too. */
    readonly isVerbNamed: boolean;
    readonly line: number;
  };
};

/** What kind of program it is; `unknown` is every program that no table names, and so may start others. */
export type Risk =
  | "plain"
  | "unknown"
  | "launcher"
  | "shell"
  | "interpreter"
  | "network"
  | "privilege"
  | "project_code"
  | "infrastructure"
  | "packages";

export type WrittenPath = {
  /** Absolute when the directory is known, `~/…` when only the home directory is missing. */
  readonly path: string;
  /** `tree`: the path itself or anything below it. */
  readonly extent: "file" | "tree";
  readonly by: string;
};

export type OpaqueKind =
  | "too_large"
  | "too_deep"
  | "syntax_error"
  | "grammar_mismatch"
  | "control_character"
  | "lookalike_character"
  | "heredoc_backtick"
  | "unresolved_program"
  | "unresolved_code"
  | "unresolved_path"
  | "inline_code"
  | "code_from_input"
  | "script_file"
  | "local_program"
  | "unknown_option"
  | "unparsed_launcher"
  | "foreign_shell"
  | "environment"
  | "search_path"
  | "alias"
  | "arithmetic_text"
  | "prompt_expansion";

export type OpaqueReason = {
  readonly kind: OpaqueKind;
  /** The text it is about, for people. */
  readonly detail: string;
  readonly program?: string;
  /** The files that hold the code, resolved, where the text names them: for `script_file` and `local_program`. */
  readonly files?: readonly string[];
  /** For what a runner of packages starts: of each start the files one of which it is, nearest first. */
  readonly candidates?: readonly (readonly string[])[];
  /** Set for `unresolved_path`. */
  readonly isWrite?: boolean;
  /** Set for `inline_code`, with the code in `detail`. */
  readonly language?: string;
};
