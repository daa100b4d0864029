import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endRecorded, identify, launch, loadLive, parseRecord, startOfStat } from "./process-record.ts";

const stat = (pid: number, name: string, state: string, start: number, threads = 1): string =>
  `${String(pid)} (${name}) ${state} 1 ${String(pid)} ${String(pid)} 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 ${String(threads)} 0 ${String(start)} 100 200`;

describe("a process record", () => {
  it("finds the start time behind a name with spaces and brackets", () => {
    expect(startOfStat(stat(7, "a) b (c", "S", 4711), "boot\n")).toBe("4711@boot");
  });

  it("counts a zombie as dead", () => {
    expect(startOfStat(stat(7, "java", "Z", 4711), "boot")).toBeUndefined();
  });

  it("counts a zombie as alive while threads of it still hold its ports", () => {
    expect(startOfStat(stat(7, "java", "Z", 4711, 3), "boot")).toBe("4711@boot");
  });

  it("is nothing when it is cut short", () => {
    for (const text of ["", "\n", "12\n", "0\n0 (init) S\n", "abc\nMon Nov 30\n"])
      expect(parseRecord(text)).toBeUndefined();
  });

  it("reads the start time of ps where there is no /proc", () => {
    expect(parseRecord("42\nMon Nov 30 16:09:32 2026\n")).toEqual({
      pid: 42,
      startedAt: "Mon Nov 30 16:09:32 2026",
    });
  });
});

describe("a recorded process", () => {
  let dir: string;
  let recordFile: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "fabric-record-"));
    recordFile = join(dir, "process");
  });
  afterEach(async () => {
    await endRecorded(recordFile, "SIGKILL", 1_000);
    await rm(dir, { recursive: true, force: true });
  });

  const launchSleep = (script = "exec sleep 60"): ReturnType<typeof launch> =>
    launch(
      { command: "/bin/sh", args: ["-c", script], env: process.env, cwd: dir },
      recordFile,
      join(dir, "log"),
    );

  it("is on record under its own identity once it was launched", async () => {
    const launched = await launchSleep();
    expect(await loadLive(recordFile)).toEqual(launched);
  });

  it("ends when asked, and its record with it", async () => {
    const launched = await launchSleep();
    await endRecorded(recordFile, "SIGTERM", 2_000);
    expect(await identify(launched?.pid ?? 0)).toBeUndefined();
    await expect(readFile(recordFile)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("is killed when it does not listen", async () => {
    const launched = await launchSleep("trap '' TERM; echo up; while :; do sleep 0.05; done");
    await endRecorded(recordFile, "SIGTERM", 200);
    expect(await identify(launched?.pid ?? 0)).toBeUndefined();
  });

  it("is never taken for a later process with the same pid", async () => {
    const stranger = spawn("sleep", ["60"]);
    try {
      const pid = stranger.pid ?? 0;
      await writeFile(recordFile, `${String(pid)}\n${stat(pid, "sleep", "S", 1)}\nsome-boot\n`);
      expect(await loadLive(recordFile)).toBeUndefined();
      await endRecorded(recordFile, "SIGKILL", 1_000);
      expect(await identify(pid)).toBeDefined();
    } finally {
      stranger.kill("SIGKILL");
    }
  });
});
