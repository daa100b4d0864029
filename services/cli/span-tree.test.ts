import { describe, expect, it } from "vitest";
import type { TraceSpan, TraceTree } from "../../processors/trace/queries.ts";
import { renderSpanTree } from "./span-tree.ts";

const span = (spanId: string, parentId: string | null, fields: Partial<TraceSpan> = {}): TraceSpan => ({
  spanId,
  parentId,
  topic: "call",
  kind: "internal",
  name: "execute_tool shell.run",
  startMs: 1_767_225_600_000,
  endMs: 1_767_225_600_000,
  status: "unset",
  errorType: null,
  attributes: {},
  links: [],
  isSynthetic: false,
  isComplete: true,
  ...fields,
});
const at = (ms: number): number => 1_767_225_600_000 + ms;
const treeOf = (spans: readonly TraceSpan[]): TraceTree => ({
  tenantId: "acme",
  correlationId: "cor_1",
  traceId: "0123456789abcdef0123456789abcdef",
  clientSpanId: null,
  holdsUntilMs: null,
  spans,
});
const story = treeOf([
  span("r", null, { topic: "goal", name: "goal", endMs: at(75_000), attributes: { "fabric.events": 9 } }),
  span("s", "r", {
    topic: "session",
    name: "invoke_agent claude-code",
    endMs: at(75_000),
    attributes: { "gen_ai.conversation.id": "s1" },
  }),
  span("t", "s", { topic: "turn", name: "turn", startMs: at(5), endMs: at(70_000), isSynthetic: true }),
  span("c", "t", {
    startMs: at(12),
    endMs: at(3_412),
    status: "error",
    errorType: "tool_failed",
    attributes: { "gen_ai.tool.call.id": "c1" },
  }),
  span("d", "c", {
    topic: "decision",
    name: "gate allow",
    startMs: at(12),
    endMs: at(14),
    attributes: { "fabric.reason_code": "READ_ONLY" },
  }),
  span("x", "d", { topic: "send", name: "send agent.tool.authorized", startMs: at(14), endMs: at(20) }),
  span("y", "x", {
    topic: "process",
    name: "process agent.tool.authorized",
    startMs: at(20),
    endMs: at(31),
    attributes: { "messaging.batch.message_count": 3 },
    links: ["00-0000000000000000000000000000000a-000000000000000b-01"],
  }),
  span("u", "c", {
    topic: "run",
    name: "run shell.run",
    startMs: at(412),
    endMs: at(3_412),
    status: "error",
    errorType: "tool_failed",
  }),
  span("e", "t", {
    topic: "effect",
    name: "effect http",
    startMs: at(4_000),
    endMs: at(4_000),
    attributes: { "fabric.open": true },
  }),
]);

describe("a tree in the terminal", () => {
  it("shows since when, what, how long, and explains its marks", () => {
    expect(renderSpanTree(story)).toMatchInlineSnapshot(`
      "cor_1 · tenant acme · trace 0123456789abcdef0123456789abcdef
      2026-01-01T00:00:00.000Z · 1 m 15 · 9 spans · 9 events · 2 errors

         +0 ms  goal                                                            1 m 15
         +0 ms  └─ session claude-code s1                                       1 m 15
         +5 ms     └─ ~ turn                                                    1 m 09
        +12 ms        ├─ ! tool shell.run tool_failed c1                         3.4 s
        +12 ms        │  ├─ gate allow READ_ONLY · bus 17 ms, 1 linked            2 ms
       +412 ms        │  └─ ! run shell.run tool_failed                          3.0 s
        +4.0 s        └─ … effect http                                               ·

      ! error   ~ no event of its own came   … no end was recorded"
    `);
  });

  it("keeps to 80 columns, however deep and long the names", () => {
    const deep = Array.from({ length: 30 }, (_, n) =>
      span(`x${String(n)}`, n === 0 ? "r" : `x${String(n - 1)}`, {
        name: `execute_tool ${"long".repeat(30)}`,
      }),
    );
    const text = renderSpanTree(treeOf([...story.spans.slice(0, 1), ...deep]));
    expect(
      text
        .split("\n")
        .slice(3)
        .filter((line) => line.length > 80),
    ).toEqual([]);
  });

  it("draws two thousand spans of a large tree and says that there are more", () => {
    const many = Array.from({ length: 5_000 }, (_, n) => span(`x${String(n)}`, "r"));
    const text = renderSpanTree(treeOf([...story.spans.slice(0, 1), ...many]));
    expect(text).toContain("3001 spans more are not drawn");
  });
});
