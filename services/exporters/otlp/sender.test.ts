import { describe, expect, it } from "vitest";
import { toFailure } from "./sender.ts";

const failed = (code: number): Error => Object.assign(new Error("no"), { code });

describe("what a collector's failure means for a batch", () => {
  it("halves what is too much for the collector, and sends a single span again later", () => {
    const exhausted = failed(8);
    expect(toFailure(exhausted, 2)).toMatchObject({ code: "COLLECTOR_REJECTED", cause: exhausted });
    expect(toFailure(exhausted, 1)).toMatchObject({ code: "COLLECTOR_UNAVAILABLE", cause: exhausted });
  });

  it("takes a fault of the batch for one, and everything else for a collector that is away", () => {
    for (const code of [400, 413, 415, 422, 3, 11]) expect(toFailure(failed(code), 1).kind).toBe("poison");
    for (const code of [401, 404, 429, 503, 4, 14, 16])
      expect(toFailure(failed(code), 9).kind).toBe("transient");
    expect(toFailure(new Error("no code"), 1).kind).toBe("transient");
  });
});
