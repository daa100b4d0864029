import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { firstChoice, isFree, pickPort } from "./ports.ts";

const none: ReadonlySet<number> = new Set();

describe("the ports of a stack", () => {
  it("are the same at the next start, and others for another stack", () => {
    expect(firstChoice("/a/.fabric/local", "kafka")).toBe(firstChoice("/a/.fabric/local", "kafka"));
    expect(firstChoice("/a/.fabric/test", "kafka")).not.toBe(firstChoice("/a/.fabric/local", "kafka"));
  });

  it("are kept while they are free, and given up when somebody else took them", async () => {
    const kept = await pickPort("/a", "postgres", undefined, none);
    expect(await pickPort("/b", "postgres", kept, none)).toBe(kept);
    const stranger = createServer();
    await new Promise<void>((resolve) => stranger.listen(kept, "127.0.0.1", resolve));
    try {
      expect(await isFree(kept)).toBe(false);
      expect(await pickPort("/a", "postgres", kept, none)).not.toBe(kept);
    } finally {
      stranger.close();
    }
  });

  it("never meet a port that another part will take", async () => {
    const first = await pickPort("/a", "kafka", undefined, none);
    expect(await pickPort("/a", "kafka", first, new Set([first]))).not.toBe(first);
  });
});
