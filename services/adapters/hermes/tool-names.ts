import { toToolName } from "../../platform/adapter-kit.ts";

interface KnownTool {
  readonly tool: string;
  /** Fields of the input that name a file. */
  readonly pathFields: readonly string[];
}

const knownTools: ReadonlyMap<string, KnownTool> = new Map([
  ["terminal", { tool: "shell.run", pathFields: [] }],
  ["read_file", { tool: "file.read", pathFields: ["path"] }],
  ["write_file", { tool: "file.write", pathFields: ["path"] }],
  ["search_files", { tool: "file.search", pathFields: ["path"] }],
  // Runs a program that calls tools by itself: each asks for itself, what else it does nobody sees.
  ["execute_code", { tool: "code.run", pathFields: [] }],
  ["delegate_task", { tool: "agent.spawn", pathFields: [] }],
  ["todo", { tool: "todo.write", pathFields: [] }],
  ["web_search", { tool: "web.search", pathFields: [] }],
  ["skill_view", { tool: "skill.use", pathFields: [] }],
  ["clarify", { tool: "user.ask", pathFields: [] }],
]);
/** What is done with a command that runs: looking and ending are harmless, typing into it is a command of its own. */
const processTools: ReadonlyMap<string, string> = new Map([
  ["list", "shell.output"],
  ["poll", "shell.output"],
  ["log", "shell.output"],
  ["wait", "shell.output"],
  ["kill", "shell.stop"],
]);

const own = (input: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(input, key) ? input[key] : undefined;

/** The fabric's name of a tool; null when it cannot be named. */
export function toFabricTool(alias: string, input: Readonly<Record<string, unknown>>): string | null {
  if (alias === "process") {
    const action = own(input, "action");
    return (typeof action === "string" ? processTools.get(action) : undefined) ?? "shell.input";
  }
  // One tool in two forms: a replacement in one file, or a patch of several.
  if (alias === "patch") return own(input, "mode") === "patch" ? "file.patch" : "file.edit";
  return knownTools.get(alias)?.tool ?? toToolName("other", [alias]);
}

/** The files that an input names, as the input spells them. */
export const toNamedPaths = (alias: string, input: Readonly<Record<string, unknown>>): readonly string[] =>
  (alias === "patch" ? ["path"] : (knownTools.get(alias)?.pathFields ?? [])).flatMap((field) => {
    const value = own(input, field);
    return typeof value === "string" && value !== "" ? [value] : [];
  });
