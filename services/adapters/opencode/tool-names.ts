import { toToolName } from "../../platform/adapter-kit.ts";

interface KnownTool {
  readonly tool: string;
  /** Fields of the input that name a file. */
  readonly pathFields: readonly string[];
}

const knownTools: ReadonlyMap<string, KnownTool> = new Map([
  ["bash", { tool: "shell.run", pathFields: [] }],
  ["write", { tool: "file.write", pathFields: ["filePath"] }],
  ["edit", { tool: "file.edit", pathFields: ["filePath"] }],
  ["multiedit", { tool: "file.edit", pathFields: ["filePath"] }],
  ["apply_patch", { tool: "file.patch", pathFields: [] }],
  ["patch", { tool: "file.patch", pathFields: [] }],
  ["read", { tool: "file.read", pathFields: ["filePath"] }],
  ["glob", { tool: "file.search", pathFields: ["path"] }],
  ["grep", { tool: "file.search", pathFields: ["path"] }],
  ["list", { tool: "file.search", pathFields: ["path"] }],
  ["webfetch", { tool: "web.fetch", pathFields: [] }],
  ["websearch", { tool: "web.search", pathFields: [] }],
  ["task", { tool: "agent.spawn", pathFields: [] }],
  ["todowrite", { tool: "todo.write", pathFields: [] }],
  ["todoread", { tool: "todo.read", pathFields: [] }],
  ["skill", { tool: "skill.use", pathFields: [] }],
  ["question", { tool: "user.ask", pathFields: [] }],
  ["lsp", { tool: "code.look_up", pathFields: ["filePath"] }],
]);

/**
 * The fabric's name of a tool; null when it cannot be named. A tool server's tools are named `<server>_<tool>` here, and
 * either part may hold `_`, so that nothing tells them from others: they are listed in a policy as `other.<name>`.
 */
export const toFabricTool = (alias: string): string | null =>
  knownTools.get(alias)?.tool ?? toToolName("other", [alias]);

/** The files that an input names, as the input spells them. */
export const toNamedPaths = (alias: string, input: Readonly<Record<string, unknown>>): readonly string[] =>
  (knownTools.get(alias)?.pathFields ?? []).flatMap((field) => {
    const value = Object.hasOwn(input, field) ? input[field] : undefined;
    return typeof value === "string" && value !== "" ? [value] : [];
  });
