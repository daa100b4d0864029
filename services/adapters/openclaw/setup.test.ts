import { describe, expect, it } from "vitest";
import type { InstallTarget } from "../../platform/runtime-room.ts";
import { room } from "./room.ts";

const target: InstallTarget = {
  home: "/home/dev",
  form: "plugin",
  gateUrl: "http://127.0.0.1:4870",
  tokenFile: "/home/dev/.fabric/token",
  token: "made-up",
  fabricDir: "/home/dev/.fabric/hooks/openclaw",
  configurationHash: "sha256:1",
  gatingCommand: "",
  observingCommand: "",
  gatingDeadlineMs: 2_000,
  observingDeadlineMs: 3_000,
  approvalWaitMs: 0,
  clientVersion: "2026.9.6",
  packagesDir: "",
};
const path = "/home/dev/.openclaw/openclaw.json";
const folder = "/home/dev/.fabric/hooks/openclaw/plugin";
const edit = (): ReturnType<typeof room.setup.edits>[number] => {
  const found = room.setup.edits(target).find((one) => one.path === path);
  if (found === undefined) throw new Error("no edit of the configuration");
  return found;
};

describe("the installation in OpenClaw", () => {
  it("names the plugin beside everybody else's, once, and may see prompts and runs", () => {
    const before = JSON.stringify({ plugins: { allow: ["a"], load: { paths: ["/a"] } }, theme: 1 });
    const once = edit().toInstalled(before);
    expect(JSON.parse(once)).toMatchObject({
      theme: 1,
      plugins: {
        enabled: true,
        allow: ["a", "policy-hook-fabric"],
        load: { paths: ["/a", folder] },
        entries: { "policy-hook-fabric": { enabled: true, hooks: { allowConversationAccess: true } } },
      },
    });
    expect(edit().toInstalled(once)).toBe(once);
    expect(JSON.parse(edit().toRemoved(once) ?? "")).toEqual({
      theme: 1,
      plugins: { enabled: true, allow: ["a"], load: { paths: ["/a"] } },
    });
  });

  it("leaves nothing behind when nothing else was there", () => {
    expect(edit().toRemoved(edit().toInstalled(null))).toBeNull();
  });

  it("finds what keeps the plugin from being loaded", () => {
    const found = (settings: object): string =>
      room.setup.findOpenings((one) => (one === path ? JSON.stringify(settings) : null), target).join("\n");
    expect(found({})).toContain("unguarded");
    expect(found({ plugins: { enabled: false, load: { paths: [folder] } } })).toContain("switched off");
    expect(found({ plugins: { allow: ["a"], load: { paths: [folder] } } })).toContain("does not name");
    expect(found({ plugins: { load: { paths: [folder] } } })).toBe("");
  });

  it("refuses a version that nobody recorded", () => {
    expect(room.setup.refuse("1.0.0", "plugin")).toContain("never recorded");
    expect(room.setup.refuse("2026.9.6", "plugin")).toBeNull();
  });
});
