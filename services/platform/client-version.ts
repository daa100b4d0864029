const numbersOf = (version: string): readonly number[] =>
  (version.match(/\d+/g) ?? []).slice(0, 3).map(Number);

/** The first `1.2.3` of what `client --version` printed; null when there is none. */
export const toVersion = (printed: string): string | null => /\d+\.\d+\.\d+/.exec(printed)?.[0] ?? null;

/** Compares the three numbers of two versions; what comes after them is left out. */
export function isAtLeast(version: string, least: string): boolean {
  const [is, wanted] = [numbersOf(version), numbersOf(least)];
  for (let place = 0; place < 3; place += 1) {
    const difference = (is[place] ?? 0) - (wanted[place] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
