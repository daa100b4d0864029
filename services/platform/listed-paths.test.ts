import { describe, expect, it } from "vitest";
import { toListedPaths, toPathText } from "./listed-paths.ts";

const token = `ghp_${"a1B2".repeat(9)}`;

describe("paths in events", () => {
  it("show no token, and ordinary paths as they are", () => {
    expect(toPathText(`/srv/${token}/notes.txt`)).not.toContain(token);
    expect(toPathText("/workspace/src/main.ts")).toBe("/workspace/src/main.ts");
  });

  it("stay far below a broker's limit, however many and long they are", () => {
    const listed = toListedPaths(
      Array.from({ length: 45_000 }, (_, index) => `/${"x".repeat(4_000)}/${String(index)}`),
    );
    expect(listed.length).toBe(64);
    expect(Math.max(...listed.map((path) => path.length))).toBeLessThanOrEqual(512);
  });
});
