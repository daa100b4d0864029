import { describe, expect, it } from "vitest";
import { startInTime } from "./start-in-time.ts";

const never = (): Promise<string> => new Promise(() => undefined);

describe("a start", () => {
  it("gives what was started, also when the end was asked for meanwhile and it comes in time", async () => {
    expect(await startInTime(Promise.resolve("gate"), new AbortController().signal)).toBe("gate");
    expect(await startInTime(Promise.resolve("gate"), AbortSignal.abort())).toBe("gate");
  });

  it("that hangs is left once the end is asked for, before or meanwhile", async () => {
    await expect(startInTime(never(), AbortSignal.abort(), 1)).rejects.toThrow("still being started");
    const stop = new AbortController();
    const given = startInTime(never(), stop.signal, 1);
    stop.abort();
    await expect(given).rejects.toThrow("still being started");
  });

  it("that fails says so itself", async () => {
    const given = startInTime(Promise.reject(new Error("no key")), new AbortController().signal);
    await expect(given).rejects.toThrow("no key");
  });
});
