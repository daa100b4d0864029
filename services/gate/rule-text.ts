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
  return withoutMentions(withoutMessage(joined)).replace(
    /"([^\s"'\x60\\;&|<>()?!]*)"|'([^\s"'\x60\\;&|<>()?!]*)'/g,
    "$1$2",
  );
}

const messageStart = new RegExp(
  String.raw`^(?:[^"'\\\n<]*[\n;&|] ?)?git commit(?: ${plainWord}){0,8} "\$\(cat <<'(\w{1,16})'(?=\n)`,
);
/** Takes out a commit message in a quoted here-document, the form in which agents write one. */
function withoutMessage(text: string): string {
  const start = messageStart.exec(text);
  if (start === null) return text;
  // The first line that is the end word ends it, as in the shell.
  const end = `\n${start[1] ?? ""}\n`;
  const at = text.indexOf(end, start[0].length);
  const rest = at < 0 ? "" : text.slice(at + end.length);
  const close = /^ ?\)"/.exec(rest);
  if (close === null) return text;
  return `${start[0].slice(0, start[0].lastIndexOf('"'))}_${rest.slice(close[0].length)}`;
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
