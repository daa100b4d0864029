/**
 * What a shell command reads like to a text rule: one line per line that the shell sees, one blank between words, no
 * quotes around plain words, and without texts that are only mentioned. This is no parser; a rule that has to know what
 * runs needs one.
 */

/** A word that holds nothing for the shell to expand, quote or join. */
const plainWord = String.raw`[^\s"'\x60$;&|<>()\\]{1,128}`;
/** Printed, searched for, or written in a log: then a quoted text is only mentioned. */
const mentionPattern = new RegExp(
  String.raw`(?<=(?:^|[\n;&|]) ?)((?:echo|printf|git commit|git grep|[ef]?grep|rg)(?: ${plainWord}){0,8} )` +
    String.raw`(?:"[^"$\x60\\]{0,2000}"|'[^']{0,2000}')((?: ${plainWord}){0,8})` +
    String.raw`(?= ?(?:$|[\n;|]|&&|>> ?\.(?:git|docker)ignore))`,
  "g",
);

/** The text that rules on shell commands are matched against. Linear in the length. */
export function toShellRuleText(command: string): string {
  const joined = command.replace(/\\\r?\n/g, "").replace(/[ \t\r\f\v]+/g, " ");
  return withoutMentions(joined).replace(/"([^\s"'\x60\\;&|<>()?!]*)"|'([^\s"'\x60\\;&|<>()?!]*)'/g, "$1$2");
}

/**
 * Takes out quoted texts that a plain `echo`, `grep` or `git commit` only mentions, as long as it is sure where quotes
 * begin: a quote, an escape or a here-document before it ends the search.
 */
function withoutMentions(text: string): string {
  if (!/["']/.test(text) || text.includes("<<")) return text;
  let end = 0;
  let isSure = true;
  return text.replace(mentionPattern, (whole: string, lead: string, rest: string, at: number) => {
    isSure &&= !/["'\\]/.test(text.slice(end, at));
    end = at + whole.length;
    // What a search finds may go on through a pipe; what is printed could be run there.
    const isPiped = /^ ?\|(?!\|)/.test(text.slice(end, end + 3)) && /^(?:echo|printf)/.test(lead);
    return isSure && !isPiped ? `${lead}_${rest}` : whole;
  });
}
