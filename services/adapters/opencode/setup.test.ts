import { describe, expect, it } from "vitest";
import type { InstallTarget } from "../../platform/runtime-room.ts";
import { room } from "./room.ts";

const target: InstallTarget = {
  home: "/home/dev",
  form: "plugin",
  gateUrl: "http://127.0.0.1:4870",
  tokenFile: "/home/dev/.fabric/token",
  token: "made-up",
  fabricDir: "/home/dev/.fabric/hooks/opencode",
  configurationHash: "sha256:1",
  gatingCommand: "",
  observingCommand: "",
  gatingDeadlineMs: 2_000,
  observingDeadlineMs: 3_000,
  approvalWaitMs: 0,
  clientVersion: "1.18.33",
  packagesDir: "",
};
const config = "/home/dev/.config/opencode/opencode.json";
const entry = "file:///home/dev/.fabric/hooks/opencode/plugin/index.mjs";
const edit = (path: string): ReturnType<typeof room.setup.edits>[number] => {
  const found = room.setup.edits(target).find((one) => one.path.endsWith(path));
  if (found === undefined) throw new Error(`no edit of ${path}`);
  return found;
};

describe("the installation in OpenCode", () => {
  it("puts the plugin after everybody else's, once, and keeps what is there", () => {
    const before = '{ "theme": "dark", "plugin": ["other"] }';
    const once = edit("opencode.json").toInstalled(before);
    expect(JSON.parse(once)).toEqual({ theme: "dark", plugin: ["other", entry] });
    expect(edit("opencode.json").toInstalled(once)).toBe(once);
  });

  it("leaves nothing behind when it is taken out", () => {
    const { toInstalled, toRemoved } = edit("opencode.json");
    expect(toRemoved(toInstalled(null))).toBeNull();
    expect(JSON.parse(toRemoved(toInstalled('{"plugin":["other"],"a":1}')) ?? "")).toEqual({
      plugin: ["other"],
      a: 1,
    });
    expect(edit("plugin/index.mjs").toRemoved("x")).toBeNull();
  });

  it("refuses a file that the client would not read either", () => {
    expect(() => edit("opencode.json").toInstalled("{ no json")).toThrow("is not JSON");
  });

  it("hands the plugin the gate, the token's file and the hash of what is installed, and no token", () => {
    const settings = edit("fabric.json").toInstalled(null);
    expect(JSON.parse(settings)).toMatchObject({
      gate_url: target.gateUrl,
      token_file: target.tokenFile,
      configuration_hash: "sha256:1",
    });
    expect(settings).not.toContain("made-up");
  });

  it("finds a plugin that is not named, and one that could change what was judged", () => {
    const found = (text: string | null): readonly string[] =>
      room.setup.findOpenings((path) => (path === config ? text : null), target);
    expect(found(null).join()).toContain("unguarded");
    expect(found(JSON.stringify({ plugin: [entry, "later"] })).join()).toContain("put ours last");
    expect(found(JSON.stringify({ plugin: ["earlier", entry] }))).toEqual([]);
  });

  it("refuses a person's own commands, which nothing can judge, and finds it when somebody lets them run", () => {
    const installed = edit("fabric.json").toInstalled(null);
    expect(JSON.parse(installed)).toMatchObject({ user_shell: "refuse" });
    const found = (settings: string): string =>
      room.setup
        .findOpenings((path) => {
          if (path === config) return JSON.stringify({ plugin: [entry] });
          return path.endsWith("/fabric.json") ? settings : null;
        }, target)
        .join();
    expect(found(installed)).toBe("");
    expect(found(installed.replace("refuse", "allow"))).toContain("runs unseen");
  });

  it("refuses a version that nobody recorded", () => {
    expect(room.setup.refuse("1.17.9", "plugin")).toContain("never recorded");
    expect(room.setup.refuse("1.18.33", "plugin")).toBeNull();
  });
});
