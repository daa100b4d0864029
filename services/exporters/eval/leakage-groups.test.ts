import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LeakageGroups } from "./leakage-groups.ts";
import { defaultShares, splitNames, toShares, toSplit } from "./splits.ts";

/** Episodes with the links that each has. */
const world = fc.array(fc.array(fc.integer({ min: 0, max: 25 }).map(String), { maxLength: 3 }), {
  maxLength: 40,
});
const toLinked = (episodes: readonly (readonly string[])[]) =>
  episodes
    .flatMap((links, ordinal) => links.map((link) => ({ ordinal, link })))
    .sort((a, b) => (a.link < b.link ? -1 : a.link > b.link ? 1 : a.ordinal - b.ordinal));
const groupsOf = (episodes: readonly (readonly string[])[]): number[] => {
  const groups = new LeakageGroups(episodes.length);
  for (const one of toLinked(episodes)) groups.add(one);
  return episodes.map((_, ordinal) => groups.firstOf(ordinal));
};
/** What is reachable over shared links, found by walking. */
const relatedTo = (episodes: readonly (readonly string[])[], start: number): Set<number> => {
  const reached = new Set([start]);
  for (const at of reached) {
    episodes.forEach((links, other) => {
      if (links.some((link) => episodes[at]?.includes(link) === true)) reached.add(other);
    });
  }
  return reached;
};

describe("leakage groups", () => {
  it("hold exactly what is related over any number of steps, and are named after the first of them", () => {
    fc.assert(
      fc.property(world, (episodes) => {
        const groups = groupsOf(episodes);
        episodes.forEach((_, ordinal) => {
          const related = relatedTo(episodes, ordinal);
          expect(groups[ordinal]).toBe(Math.min(...related));
          expect(groups.flatMap((one, other) => (one === groups[ordinal] ? [other] : []))).toEqual(
            [...related].sort((a, b) => a - b),
          );
        });
      }),
    );
  });

  it("never let related episodes be on two sides of a split, whatever seed and shares", () => {
    const shares = fc
      .tuple(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 100 }))
      .map(([a, b]) => {
        const train = Math.min(a, b);
        const validation = Math.max(a, b) - train;
        return { train, validation, test: 100 - train - validation };
      });
    fc.assert(
      fc.property(world, fc.string(), shares, (episodes, seed, parts) => {
        const splits = groupsOf(episodes).map((first) => toSplit(seed, `epi_${first}`, parts));
        episodes.forEach((_, ordinal) => {
          for (const other of relatedTo(episodes, ordinal)) expect(splits[other]).toBe(splits[ordinal]);
        });
      }),
    );
  });

  it("are found in time over a chain of a million", () => {
    const groups = new LeakageGroups(1_000_000);
    for (let ordinal = 999_999; ordinal > 0; ordinal -= 1) groups.join(ordinal, ordinal - 1);
    expect(groups.firstOf(999_999)).toBe(0);
  });
});

describe("splits", () => {
  it("come close to their shares", () => {
    const counts = { train: 0, validation: 0, test: 0 };
    for (let n = 0; n < 20_000; n += 1) counts[toSplit("1", `epi_${n}`, defaultShares)] += 1;
    for (const one of splitNames) {
      expect(Math.abs(counts[one] / 200 - defaultShares[one])).toBeLessThan(1);
    }
  });

  it("stay as they are: a dataset of last year is split alike", () => {
    const first = Array.from({ length: 12 }, (_, n) => toSplit("1", `epi_${n}`, toShares("50/25/25")));
    expect(first).toMatchInlineSnapshot(`
      [
        "test",
        "validation",
        "validation",
        "train",
        "train",
        "validation",
        "train",
        "validation",
        "train",
        "test",
        "validation",
        "train",
      ]
    `);
  });

  it.each(["80/10", "80/10/20", "a/b/c", "-1/1/100", "80/10/10/0", ""])("refuse `%s`", (text) => {
    expect(() => toShares(text)).toThrow(/percentages/);
  });
});
