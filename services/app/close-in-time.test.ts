import { describe, expect, it } from "vitest";
import { createLog } from "../platform/log.ts";
import { closeInTime } from "./close-in-time.ts";

const log = createLog({ service: "test", level: "silent" });
const service = (name: string, close: () => Promise<void>, ended: string[]) => ({
  name,
  close: async () => {
    await close();
    ended.push(name);
  },
});

describe("the end of services", () => {
  it("is asked of each, in order, also behind one that fails or is silent, and tells who did not end", async () => {
    const ended: string[] = [];
    const all = [
      service("gate", () => Promise.resolve(), ended),
      service("silent", () => new Promise(() => undefined), ended),
      service("failing", () => Promise.reject(new Error("no")), ended),
      service("relay", () => Promise.resolve(), ended),
    ];
    expect(await closeInTime(all, log, { eachMs: 20, allMs: 60_000 })).toEqual(["silent"]);
    expect(ended).toEqual(["gate", "relay"]);
  });

  it("asks the last ones also when the time of all is over", async () => {
    const ended: string[] = [];
    const all = [
      service("silent", () => new Promise(() => undefined), ended),
      service("relay", () => Promise.resolve(), ended),
    ];
    expect(await closeInTime(all, log, { eachMs: 60_000, allMs: 10 })).toEqual(["silent"]);
    expect(ended).toEqual(["relay"]);
  });
});
