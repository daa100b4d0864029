/** One event of a correlation, as far as the tree shows it. Times are UTC milliseconds. */
export interface TraceRow {
  readonly eventId: string;
  readonly causationId: string | null;
  readonly type: string;
  readonly recordedAtMs: number;
  readonly about: string;
}

/** An event with what it caused, oldest first. */
export interface TraceNode extends TraceRow {
  /** Its cause is named, and is not among the rows. */
  readonly orphan: boolean;
  readonly children: readonly TraceNode[];
}

/**
 * The causal forest of the rows. Arrival order does not matter; a missing parent makes its child a root that says so,
 * and a cycle (which no honest producer makes) is cut at its oldest event.
 */
export function toTraceTree(rows: readonly TraceRow[]): TraceNode[] {
  const ordered = [...rows].sort(
    (a, b) => a.recordedAtMs - b.recordedAtMs || (a.eventId < b.eventId ? -1 : 1),
  );
  const known = new Map(ordered.map((row) => [row.eventId, row]));
  const childrenOf = new Map<string, TraceRow[]>();
  const roots: TraceRow[] = [];
  for (const row of ordered) {
    const cause = row.causationId;
    if (cause === null || cause === row.eventId || !known.has(cause)) roots.push(row);
    else childrenOf.set(cause, [...(childrenOf.get(cause) ?? []), row]);
  }
  const placed = new Set<string>();
  function build(row: TraceRow): TraceNode {
    placed.add(row.eventId);
    const children: TraceNode[] = [];
    for (const child of childrenOf.get(row.eventId) ?? []) {
      if (!placed.has(child.eventId)) children.push(build(child));
    }
    const orphan = row.causationId !== null && !known.has(row.causationId);
    return { ...row, orphan, children };
  }
  const forest = roots.map(build);
  for (const row of ordered) if (!placed.has(row.eventId)) forest.push(build(row));
  return forest;
}

/** The forest as lines: offset from the first event in milliseconds, type, what it is about. */
export function renderTraceTree(forest: readonly TraceNode[]): string {
  const startMs = Math.min(...forest.map((node) => node.recordedAtMs));
  const lines: string[] = [];
  function walk(node: TraceNode, lead: string, last: boolean, root: boolean): void {
    const offset = `+${String(node.recordedAtMs - startMs)} ms`.padStart(10);
    const branch = root ? "" : last ? "└─ " : "├─ ";
    const orphan = node.orphan ? "  (cause not recorded)" : "";
    lines.push(
      `${offset}  ${lead}${branch}${node.type}${node.about === "" ? "" : `  ${node.about}`}${orphan}`,
    );
    node.children.forEach((child, index) => {
      walk(child, root ? "" : lead + (last ? "   " : "│  "), index === node.children.length - 1, false);
    });
  }
  for (const node of forest) walk(node, "", true, true);
  return lines.join("\n");
}
