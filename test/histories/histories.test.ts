import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { referenceTotals } from "../property/cost-reference.ts";
import type { PlainEvent } from "../property/cost-reference.ts";
import type { Part } from "./deliver.ts";
import { planDelivery } from "./deliver.ts";
import { differences, dumpAll } from "./dump.ts";
import { generateHistory } from "./generate.ts";
import type { Defect } from "./history-rig.ts";
import { HistoryRig } from "./history-rig.ts";
import { models, tools } from "./settings.ts";

/** Seeds `from` to `to`, or one: `7`, `1-200`. */
const [from = 1, to = from] = (process.env["FABRIC_TEST_HISTORY_SEEDS"] ?? "1-10").split("-").map(Number);
const size = Number(process.env["FABRIC_TEST_HISTORY_EVENTS"] ?? "5000");
const seeds = Array.from({ length: to - from + 1 }, (_, index) => from + index);
/** Histories that share topics: a log that grows for ever would make the last ones slower. */
const perRig = 20;
const limitMs = 240_000;

/** Runs one history twice, clean and wild; answers the clean run's announcements and the differences of the wild one. */
async function compareRuns(
  rig: HistoryRig,
  seed: number,
  events: number,
  change: (parts: readonly Part[]) => readonly Part[] = (parts) => parts,
) {
  const history = generateHistory(seed, events);
  await rig.forget();
  const announcedClean = await rig.runClean(history.events, history.impossible);
  const clean = await dumpAll(rig.sql);
  await rig.forget();
  const announced = await rig.runWild(change(planDelivery(seed, history.events)));
  return { history, clean, announcedClean, announced, differ: differences(clean, await dumpAll(rig.sql)) };
}

for (let first = 0; first < seeds.length; first += perRig) {
  const group = seeds.slice(first, first + perRig);
  describe(`histories ${String(group[0])} to ${String(group.at(-1))}`, () => {
    let rig: HistoryRig;
    beforeAll(async () => {
      rig = await HistoryRig.open();
    });
    afterAll(() => rig.close());

    it.each(group)(
      "history %i comes to the tables of a clean run in order, and costs what the reference says",
      { timeout: limitMs },
      async (seed) => {
        const { history, clean, announcedClean, announced, differ } = await compareRuns(rig, seed, size);
        expect(differ.join("\n")).toBe("");
        // The cut of one long goal may leave no decision, and so no delivery; all else says something in each history.
        const empty = clean.filter(({ rows, table }) => rows.length === 0 && table !== "trace.deliveries");
        expect(empty.map(({ table }) => table)).toEqual([]);
        // A letter that comes late may show that an item was not over, and that the one announced after it is the same.
        const isOfLetters = (one: string): boolean => one.startsWith("letter ");
        const others = (all: readonly string[]): string[] => all.filter((one) => !isOfLetters(one));
        expect(others(announced)).toEqual(others(announcedClean));
        expect(announced).toEqual(expect.arrayContaining(announcedClean.filter(isOfLetters)));
        expect(await rig.setAside()).toEqual([...history.impossible].sort());
        // A run in which nothing went wrong would show nothing.
        expect(rig.deaths).toBeGreaterThan(0);

        const { rows } = await rig.sql.query<{ key: string; micros: bigint }>(
          `SELECT tenant_id || ' ' || day AS key, sum(amount_micros)::bigint AS micros FROM cost.usage WHERE is_counted
            GROUP BY 1 HAVING sum(amount_micros) <> 0`,
        );
        const possible = history.events.filter(({ event_id }) => !history.impossible.has(event_id));
        const expected = referenceTotals(possible as unknown as PlainEvent[], models, tools);
        expect(new Map(rows.map((row) => [row.key, row.micros]))).toEqual(expected);
      },
    );
  });
}

describe("a history", () => {
  const few = Math.min(size, 1_000);
  const withDefect = async (defect: Defect, change: (parts: readonly Part[]) => readonly Part[]) => {
    const rig = await HistoryRig.open(defect);
    try {
      return (await compareRuns(rig, from, few, change)).differ;
    } finally {
      await rig.close();
    }
  };

  it("comes to other tables when the inbox claim is taken out", { timeout: limitMs }, async () => {
    expect(await withDefect("no-inbox", (parts) => parts)).not.toEqual([]);
  });

  it(
    "comes to other tables when the position is made durable before the work",
    { timeout: limitMs },
    async () => {
      const dying = (parts: readonly Part[]): readonly Part[] =>
        parts.map((part) =>
          part.mishap === null
            ? part
            : { ...part, mishap: { ...part.mishap, step: "apply", then: "nothing" } },
        );
      expect(await withDefect("watermark-first", dying)).not.toEqual([]);
    },
  );
});
