import { toToolName } from "../../platform/adapter-kit.ts";

interface KnownTool {
  readonly tool: string;
  /** Fields of the input that name a file. */
  readonly pathFields: readonly string[];
}

const knownTools: ReadonlyMap<string, KnownTool> = new Map([
  ["Bash", { tool: "shell.run", pathFields: [] }],
  ["Write", { tool: "file.write", pathFields: ["file_path"] }],
  ["Edit", { tool: "file.edit", pathFields: ["file_path"] }],
  ["MultiEdit", { tool: "file.edit", pathFields: ["file_path"] }],
  ["NotebookEdit", { tool: "file.edit", pathFields: ["notebook_path"] }],
  ["Read", { tool: "file.read", pathFields: ["file_path"] }],
  ["Glob", { tool: "file.search", pathFields: ["path"] }],
  ["Grep", { tool: "file.search", pathFields: ["path"] }],
  ["LS", { tool: "file.search", pathFields: ["path"] }],
  ["WebFetch", { tool: "web.fetch", pathFields: [] }],
  ["WebSearch", { tool: "web.search", pathFields: [] }],
  ["Agent", { tool: "agent.spawn", pathFields: [] }],
  ["Task", { tool: "agent.spawn", pathFields: [] }],
  ["TaskCreate", { tool: "todo.write", pathFields: [] }],
  ["TaskUpdate", { tool: "todo.write", pathFields: [] }],
  ["TodoWrite", { tool: "todo.write", pathFields: [] }],
  ["TodoRead", { tool: "todo.read", pathFields: [] }],
  ["TaskGet", { tool: "todo.read", pathFields: [] }],
  ["TaskList", { tool: "todo.read", pathFields: [] }],
  // Starts a command and watches what it prints.
  ["Monitor", { tool: "shell.run", pathFields: [] }],
  ["BashOutput", { tool: "shell.output", pathFields: [] }],
  ["TaskOutput", { tool: "shell.output", pathFields: [] }],
  ["AgentOutputTool", { tool: "shell.output", pathFields: [] }],
  ["KillShell", { tool: "shell.stop", pathFields: [] }],
  ["KillBash", { tool: "shell.stop", pathFields: [] }],
  ["TaskStop", { tool: "shell.stop", pathFields: [] }],
  ["Skill", { tool: "skill.use", pathFields: [] }],
  ["SlashCommand", { tool: "skill.use", pathFields: [] }],
  ["EnterPlanMode", { tool: "plan.present", pathFields: [] }],
  ["ExitPlanMode", { tool: "plan.present", pathFields: [] }],
  ["AskUserQuestion", { tool: "user.ask", pathFields: [] }],
  ["ToolSearch", { tool: "tool.search", pathFields: [] }],
  ["SendMessage", { tool: "agent.message", pathFields: [] }],
  ["NotebookRead", { tool: "file.read", pathFields: ["notebook_path"] }],
  ["LSP", { tool: "code.look_up", pathFields: ["filePath"] }],
  ["ListMcpResourcesTool", { tool: "resource.list", pathFields: [] }],
  ["ReadMcpResourceTool", { tool: "resource.read", pathFields: [] }],
  ["CronCreate", { tool: "schedule.write", pathFields: [] }],
  ["CronDelete", { tool: "schedule.write", pathFields: [] }],
  ["CronList", { tool: "schedule.read", pathFields: [] }],
  ["EnterWorktree", { tool: "workspace.enter", pathFields: [] }],
  ["ExitWorktree", { tool: "workspace.leave", pathFields: [] }],
]);

const serverPrefix = "mcp__";

/**
 * The fabric's name of a tool; null when it cannot be named. A server's name may hold `__` itself, so the payload's own
 * word on the server decides where its name ends; without one the first `__` does.
 */
export function toFabricTool(alias: string, serverName?: string): string | null {
  const known = knownTools.get(alias);
  if (known !== undefined) return known.tool;
  if (!alias.startsWith(serverPrefix)) return toToolName("other", [alias]);
  const rest = alias.slice(serverPrefix.length);
  // The client writes a server's name into tool names with `_` for what tool names may not hold.
  const server = serverName?.replace(/[^A-Za-z0-9_-]/g, "_");
  const end = server !== undefined && rest.startsWith(`${server}__`) ? server.length : rest.indexOf("__");
  return end <= 0 || end + 2 >= rest.length
    ? toToolName("other", [alias])
    : toToolName("mcp", [rest.slice(0, end), rest.slice(end + 2)]);
}

/** The files that an input names, as the input spells them. */
export const toNamedPaths = (alias: string, input: Readonly<Record<string, unknown>>): readonly string[] =>
  (knownTools.get(alias)?.pathFields ?? []).flatMap((field) => {
    const value = Object.hasOwn(input, field) ? input[field] : undefined;
    return typeof value === "string" && value !== "" ? [value] : [];
  });
