import { toToolName } from "../../platform/adapter-kit.ts";

interface KnownTool {
  readonly tool: string;
  /** Fields of the input that name a file. */
  readonly pathFields: readonly string[];
}

const knownTools: ReadonlyMap<string, KnownTool> = new Map([
  ["exec", { tool: "shell.run", pathFields: [] }],
  ["read", { tool: "file.read", pathFields: ["path"] }],
  ["write", { tool: "file.write", pathFields: ["path"] }],
  ["edit", { tool: "file.edit", pathFields: ["path"] }],
  ["apply_patch", { tool: "file.patch", pathFields: [] }],
  ["ls", { tool: "file.search", pathFields: ["path"] }],
  ["web_fetch", { tool: "web.fetch", pathFields: [] }],
  ["web_search", { tool: "web.search", pathFields: [] }],
  ["sessions_spawn", { tool: "agent.spawn", pathFields: [] }],
  ["sessions_send", { tool: "agent.message", pathFields: [] }],
  ["tool_search", { tool: "tool.search", pathFields: [] }],
  ["tool_describe", { tool: "tool.search", pathFields: [] }],
  // A wrapper: the tool that it calls asks for itself, with an id of its own.
  ["tool_call", { tool: "tool.search", pathFields: [] }],
]);

/** What is done with a command that runs: looking and ending are harmless, typing into it is a command of its own. */
const processTools: ReadonlyMap<string, string> = new Map([
  ["list", "shell.output"],
  ["poll", "shell.output"],
  ["log", "shell.output"],
  ["kill", "shell.stop"],
  ["remove", "shell.stop"],
  ["clear", "shell.stop"],
]);

/** The fabric's name of a tool; null when it cannot be named. */
export function toFabricTool(alias: string, input: Readonly<Record<string, unknown>>): string | null {
  if (alias === "process") {
    const action = Object.hasOwn(input, "action") ? input["action"] : undefined;
    return (typeof action === "string" ? processTools.get(action) : undefined) ?? "shell.input";
  }
  return knownTools.get(alias)?.tool ?? toToolName("other", [alias]);
}

/** The files that an input names, as the input spells them. */
export const toNamedPaths = (alias: string, input: Readonly<Record<string, unknown>>): readonly string[] =>
  (knownTools.get(alias)?.pathFields ?? []).flatMap((field) => {
    const value = Object.hasOwn(input, field) ? input[field] : undefined;
    return typeof value === "string" && value !== "" ? [value] : [];
  });
