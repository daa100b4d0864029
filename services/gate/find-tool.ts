import type { ToolEntry } from "./policy/policy.ts";

/** Whether a tool name fits a pattern, which may end in `*`. */
export function toolFits(pattern: string, tool: string): boolean {
  return pattern.endsWith("*") ? tool.startsWith(pattern.slice(0, -1)) : pattern === tool;
}

/** The entry of a tool: its own, else the longest wildcard that covers it. */
export function findTool(tools: readonly ToolEntry[], tool: string): ToolEntry | null {
  let best: ToolEntry | null = null;
  for (const entry of tools) {
    if (!toolFits(entry.tool, tool)) continue;
    if (entry.tool === tool) return entry;
    if (best === null || entry.tool.length > best.tool.length) best = entry;
  }
  return best;
}
