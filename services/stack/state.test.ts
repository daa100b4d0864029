import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identify } from "./process-record.ts";
import { loadOrMakeSecrets, makeClusterId, withLock } from "./state.ts";

let dir: string;
let lock: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "fabric-state-"));
  lock = join(dir, "lock");
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe("the lock of a stack", () => {
  it("lets one in at a time", async () => {
    let inside = 0;
    let most = 0;
    const visit = (): Promise<void> =>
      withLock(lock, 5_000, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await turn();
        inside -= 1;
      });
    await Promise.all(Array.from({ length: 5 }, visit));
    expect(most).toBe(1);
  });

  it("is free again after a failure", async () => {
    await expect(withLock(lock, 1_000, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await withLock(lock, 1_000, () => Promise.resolve("in"))).toBe("in");
  });

  it("is taken from a dead process, even when another has its pid now, by one alone", async () => {
    await writeFile(lock, JSON.stringify({ pid: process.pid, startedAt: "long ago" }));
    let inside = 0;
    const visit = (): Promise<number> =>
      withLock(lock, 5_000, async () => {
        inside += 1;
        await turn();
        const seen = inside;
        inside -= 1;
        return seen;
      });
    expect(await Promise.all([visit(), visit(), visit()])).toEqual([1, 1, 1]);
  });

  it("names its holder when it waited long enough", async () => {
    await writeFile(lock, JSON.stringify(await identify(process.pid)));
    await expect(withLock(lock, 100, () => Promise.resolve())).rejects.toThrow(
      `process ${String(process.pid)} holds`,
    );
  });
});

describe("the secrets of a stack", () => {
  it("are made once and readable by their owner alone", async () => {
    const made = await loadOrMakeSecrets(dir);
    expect(await loadOrMakeSecrets(dir)).toEqual(made);
    expect((await stat(join(dir, "secrets.json"))).mode & 0o777).toBe(0o600);
  });
});

describe("the cluster's id", () => {
  // One draw in 64 begins with a dash, and Kafka's format tool then says "expected one argument".
  it("never begins with a dash", () => {
    const draws = ["-first", "-second", "third"];
    expect(makeClusterId(() => draws.shift() ?? "")).toBe("third");
  });
});
