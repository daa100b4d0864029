import { describe, expect, it } from "vitest";
import { WakeUp } from "./wake-up.ts";

const never = new AbortController().signal;

describe("wake-up", () => {
  it("does not lose a ring that comes before the wait", async () => {
    const bell = new WakeUp();
    bell.ring();
    expect(await bell.wait(60_000, never)).toBe(true);
  });

  it("answers one wait per ring, however often it rang", async () => {
    const bell = new WakeUp();
    bell.ring();
    bell.ring();
    await bell.wait(60_000, never);
    expect(await bell.wait(1, never)).toBe(false);
  });

  it("ends a wait under way", async () => {
    const bell = new WakeUp();
    const waiting = bell.wait(60_000, never);
    bell.ring();
    expect(await waiting).toBe(true);
    const stop = new AbortController();
    const stopped = bell.wait(60_000, stop.signal);
    stop.abort();
    expect(await stopped).toBe(false);
    expect(await bell.wait(60_000, stop.signal)).toBe(false);
  });
});
