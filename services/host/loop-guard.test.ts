import { describe, expect, it } from "vitest";
import { eventOf } from "../../processors/kit/given.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import { cutLoops, maxHops, toCausesToFollow } from "./loop-guard.ts";

const emitted = (hopCount: number, rest: { eventId?: string; causationId?: string } = {}): Envelope =>
  eventOf(draft("fabric.takeover.noted", { item_id: "tko_1", author: "x", note: "n" }), {
    hopCount,
    origin: "processor:echo",
    ...rest,
  });

describe("a chain of emissions", () => {
  it("goes on up to its bound, and is cut and recorded past it, once for each chain", () => {
    const last = emitted(maxHops);
    const past = [emitted(maxHops + 1), emitted(maxHops + 1)];
    const { kept, notices } = cutLoops([last, ...past], 7);
    expect(kept).toEqual([last]);
    expect(notices).toMatchObject([
      {
        type: "fabric.throttle.applied",
        recorded_at: 7,
        origin: "processor:echo",
        redacted_summary: { rule: "loop.hops", action: "cut", scope: "correlation", scope_id: "cor_1" },
      },
    ]);
    expect(cutLoops(past, 8).notices[0]?.event_id).toBe(notices[0]?.event_id);
  });

  it("is cut where an event would be its own cause", () => {
    const id = "evt_01900000-0000-8000-8000-000000000009";
    const { kept, notices } = cutLoops([emitted(1, { eventId: id, causationId: id })], 7);
    expect(kept).toEqual([]);
    expect(notices).toMatchObject([{ redacted_summary: { rule: "loop.causation" } }]);
  });

  it("is cut where it comes back to the processor that began it, over however many others", () => {
    const cause = "evt_01900000-0000-8000-8000-000000000001";
    const event = emitted(4, { causationId: cause });
    expect(toCausesToFollow([event, emitted(1, { causationId: cause })])).toEqual([cause]);
    const back = cutLoops([event], 7, new Map([[cause, new Set(["relayer", "echo"])]]));
    expect([back.kept, back.notices[0]?.redacted_summary]).toMatchObject([[], { rule: "loop.causation" }]);
    expect(cutLoops([event], 7, new Map([[cause, new Set(["relayer"])]])).kept).toEqual([event]);
  });
});
