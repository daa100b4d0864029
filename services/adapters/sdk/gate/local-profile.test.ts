import { describe, expect, it } from "vitest";
import { createLocalProfile } from "./local-profile.ts";

const question = { sessionId: "s1", callId: "c1", tool: "file.read", input: {} };
const given = (expiresMs: number): object => ({
  policy_revision: "p@1",
  tools: ["file.read"],
  expires_at: new Date(expiresMs).toISOString(),
});

describe("a local profile", () => {
  // The gate gives it a minute.
  it.each([
    ["agrees", 60_000],
    ["is an hour behind the gate's", 3_660_000],
  ])("lasts a minute by a clock that %s", (_, leftMs) => {
    const profile = createLocalProfile();
    profile.take(given(1_000_000 + leftMs), 1_000_000);
    expect(profile.answer(question, "own", 1_059_999)).toMatchObject({ decision: "allow" });
    expect(profile.answer(question, "own", 1_060_000)).toBeNull();
  });

  it("answers nothing by a clock that is an hour ahead", () => {
    const profile = createLocalProfile();
    profile.take(given(1_060_000), 1_000_000 + 3_600_000);
    expect(profile.answer(question, "own", 1_000_000 + 3_600_000)).toBeNull();
  });
});
