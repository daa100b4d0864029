/** Postgres text holds no NUL; the mark in its place shows that there was one. */
export function clean<T extends string | null>(text: T): T {
  return text !== null && text.includes("\u0000") ? (text.replaceAll("\u0000", "\uFFFD") as T) : text;
}

/** At most `maxChars` UTF-16 units, the last of them a mark when something was cut; never through a surrogate pair. */
export function cut<T extends string | null>(text: T, maxChars: number): T {
  if (text === null || text.length <= maxChars) return text;
  const end = /[\uD800-\uDBFF]/.test(text.charAt(maxChars - 2)) ? maxChars - 2 : maxChars - 1;
  return `${text.slice(0, end)}…` as T;
}
