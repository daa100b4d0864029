import { toToolName } from "../../platform/adapter-kit.ts";

const knownTools: ReadonlyMap<string, string> = new Map([
  ["Bash", "shell.run"],
  ["apply_patch", "file.patch"],
  ["spawn_agent", "agent.spawn"],
  ["update_plan", "todo.write"],
]);

const serverPrefix = "mcp__";

/** The fabric's name of a tool; null when it cannot be named. A server's name ends at the first `__`. */
export function toFabricTool(alias: string): string | null {
  const known = knownTools.get(alias);
  if (known !== undefined) return known;
  const rest = alias.startsWith(serverPrefix) ? alias.slice(serverPrefix.length) : "";
  const end = rest.indexOf("__");
  return end <= 0 || end + 2 >= rest.length
    ? toToolName("other", [alias])
    : toToolName("mcp", [rest.slice(0, end), rest.slice(end + 2)]);
}

/** The files that a patch names in its headers, as it spells them. */
export function toNamedPaths(alias: string, input: Readonly<Record<string, unknown>>): readonly string[] {
  const patch = Object.hasOwn(input, "command") ? input["command"] : undefined;
  if (alias !== "apply_patch" || typeof patch !== "string") return [];
  const headers = patch.matchAll(/^[ \t]*\*\*\* (?:Add File|Update File|Delete File|Move to):(.*)$/gm);
  return [...new Set([...headers].map(([, path]) => (path ?? "").trim()))].filter((path) => path !== "");
}
