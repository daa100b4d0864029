import { describe, expect, it } from "vitest";
import { isAtLeast, toVersion } from "./client-version.ts";

describe("versions of clients", () => {
  it("are found in what a client prints", () => {
    expect(toVersion("2.1.328 (Claude Code)")).toBe("2.1.328");
    expect(toVersion("codex-cli 0.169.0")).toBe("0.169.0");
    expect(toVersion("command not found")).toBeNull();
  });

  it("are compared by number", () => {
    expect(isAtLeast("2.1.1000", "2.1.295")).toBe(true);
    expect(isAtLeast("2.1.95", "2.1.295")).toBe(false);
    expect(isAtLeast("3.0.0", "2.1.295")).toBe(true);
    expect(isAtLeast("2.1.295", "2.1.295")).toBe(true);
  });
});
