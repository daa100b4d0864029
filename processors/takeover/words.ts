import { hash } from "node:crypto";

/** Postgres text holds no NUL; the mark in its place shows that there was one. */
export function clean<T extends string | null>(text: T): T {
  return text !== null && text.includes("\u0000") ? (text.replaceAll("\u0000", "\uFFFD") as T) : text;
}

/** At most `maxChars` UTF-16 units, the last of them a mark when something was cut; never through a surrogate pair. */
export function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = /[\uD800-\uDBFF]/.test(text.charAt(maxChars - 2)) ? maxChars - 2 : maxChars - 1;
  return `${text.slice(0, end)}…`;
}

/** The text, or its beginning and its digest: two long texts that begin alike stay two. */
export function toBounded(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const digest = hash("sha256", text, "hex").slice(0, 32);
  return cut(text, maxChars - digest.length) + digest;
}
