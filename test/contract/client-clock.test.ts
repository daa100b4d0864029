import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { claudeCode } from "../../services/adapters/claude-code/claude-code.ts";
import { codexAppServer } from "../../services/adapters/codex/app-server/app-server.ts";
import { codex } from "../../services/adapters/codex/codex.ts";
import { hermes } from "../../services/adapters/hermes/hermes.ts";
import { maf } from "../../services/adapters/maf/maf.ts";
import { openclaw } from "../../services/adapters/openclaw/openclaw.ts";
import { opencode } from "../../services/adapters/opencode/opencode.ts";
import { replayRecording, recordings } from "../harness/app-server-recordings.ts";

const corpus = fileURLToPath(new URL("../corpus/hooks", import.meta.url));
const hourMs = 3_600_000;
/** Times as clients write them: milliseconds or seconds of these years, or ISO 8601. */
const isTime = (value: number): boolean => value > 1.6e9 && value < 2.1e9;
const isoPattern = /^20\d\d-\d\d-\d\dT[\d:.]+Z$/;

/** The payload of a client whose clock is off. */
function withClock(value: unknown, byMs: number): unknown {
  if (typeof value === "number") {
    if (isTime(value / 1000)) return value + byMs;
    return isTime(value) ? value + byMs / 1000 : value;
  }
  if (typeof value === "string" && isoPattern.test(value))
    return new Date(Date.parse(value) + byMs).toISOString();
  if (Array.isArray(value)) return value.map((one) => withClock(one, byMs));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withClock(one, byMs)]));
}

const ofFiles = [claudeCode, codex, opencode, openclaw, hermes, maf].flatMap((adapter) =>
  readdirSync(join(corpus, adapter.runtime))
    .filter((name) => name.endsWith(".json"))
    .map((name) => ({
      adapter,
      name: `${adapter.runtime}/${name}`,
      payload: JSON.parse(readFileSync(join(corpus, adapter.runtime, name), "utf8")) as unknown,
    })),
);
const ofWire = recordings.flatMap((name) =>
  replayRecording(name).map(({ payload }) => ({
    adapter: codexAppServer,
    name: `app-server/${name}`,
    payload: payload,
  })),
);

describe("a client whose clock is an hour off", () => {
  it.each([-hourMs, hourMs])("by %i ms tells the same: what is recorded has the gate's time", (byMs) => {
    let changed = 0;
    for (const { adapter, name, payload } of [...ofFiles, ...ofWire]) {
      const shifted = withClock(payload, byMs);
      if (JSON.stringify(shifted) === JSON.stringify(payload)) continue;
      changed += 1;
      expect(adapter.translate(shifted, 100), name).toEqual(adapter.translate(payload, 100));
    }
    expect(changed).toBeGreaterThan(50);
  });

  it("in the middle of a model call tells no duration of less than nothing", () => {
    const found = ofFiles.find(({ name }) => name === "opencode/event.message.updated.assistant.json");
    const durations = (payload: unknown): readonly unknown[] => {
      const read = opencode.translate(payload, 100);
      return read.kind === "observed"
        ? read.observations.map(
            ({ draft }) => (draft.redacted_summary as { duration_ms?: unknown }).duration_ms,
          )
        : [read.kind];
    };
    const text = JSON.stringify(found?.payload);
    const completedMs = Number(/"completed":(\d+)/.exec(text)?.[1]);
    const back = text.replace(String(completedMs), String(completedMs - hourMs));
    expect(durations(found?.payload)).toEqual([expect.any(BigInt)]);
    expect(durations(JSON.parse(back))).toEqual([null]);
  });
});
