import { maskJson, maskText } from "./mask.ts";

/** Only this much of a text is masked for a preview: bounds the work on a huge input. */
const maskedPartMaxChars = 65_536;
/** A preview nests no deeper than this; what is below is left out. */
const previewMaxDepth = 32;
/** Where a text was cut before masking, so much of its end may be half a secret. */
const splitTailChars = 256;

const cutAt = (text: string, maxChars: number): string => {
  if (text.length <= maxChars) return text;
  const cut = text.slice(0, maxChars);
  const last = cut.charCodeAt(cut.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? cut.slice(0, -1) : cut;
};

/** Replaces what neither UTF-8 nor PostgreSQL can carry: lone surrogates and NUL. */
export const toStorableText = (text: string): string =>
  perhapsUnstorable.test(text) ? text.replace(/\p{Surrogate}|\0/gu, "\uFFFD") : text;
/** Cheaper, since it need not tell half a pair from a whole one. */
const perhapsUnstorable = /[\0\uD800-\uDFFF]/;

/** Masked and then cut to `maxChars` UTF-16 units, never through a surrogate pair. */
export function toTextPreview(text: string, maxChars: number): string {
  const part = cutAt(text, maskedPartMaxChars);
  const masked = toStorableText(maskText(part));
  // A secret that the first cut split could show its head at the end: such an end is not shown.
  const shown =
    part.length < text.length && masked.length <= maxChars ? masked.slice(0, -splitTailChars) : masked;
  return cutAt(shown, maxChars);
}

interface Budget {
  chars: number;
}

/** A copy no larger than the budget: what would never be shown is not masked either. */
const toBoundedCopy = (value: unknown, budget: Budget, depth: number): unknown => {
  if (typeof value === "string") {
    const room = Math.max(0, budget.chars);
    budget.chars -= value.length + 2;
    return value.length <= room ? value : cutAt(value, room).slice(0, -splitTailChars);
  }
  budget.chars -= 4;
  if (typeof value !== "object" || value === null) return value;
  if (depth >= previewMaxDepth) return null;
  if (Array.isArray(value)) {
    const copy: unknown[] = [];
    for (const item of value as readonly unknown[]) {
      if (budget.chars <= 0) break;
      copy.push(toBoundedCopy(item, budget, depth + 1));
    }
    return copy;
  }
  const copy: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    budget.chars -= key.length;
    if (budget.chars <= 0) break;
    copy.push([key, toBoundedCopy(item, budget, depth + 1)]);
  }
  return Object.fromEntries(copy);
};

/** A JSON value as masked text of at most `maxChars`; a string is shown as itself. */
export function toJsonPreview(value: unknown, maxChars: number): string {
  if (typeof value === "string") return toTextPreview(value, maxChars);
  // Masked value by value: an escape such as `\n` hides no secret, and a key can tell that its value is one.
  const copy = maskJson(toBoundedCopy(value, { chars: maskedPartMaxChars }, 0));
  return toTextPreview(JSON.stringify(copy) ?? "", maxChars);
}
