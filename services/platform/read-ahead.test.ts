import { describe, expect, it } from "vitest";
import { ReadAhead } from "./read-ahead.ts";

/** Work that ends when it is told to, and a protocol of what began and ended. */
function openShop(atOnce: number) {
  const ahead = new ReadAhead(atOnce);
  const lines: string[] = [];
  const ends = new Map<string, () => void>();
  const bring = (lane: string, name: string): void => {
    void ahead
      .bring(lane, async () => {
        lines.push(`run ${name}`);
        await new Promise<void>((resolve) => ends.set(name, resolve));
        lines.push(`end ${name}`);
      })
      .then(() => lines.push(`in ${name}`));
  };
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await settle();
  };
  return { ahead, lines, bring, end, settle };
}

describe("reading ahead", () => {
  it("runs a lane in order, lets one piece wait in it, and keeps the next one at the door", async () => {
    const { lines, bring, end, settle } = openShop(3);
    for (const name of ["a1", "a2", "a3"]) bring("a", name);
    await settle();
    expect(lines).toEqual(["run a1", "in a1", "in a2"]);
    await end("a1");
    expect(lines.slice(3)).toEqual(["end a1", "run a2", "in a3"]);
    await end("a2");
    expect(lines.slice(6)).toEqual(["end a2", "run a3"]);
  });

  it("runs no more lanes than it may, and lets as many wait", async () => {
    const { lines, bring, end, settle } = openShop(2);
    for (const lane of ["a", "b", "c", "d", "e"]) bring(lane, lane);
    await settle();
    expect(lines.filter((line) => line.startsWith("run"))).toEqual(["run a", "run b"]);
    expect(lines.filter((line) => line.startsWith("in"))).toEqual(["in a", "in b", "in c", "in d"]);
    await end("b");
    expect(lines.slice(-2)).toEqual(["run c", "in e"]);
  });

  it("forgets what waits when it is drained, lets the door go, and waits for what runs", async () => {
    const { ahead, lines, bring, end, settle } = openShop(1);
    for (const name of ["a1", "a2", "a3"]) bring("a", name);
    await settle();
    let drained = false;
    void ahead.drain().then(() => (drained = true));
    await settle();
    expect(lines.at(-1)).toBe("in a3");
    expect(drained).toBe(false);
    await end("a1");
    expect(drained).toBe(true);
    expect(lines.filter((line) => line.startsWith("run"))).toEqual(["run a1"]);
  });
});
