import { toKnownName } from "./full-words.ts";
import type { ParsedCommand, SimpleCommand, Word } from "./parsed-command.ts";

/** The words of one command as every rule sees them: the resolved name first, words that are not fixed as `undefined`. */
export type NormalForm = readonly (string | undefined)[];

/** One form for allow and deny rules alike: a spelling that a deny would miss cannot be one that an allow finds. */
export function toNormalForm(command: SimpleCommand): NormalForm {
  return [command.program, ...command.argv.map((word) => (word.kind === "literal" ? word.text : undefined))];
}

/**
 * A rule's words, such as `["git", "push"]`: the program and the first operands. `sudo *` is `["sudo"]`. Options between
 * them are skipped when the rule looks for danger, and never when it grants.
 */
export type CommandPattern = readonly [program: string, ...words: string[]];

/** True if the command may be what a deny rule names: a word that is not fixed may be anything. */
export function mayMatch(command: SimpleCommand, pattern: CommandPattern): boolean {
  if (toKnownName(command.program) !== pattern[0]) return false;
  let at = 1;
  let isAfterOption = false;
  for (const word of command.argv) {
    if (at === pattern.length) return true;
    if (word.kind === "unresolved") return true;
    // A word that is not the next one may be the value of the option in front of it: `git -C dir push`.
    if (word.text === pattern[at]) at += 1;
    else if (!word.text.startsWith("-") && !isAfterOption) return false;
    isAfterOption = word.text.startsWith("-");
  }
  return at === pattern.length;
}

/** True only if the command is what an allow rule names: fixed words, at the front, of a program found by its name. */
export function surelyMatches(command: SimpleCommand, [program, ...words]: CommandPattern): boolean {
  return (
    command.program === program &&
    words.every((word, index) => {
      const found: Word | undefined = command.argv[index];
      return found?.kind === "literal" && found.text === word;
    })
  );
}

/** Deny if any part may match; opaque parts are for the caller, who never allows them. */
export function isDenied(parsed: ParsedCommand, denied: readonly CommandPattern[]): boolean {
  return parsed.commands.some((command) => denied.some((pattern) => mayMatch(command, pattern)));
}

/** Allow only if every part surely matches, and nothing is opaque. */
export function isAllowed(parsed: ParsedCommand, allowed: readonly CommandPattern[]): boolean {
  return (
    parsed.opaque.length === 0 &&
    parsed.commands.length > 0 &&
    parsed.commands.every((command) => allowed.some((pattern) => surelyMatches(command, pattern)))
  );
}
