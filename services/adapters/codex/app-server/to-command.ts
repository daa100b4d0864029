/** How the server starts a command: by the user's shell, with the command as one quoted word. */
const wrapped = /^(?:[\w./-]*\/)?(?:bash|dash|sh|zsh) -l?c (.+)$/s;
/** Parts of a quoted word, each of which means itself and nothing else. */
const parts = /'([^']*)'|"((?:[^"\\$`]|\\["\\$`])*)"|\\([^\n])|([\w\-.,/:@%+=^]+)/gy;

/**
 * The command that was asked for, as the client's own hooks call it: without the shell that the server puts around it, so
 * that one call is one plan whichever way it is watched. A text that is not one plainly quoted word stays as it is. Pure.
 */
export function toCommand(command: string): string {
  const word = wrapped.exec(command)?.[1];
  if (word === undefined) return command;
  let [text, end] = ["", 0];
  for (const part of word.matchAll(parts)) {
    const [whole, single, double, escaped, plain] = part;
    text += single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped ?? plain ?? "";
    end = part.index + whole.length;
  }
  return end === word.length && text !== "" ? text : command;
}
