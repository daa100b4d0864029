import { describe, expect, it } from "vitest";
import type { FileEdit, InstallTarget } from "../../platform/runtime-room.ts";
import { hasFeatureOff, withFeatureOff, withoutFeatureLine } from "./feature-line.ts";
import { room } from "./room.ts";

const target: InstallTarget = {
  home: "/home/dev",
  form: "shell",
  gateUrl: "http://127.0.0.1:7411",
  tokenFile: "/home/dev/.fabric/hooks/codex/token",
  token: "made-up-token",
  fabricDir: "/home/dev/.fabric/hooks/codex",
  configurationHash: "hash-1",
  gatingCommand: "/bin/sh '/home/dev/.fabric/hooks/codex/hook.sh' gate 'hash-1' || exit 2",
  observingCommand: "/bin/sh '/home/dev/.fabric/hooks/codex/hook.sh' observe 'hash-1' || exit 0",
  gatingDeadlineMs: 5_000,
  observingDeadlineMs: 3_000,
  approvalWaitMs: 0,
  clientVersion: "0.169.0",
  packagesDir: "",
};
const [hooks, config] = room.setup.edits(target) as readonly [FileEdit, FileEdit];

describe("the hooks of Codex", () => {
  it("hold commands with a positive limit and nothing else: one bad entry drops the whole file", () => {
    const { hooks: events } = JSON.parse(hooks.toInstalled(null)) as {
      hooks: Record<string, { hooks: { type: string; timeout: number }[] }[]>;
    };
    const handlers = Object.values(events).flatMap((groups) => groups.flatMap((group) => group.hooks));
    expect(handlers.length).toBeGreaterThan(10);
    for (const { type, timeout } of handlers) {
      expect(type).toBe("command");
      expect(timeout).toBeGreaterThan(5);
    }
    expect(hooks.toInstalled(null)).not.toContain("made-up-token");
  });

  it("stand beside everybody else's, and go alone", () => {
    const theirs = `${JSON.stringify({ hooks: { Stop: [{ hooks: [{ type: "command", command: "say done" }] }] } }, null, 2)}\n`;
    const once = hooks.toInstalled(theirs);
    expect(hooks.toInstalled(once)).toBe(once);
    expect(hooks.toRemoved(once)).toBe(theirs);
  });
});

describe("the way to a running shell's input", () => {
  const name = "unified_exec_tty";
  const texts: Readonly<Record<string, string>> = {
    "an empty file": "",
    "no section": 'model = "gpt-5.5"\n',
    "a section": '[features]\nmulti_agent = true\n\n[tui]\ntheme = "x"\n',
    "the feature on": "[features]\nunified_exec_tty = true\n",
    "the feature off already": "[features]\nunified_exec_tty = false\n",
    "sections behind": 'a = 1\n\n[projects."/w"]\ntrust_level = "trusted"\n',
  };

  it.each(Object.entries(texts))("is closed in %s, once, and the file ends as it was", (_what, text) => {
    const once = config.toInstalled(text);
    expect(hasFeatureOff(once, name)).toBe(true);
    expect(once.match(/^unified_exec_tty\s*=/gm)).toHaveLength(1);
    expect(once.match(/^\s*\[features\]/gm)).toHaveLength(1);
    expect(config.toInstalled(once)).toBe(once);
    expect(withoutFeatureLine(once)).toBe(text);
  });

  it("keeps a section that somebody has written into since", () => {
    const once = withFeatureOff("", name, "config.toml");
    expect(withoutFeatureLine(`${once}hooks = true\n`)).toContain("[features]\nhooks = true");
  });

  it("says so instead of guessing where `features` is no section", () => {
    expect(() => config.toInstalled("features = { hooks = true }\n")).toThrow(/no section/);
    expect(() => config.toInstalled("features.hooks = true\n")).toThrow(/no section/);
  });

  it("is an opening while it is missing", () => {
    const openings = (text: string): readonly string[] =>
      room.setup.findOpenings((path) => (path.endsWith("config.toml") ? text : null), target);
    expect(openings("")).toHaveLength(1);
    expect(openings(withFeatureOff("", name, "config.toml"))).toEqual([]);
    expect(openings("[features]\nhooks = false\nunified_exec_tty = false\n")).toHaveLength(1);
  });
});
