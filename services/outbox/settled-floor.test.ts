import { describe, expect, it } from "vitest";
import { SettledFloor } from "./settled-floor.ts";

describe("settled floor", () => {
  it("rises to what is settled once a complete read found nothing below", () => {
    const floor = new SettledFloor();
    floor.learn({ drawn: 10n, xid: 100n }, 99n);
    floor.raise(floor.view(), undefined);
    expect(floor.value).toBe(0n);
    floor.learn({ drawn: 20n, xid: 105n }, 100n);
    floor.raise(floor.view(), undefined);
    expect(floor.value).toBe(10n);
  });

  it("stays below the first row that a read found", () => {
    const floor = new SettledFloor();
    floor.learn({ drawn: 10n, xid: 100n }, 200n);
    floor.raise(floor.view(), 7n);
    expect(floor.value).toBe(6n);
    floor.raise(floor.view(), 30n);
    expect(floor.value).toBe(10n);
  });

  it("believes a read only what was settled before the read began", () => {
    const floor = new SettledFloor();
    const begun = floor.view();
    // Row 5 commits after the read's snapshot, and the mark is settled after that.
    floor.learn({ drawn: 10n, xid: 100n }, 200n);
    floor.raise(begun, undefined);
    expect(floor.value).toBe(0n);
  });

  it("believes no read that began before a reset", () => {
    const floor = new SettledFloor();
    floor.learn({ drawn: 10n, xid: 100n }, 200n);
    const begun = floor.view();
    floor.reset();
    floor.raise(begun, undefined);
    expect(floor.value).toBe(0n);
  });

  it("forgets no mark that could still help when a long transaction holds everything back", () => {
    const floor = new SettledFloor();
    for (let i = 1n; i <= 1_000n; i += 1n) floor.learn({ drawn: i * 10n, xid: 1_000n + i }, 1_000n);
    floor.learn({ drawn: 20_000n, xid: 3_000n }, 2_500n);
    floor.raise(floor.view(), undefined);
    expect(floor.value).toBeGreaterThanOrEqual(9_000n);
    expect(floor.value).toBeLessThanOrEqual(10_000n);
  });
});
