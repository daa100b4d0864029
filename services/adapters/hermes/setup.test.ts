import { describe, expect, it } from "vitest";
import type { InstallTarget } from "../../platform/runtime-room.ts";
import { room } from "./room.ts";

const target: InstallTarget = {
  home: "/home/dev",
  form: "plugin",
  gateUrl: "http://127.0.0.1:4870",
  tokenFile: "/home/dev/.fabric/token",
  token: "made-up",
  fabricDir: "/home/dev/.fabric/hooks/hermes",
  configurationHash: "sha256:1",
  gatingCommand: "",
  observingCommand: "",
  gatingDeadlineMs: 2_000,
  observingDeadlineMs: 3_000,
  approvalWaitMs: 0,
  clientVersion: "0.19.0",
  packagesDir: "",
};
const path = "/home/dev/.hermes/config.yaml";
const edit = (): ReturnType<typeof room.setup.edits>[number] => {
  const found = room.setup.edits(target).find((one) => one.path === path);
  if (found === undefined) throw new Error("no edit of the configuration");
  return found;
};

describe("the installation in Hermes", () => {
  it("enables the plugin once and keeps what is there, comments too", () => {
    const before = "# mine\nmodel:\n  default: x\nplugins:\n  enabled:\n    - other\n";
    const once = edit().toInstalled(before);
    expect(once).toBe(
      "# mine\nmodel:\n  default: x\nplugins:\n  enabled:\n    - other\n    - policy-hook-fabric\n",
    );
    expect(edit().toInstalled(once)).toBe(once);
    expect(edit().toRemoved(once)).toBe(before);
  });

  it("leaves nothing behind when nothing else was there", () => {
    expect(edit().toRemoved(edit().toInstalled(null))).toBeNull();
  });

  it("refuses a file that the client would not read either", () => {
    expect(() => edit().toInstalled("a: [")).toThrow("is not YAML");
  });

  it("finds a plugin that is not enabled", () => {
    const found = (text: string): string =>
      room.setup.findOpenings((one) => (one === path ? text : null), target).join("\n");
    expect(found("model: {}\n")).toContain("unguarded");
    expect(found(edit().toInstalled(null))).toBe("");
  });

  it("refuses a version that nobody recorded", () => {
    expect(room.setup.refuse("0.18.0", "plugin")).toContain("never recorded");
    expect(room.setup.refuse("0.19.0", "plugin")).toBeNull();
  });
});
