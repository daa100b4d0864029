import { describe, expect, it } from "vitest";
import { toFabricTool, toNamedPaths } from "./tool-names.ts";

describe("names of tools", () => {
  it.each([
    ["Bash", "shell.run"],
    ["Write", "file.write"],
    ["Edit", "file.edit"],
    ["MultiEdit", "file.edit"],
    ["NotebookEdit", "file.edit"],
    ["Read", "file.read"],
    ["Glob", "file.search"],
    ["Grep", "file.search"],
    ["LS", "file.search"],
    ["WebFetch", "web.fetch"],
    ["WebSearch", "web.search"],
    ["Agent", "agent.spawn"],
    ["Task", "agent.spawn"],
    ["TaskCreate", "todo.write"],
    ["TaskUpdate", "todo.write"],
    ["TodoWrite", "todo.write"],
    ["EnterWorktree", "workspace.enter"],
    ["ExitWorktree", "workspace.leave"],
    ["mcp__gate__echo", "mcp.gate.echo"],
    ["mcp__gate__a__b", "mcp.gate.a__b"],
    ["bash", "other.bash"],
    ["Skill", "skill.use"],
    ["SlashCommand", "skill.use"],
    ["Monitor", "shell.run"],
    ["BashOutput", "shell.output"],
    ["KillShell", "shell.stop"],
    ["ExitPlanMode", "plan.present"],
    ["AskUserQuestion", "user.ask"],
    ["skill", "other.skill"],
    ["__proto__", "other.__proto__"],
    ["constructor", "other.constructor"],
    ["mcp__", "other.mcp__"],
    ["mcp__gate", "other.mcp__gate"],
    ["mcp____echo", "other.mcp____echo"],
    ["mcp__gate__", "other.mcp__gate__"],
    ["mcp__gate__a.b", "mcp.gate.a-0x2e-b"],
  ])("%s is %s", (alias, tool) => {
    expect(toFabricTool(alias)).toBe(tool);
  });

  it("end a server's name where the payload says that it ends", () => {
    expect(toFabricTool("mcp__a__b__c", "a__b")).toBe("mcp.a__b.c");
    expect(toFabricTool("mcp__plugin_x_y__go", "plugin:x:y")).toBe("mcp.plugin_x_y.go");
    expect(toFabricTool("mcp__a__b__c", "elsewhere")).toBe("mcp.a.b__c");
    expect(toFabricTool("Bash", "gate")).toBe("shell.run");
  });
});

describe("files that an input names", () => {
  it("come from the field that this tool reads them from, and only as text", () => {
    expect(toNamedPaths("Write", { file_path: "a", path: "b" })).toEqual(["a"]);
    expect(toNamedPaths("NotebookEdit", { notebook_path: "n" })).toEqual(["n"]);
    expect(toNamedPaths("Grep", { pattern: "x" })).toEqual([]);
    expect(toNamedPaths("Read", { file_path: 7 })).toEqual([]);
    expect(toNamedPaths("Bash", { command: "cat a" })).toEqual([]);
  });
});
