import { refuseLongText } from "./signals.ts";
import { scanAllOptions } from "./shell/options.ts";
import { PATH_TABLE } from "./shell/path-table.ts";
import type { ParsedCommand, SimpleCommand, Word } from "./shell/parsed-command.ts";

/** Programs whose operands are addresses, also without a scheme in front. */
const takesAddresses = /^(?:curl|wget|http|https|xh|aria2c|lynx|w3m|links)$/;
const scheme = /^[a-z][a-z0-9+.-]*:\/\//i;

/** The address that a text is. Throws when it is none. */
export function readUrl(field: string, text: string): URL {
  refuseLongText(text);
  if (!URL.canParse(text)) throw new RangeError(`the input field \`${field}\` holds no complete address`);
  if (isReadInTwoWays(text))
    throw new RangeError(`the input field \`${field}\` holds an address whose host can be read in two ways`);
  return new URL(text);
}

/** Whether programs differ in which host they ask: what is before the path holds a backslash, a blank or two `@`. */
function isReadInTwoWays(text: string): boolean {
  const address = text.trim();
  const [, authority = ""] = /^[a-z][a-z0-9+.-]*:\/*([^/?#]*)/i.exec(address) ?? [];
  return /[\\\s]|@.*@/.test(authority) || /[\t\r\n]/.test(address);
}

/** Addresses among the texts of an input that no field names as such; what only resembles one is none. */
export function toUrlsInTexts(texts: readonly string[]): URL[] {
  return texts
    .filter((text) => text.length <= 8_192 && scheme.test(text) && URL.canParse(text))
    .map((text) => new URL(text));
}

/** Literal addresses of a command: words that begin with a scheme, and operands of programs that fetch. */
export function toUrlsOfCommand(parsed: ParsedCommand): URL[] {
  return parsed.commands.flatMap((command) =>
    toAddressWords(command).flatMap((word) => {
      const text = toFixedStart(word);
      return text !== null && URL.canParse(text) ? [new URL(text)] : [];
    }),
  );
}

/** Whether a program that fetches is given an address whose host the text does not fix. */
export function hasUnresolvedUrl(parsed: ParsedCommand): boolean {
  return parsed.commands.some((command) =>
    toAddressWords(command).some((word) =>
      word.kind === "unresolved" ? toFixedStart(word) === null : isReadInTwoWays(word.text),
    ),
  );
}

function toAddressWords(command: SimpleCommand): Word[] {
  const withScheme = command.argv
    .map((word) => afterName(word))
    .filter((word) => scheme.test(word.kind === "literal" ? word.text : word.prefix));
  if (!takesAddresses.test(command.program)) return withScheme;
  const { options, operands } = scanAllOptions(command.argv, PATH_TABLE.get(command.program)?.values ?? "");
  const named = options.flatMap(({ name, value }) =>
    name === "--url" && value !== undefined ? [value] : [],
  );
  const bare = [...operands, ...named].filter((word) => word.kind === "unresolved" || isHostLike(word.text));
  return [...withScheme, ...bare.map((word) => (hasScheme(word) ? word : withHttp(word)))];
}

const hasScheme = (word: Word): boolean => scheme.test(word.kind === "literal" ? word.text : word.prefix);
const isHostLike = (text: string): boolean => /^[\w[:.-]+(?:[/?#]|$)|@/.test(text) && text !== "-";
const withHttp = (word: Word): Word =>
  word.kind === "literal"
    ? { kind: "literal", text: `http://${word.text}` }
    : word.prefix === ""
      ? word
      : { ...word, prefix: `http://${word.prefix}` };

/** `--url=https://x` and `url=https://x` name one behind a sign. */
function afterName(word: Word): Word {
  const cut = (text: string): string => text.replace(/^-{0,2}[\w-]+=(?=[a-z][a-z0-9+.-]*:\/\/)/i, "");
  return word.kind === "literal"
    ? { kind: "literal", text: cut(word.text) }
    : { ...word, prefix: cut(word.prefix) };
}

/** The address as far as the text fixes it: with a whole host in it, or null. */
function toFixedStart(word: Word): string | null {
  if (word.kind === "literal")
    return word.text.replace(/[[{].*$/s, (glob) =>
      glob.startsWith("[") && /^\[[0-9a-f:.]+\]/i.test(glob) ? glob : "",
    );
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+[/?#]/i.test(word.prefix) ? word.prefix : null;
}
