import { describe, expect, it } from "vitest";
import type { FileEdit, HookForm, InstallTarget } from "../../platform/runtime-room.ts";
import { room } from "./room.ts";

const { setup } = room;
const targetOf = (form: HookForm): InstallTarget => ({
  home: "/home/dev",
  form,
  gateUrl: "http://127.0.0.1:7411",
  tokenFile: "/home/dev/.config/fabric/claude-code/token",
  token: "made-up-token",
  fabricDir: "/home/dev/.config/fabric/claude-code",
  configurationHash: "hash-1",
  gatingCommand: "/bin/sh /home/dev/.config/fabric/claude-code/hook.sh gate hash-1",
  observingCommand: "/bin/sh /home/dev/.config/fabric/claude-code/hook.sh observe hash-1",
  gatingDeadlineMs: 5_000,
  observingDeadlineMs: 3_000,
  approvalWaitMs: 0,
  clientVersion: "2.1.328",
  packagesDir: "",
});
const editOf = (form: HookForm): FileEdit => setup.edits(targetOf(form))[0] as FileEdit;

describe("settings of Claude Code", () => {
  const theirs = JSON.stringify(
    {
      model: "opus",
      hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: "./lint.sh" }] }] },
    },
    null,
    4,
  );

  it("keep what is there, are the same after a second install, and end as they were", () => {
    for (const form of setup.forms) {
      const edit = editOf(form);
      const once = edit.toInstalled(`${theirs}\n`);
      expect(JSON.parse(once)).toMatchObject({ model: "opus" });
      expect(once).toContain("./lint.sh");
      expect(edit.toInstalled(once)).toBe(once);
      expect(edit.toRemoved(once)).toBe(`${theirs}\n`);
      expect(edit.toRemoved(edit.toInstalled(null))).toBeNull();
    }
  });

  it("close every hook in front of an effect, in every form", () => {
    for (const form of setup.forms) {
      const { hooks } = JSON.parse(editOf(form).toInstalled(null)) as {
        hooks: Record<string, [{ hooks: [Record<string, unknown>] }]>;
      };
      expect(hooks["PreToolUse"]?.[0].hooks[0]["onFailure"]).toBe("block");
      expect(hooks["PermissionRequest"]?.[0].hooks[0]["onFailure"]).toBe("block");
      expect(hooks["SessionStart"]?.[0].hooks[0]["type"]).toBe("command");
      expect(hooks).not.toHaveProperty("WorktreeCreate");
    }
  });

  it("are for their owner alone where they hold the token", () => {
    expect(editOf("http").mode).toBe(0o600);
    expect(editOf("shell").toInstalled(null)).not.toContain("made-up-token");
  });

  it("are not written over when they cannot be read", () => {
    expect(() => editOf("http").toInstalled("{ broken")).toThrow(/not JSON/);
  });

  it("say what switches hooks off", () => {
    const openingsOf = (settings: object): readonly string[] =>
      setup.findOpenings(
        (path) => (path.endsWith("/.claude/settings.json") ? JSON.stringify(settings) : null),
        targetOf("http"),
      );
    expect(openingsOf({})).toEqual([]);
    expect(openingsOf({ disableAllHooks: true })).toHaveLength(1);
    expect(openingsOf({ hooks: { Stop: [{ hooks: [{ type: "webhook" }] }] } })).toHaveLength(1);
    expect(openingsOf({ hooks: { Stop: [{ hooks: [{ type: "command", timeout: -1 }] }] } })).toHaveLength(1);
  });

  it("refuses a version that runs the tool when a hook fails", () => {
    expect(setup.refuse("2.1.197", "http")).toMatch(/2\.1\.295/);
    expect(setup.refuse("2.1.295", "http")).toBeNull();
    expect(setup.refuse("2.2.0", "shell")).toBeNull();
  });
});
