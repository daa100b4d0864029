/** Whether a tool name fits a pattern, which may end in `*`. */
export function toolFits(pattern: string, tool: string): boolean {
  return pattern.endsWith("*") ? tool.startsWith(pattern.slice(0, -1)) : pattern === tool;
}

/** Whether some tool could fit both patterns. */
export function patternsMeet(one: string, other: string): boolean {
  return toolFits(one, other) || toolFits(other, one);
}

/** The entry of a tool: its own, else the longest wildcard that covers it. */
export function findTool<T extends { readonly tool: string }>(tools: readonly T[], tool: string): T | null {
  let best: T | null = null;
  for (const entry of tools) {
    if (!toolFits(entry.tool, tool)) continue;
    // A server can name its tool `*`: that is no more listed than any other that the wildcard covers.
    if (entry.tool === tool && !entry.tool.endsWith("*")) return entry;
    if (best === null || entry.tool.length > best.tool.length) best = entry;
  }
  return best;
}
