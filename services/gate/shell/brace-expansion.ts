/** One sign of a word, or what stands in it that is no text. */
export type Sign<Part> =
  { readonly text: string; readonly isQuoted: boolean } | { readonly text?: undefined; readonly part: Part };

const MAX_WORDS = 128;

/** The words that braces make of one, in order; undefined when there are too many. */
export function expandBraces<Part>(signs: readonly Sign<Part>[]): Sign<Part>[][] | undefined {
  const open: Sign<Part>[][] = [[...signs]];
  const done: Sign<Part>[][] = [];
  while (open.length > 0) {
    const word = open.shift();
    if (word === undefined) break;
    const choices = expandFirst(word);
    if (choices === undefined) done.push(word);
    else open.unshift(...choices);
    if (open.length + done.length > MAX_WORDS) return undefined;
  }
  return done;
}

const isSign = <Part>(sign: Sign<Part> | undefined, text: string): boolean =>
  sign?.text === text && !sign.isQuoted;

function expandFirst<Part>(word: Sign<Part>[]): Sign<Part>[][] | undefined {
  for (let from = 0; from < word.length; from += 1) {
    if (!isSign(word[from], "{")) continue;
    const cuts = [from];
    let depth = 0;
    for (let at = from; at < word.length; at += 1) {
      if (isSign(word[at], "{")) depth += 1;
      if (isSign(word[at], ",") && depth === 1) cuts.push(at);
      if (!isSign(word[at], "}")) continue;
      depth -= 1;
      if (depth > 0) continue;
      cuts.push(at);
      const parts = cuts.slice(1).map((to, index) => word.slice((cuts[index] ?? from) + 1, to));
      const choices = parts.length > 1 ? parts : toSequence(parts[0] ?? []);
      if (choices === undefined) break;
      return choices.map((choice) => [...word.slice(0, from), ...choice, ...word.slice(at + 1)]);
    }
  }
  return undefined;
}

/** `1..3`, `01..10`, `a..e..2`. */
function toSequence<Part>(signs: readonly Sign<Part>[]): Sign<Part>[][] | undefined {
  if (signs.some((sign) => sign.text === undefined || sign.isQuoted)) return undefined;
  const text = signs.map((sign) => sign.text ?? "").join("");
  const match = /^(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,9}))?$/.exec(text);
  if (match === null) return undefined;
  const [, first, last, from, to, by] = match;
  const isLetters = from !== undefined && to !== undefined;
  const start = isLetters ? (from.codePointAt(0) ?? 0) : Number(first);
  const end = isLetters ? (to.codePointAt(0) ?? 0) : Number(last);
  const step = Math.max(1, Math.abs(Number(by ?? "1")));
  const isPadded = !isLetters && [first, last].some((number) => /^-?0\d/.test(number ?? ""));
  const width = isPadded ? Math.max((first ?? "").length, (last ?? "").length) : 0;
  const count = Math.floor(Math.abs(end - start) / step) + 1;
  // Too many: one more than is taken.
  return Array.from({ length: Math.min(count, MAX_WORDS + 1) }, (_, index) => {
    const value = start + (end >= start ? 1 : -1) * step * index;
    const name = isLetters
      ? String.fromCodePoint(value)
      : value < 0
        ? `-${String(-value).padStart(width - 1, "0")}`
        : String(value).padStart(width, "0");
    return [{ text: name, isQuoted: true }];
  });
}
