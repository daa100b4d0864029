import type { TraceSpan, TraceTree } from "../../processors/trace/queries.ts";
import { own, semantic } from "../../processors/trace/queries.ts";

/** Columns of a terminal that nobody has widened. */
const width = 80;
const offsetWidth = 8;
const durationWidth = 8;
/** Spans that are drawn; `--json` has all of them. */
const maxLines = 2_000;

/** What a span is marked with, and the word for it below the tree. */
const marks = [
  { mark: "!", word: "error", holds: (one: TraceSpan) => one.status === "error" },
  { mark: "~", word: "no event of its own came", holds: (one: TraceSpan) => one.isSynthetic },
  { mark: "…", word: "no end was recorded", holds: (one: TraceSpan) => one.attributes[own.open] === true },
  {
    mark: ">",
    word: "its clock ran before its parent's",
    holds: (one: TraceSpan) => one.attributes[own.clampedMs] !== undefined,
  },
] as const;

/** A correlation's tree in 80 columns: since the start, what, how long; marks are explained where they occur. */
export function renderSpanTree(tree: TraceTree): string {
  const [root] = tree.spans;
  if (root === undefined) return "";
  const { startMs } = root;
  const bus = toBusNotes(tree);
  const childrenOf = new Map<string, TraceSpan[]>();
  for (const span of tree.spans) {
    if (span.parentId === null || isOfBus(span)) continue;
    const siblings = childrenOf.get(span.parentId);
    if (siblings === undefined) childrenOf.set(span.parentId, [span]);
    else siblings.push(span);
  }
  const lines: string[] = [];
  const seen = new Set<string>();
  function draw(span: TraceSpan, lead: string, branch: string, below: string): void {
    if (lines.length >= maxLines) return;
    const held = marks.filter(({ holds }) => holds(span));
    for (const { mark } of held) seen.add(mark);
    const offset = `+${toDuration(span.startMs - startMs)}`.padStart(offsetWidth);
    const duration = (span.endMs === span.startMs ? "·" : toDuration(span.endMs - span.startMs)).padStart(
      durationWidth,
    );
    const onBus = bus.get(span.spanId) ?? "";
    const flags = held.map(({ mark }) => mark).join("");
    const room = width - offsetWidth - durationWidth - 4;
    const text = fit(`${lead}${branch}${flags === "" ? "" : `${flags} `}${toLabel(span)}${onBus}`, room);
    lines.push(`${offset}  ${text.padEnd(room)}  ${duration}`.trimEnd());
    const children = (childrenOf.get(span.spanId) ?? []).sort(
      (a, b) => a.startMs - b.startMs || a.endMs - b.endMs || (a.spanId < b.spanId ? -1 : 1),
    );
    children.forEach((child, index) => {
      const isLast = index === children.length - 1;
      draw(child, lead + below, isLast ? "└─ " : "├─ ", isLast ? "   " : "│  ");
    });
  }
  draw(root, "", "", "");
  const hidden = tree.spans.filter((one) => !isOfBus(one)).length - lines.length;
  return [
    `${tree.correlationId} · tenant ${tree.tenantId} · trace ${tree.traceId}`,
    toSummary(tree, root),
    "",
    ...lines,
    ...(hidden > 0 ? ["", `${String(hidden)} spans more are not drawn; --json has them`] : []),
    ...(seen.size === 0
      ? []
      : [
          "",
          marks
            .filter(({ mark }) => seen.has(mark))
            .map(({ mark, word }) => `${mark} ${word}`)
            .join("   "),
        ]),
  ].join("\n");
}

/** The way of an event over the bus is shown as one time at its decision; `--json` and exports have the spans. */
function isOfBus({ topic }: TraceSpan): boolean {
  return topic === "send" || topic === "receive" || topic === "process";
}

/** Decision → how long its event took from its commit to its projection, and to how many others of its batch it links. */
function toBusNotes({ spans }: TraceTree): ReadonlyMap<string, string> {
  const byId = new Map(spans.filter(isOfBus).map((one) => [one.spanId, one]));
  const sendOf = (one: TraceSpan): TraceSpan | undefined => {
    let at: TraceSpan | undefined = one;
    while (at !== undefined && at.topic !== "send") at = byId.get(at.parentId ?? "");
    return at;
  };
  return new Map(
    spans.flatMap((one): [string, string][] => {
      const send = one.topic === "process" ? sendOf(one) : undefined;
      if (send?.parentId == null) return [];
      const links = one.links.length === 0 ? "" : `, ${String(one.links.length)} linked`;
      return [[send.parentId, ` · bus ${toDuration(one.endMs - send.startMs)}${links}`]];
    }),
  );
}

function toSummary(tree: TraceTree, root: TraceSpan): string {
  const errors = tree.spans.filter((one) => one.status === "error").length;
  return [
    new Date(root.startMs).toISOString(),
    toDuration(root.endMs - root.startMs),
    `${String(tree.spans.length)} spans`,
    `${String(root.attributes[own.events] ?? 0)} events`,
    ...(errors === 0 ? [] : [`${String(errors)} ${errors === 1 ? "error" : "errors"}`]),
    ...(root.attributes[own.truncated] === true ? ["cut: the correlation has more"] : []),
  ].join(" · ");
}

/** What tells this span from its siblings. */
function toLabel(span: TraceSpan): string {
  const text = (name: string): string | undefined => {
    const value = span.attributes[name];
    return value === undefined ? undefined : String(value);
  };
  const more = {
    session: [text(semantic.ATTR_GEN_AI_CONVERSATION_ID)],
    turn: [text(own.outcome), text(own.turn)],
    agent: [text(semantic.ATTR_GEN_AI_AGENT_ID)],
    call: [span.errorType ?? text(own.outcome), text(semantic.ATTR_GEN_AI_TOOL_CALL_ID)],
    run: [span.errorType ?? text(own.outcome)],
    model: [tokensOf(span), span.errorType],
    decision: [text(own.reasonCode)],
    approval: [text(own.outcome), text(own.approvalId)],
    effect: [span.errorType ?? text(own.outcome)],
  }[span.topic] ?? [span.errorType];
  return [toShownName(span), ...more].filter((one) => one !== undefined && one !== null).join(" ");
}

/** The names of the conventions are for machines; a person reads the thing itself. */
function toShownName({ topic, name }: TraceSpan): string {
  if (topic === "session") return name.replace("invoke_agent", "session");
  if (topic === "agent") return name.replace("invoke_agent", "agent");
  if (topic === "call") return name.replace("execute_tool", "tool");
  return name;
}

function tokensOf({ attributes }: TraceSpan): string | undefined {
  const tokensIn = attributes[semantic.ATTR_GEN_AI_USAGE_INPUT_TOKENS];
  const tokensOut = attributes[semantic.ATTR_GEN_AI_USAGE_OUTPUT_TOKENS];
  return tokensIn === undefined ? undefined : `${String(tokensIn)}→${String(tokensOut ?? 0)} tokens`;
}

function fit(text: string, room: number): string {
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}

/** At most seven characters: 12 ms, 3.4 s, 5 m 06, 2 h 03, 4 d 02. */
function toDuration(ms: number): string {
  if (ms < 1_000) return `${String(Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  if (ms < 3_600_000) return `${String(Math.floor(ms / 60_000))} m ${two((ms % 60_000) / 1_000)}`;
  if (ms < 86_400_000) return `${String(Math.floor(ms / 3_600_000))} h ${two((ms % 3_600_000) / 60_000)}`;
  return `${String(Math.floor(ms / 86_400_000))} d ${two((ms % 86_400_000) / 3_600_000)}`;
}
