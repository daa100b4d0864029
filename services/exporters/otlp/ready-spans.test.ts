import { resourceFromAttributes } from "@opentelemetry/resources";
import { describe, expect, it } from "vitest";
import type { TraceSpan, TraceTree } from "../../../processors/trace/queries.ts";
import { toReadableSpan } from "./readable-span.ts";
import type { Look, SentSpan } from "./ready-spans.ts";
import { toReady } from "./ready-spans.ts";

const span = (spanId: string, fields: Partial<TraceSpan> = {}): TraceSpan => ({
  spanId,
  parentId: "0000000000000001",
  topic: "call",
  kind: "internal",
  name: "execute_tool shell.run",
  startMs: 1_767_225_600_123,
  endMs: 1_767_225_600_456,
  status: "unset",
  errorType: null,
  attributes: {},
  links: [],
  isSynthetic: false,
  isComplete: true,
  ...fields,
});
const root = span("0000000000000001", { parentId: null, topic: "goal", name: "goal", isComplete: false });
const treeOf = (spans: readonly TraceSpan[], holdsUntilMs: number | null = null): TraceTree => ({
  tenantId: "acme",
  correlationId: "cor_1",
  traceId: "0123456789abcdef0123456789abcdef",
  clientSpanId: null,
  holdsUntilMs,
  spans,
});
const look: Look = { nowMs: 1_000, arrivedMs: 900, holdMs: 500, frozen: null };
const none: ReadonlyMap<string, SentSpan> = new Map();
const idsOf = (ready: ReturnType<typeof toReady>) => ready.outgoing.map((one) => one.span.spanId);

describe("what can be sent", () => {
  it("is what is complete, and everything once the trace is quiet", () => {
    const open = span("0000000000000003", { isComplete: false });
    const tree = treeOf([root, span("0000000000000002"), open]);
    expect(toReady(tree, none, look)).toMatchObject({ lookAtMs: 1_400, late: [] });
    expect(idsOf(toReady(tree, none, look))).toEqual(["0000000000000002"]);
    const quiet = toReady(tree, none, { ...look, nowMs: 1_400 });
    expect(quiet.lookAtMs).toBeNull();
    expect(quiet.outgoing).toHaveLength(3);
  });

  it("waits for a deadline that somebody waits for, and the hold after it", () => {
    const tree = treeOf([root], 60_000);
    expect(toReady(tree, none, { ...look, nowMs: 50_000 })).toMatchObject({ outgoing: [], lookAtMs: 60_500 });
    expect(toReady(tree, none, { ...look, nowMs: 60_500 }).outgoing).toHaveLength(1);
  });

  it("is never what was sent before; more that became known is late, once", () => {
    const tree = treeOf([root, span("0000000000000002")]);
    const [sent] = toReady(tree, none, look).outgoing;
    const before = (isLate: boolean) =>
      new Map([
        ["0000000000000002", { spanId: "0000000000000002", fingerprint: sent?.fingerprint ?? "", isLate }],
      ]);
    expect(toReady(tree, before(false), look)).toMatchObject({ outgoing: [], late: [] });
    const changed = treeOf([root, span("0000000000000002", { endMs: 1_767_225_700_000 })]);
    expect(toReady(changed, before(false), look)).toMatchObject({ outgoing: [], late: ["0000000000000002"] });
    expect(toReady(changed, before(true), look)).toMatchObject({ outgoing: [], late: [] });
  });

  it("goes out under the ids that its trace began with", () => {
    const frozen = { traceId: "f".repeat(32), clientSpanId: "e".repeat(16) };
    expect(toReady(treeOf([span("0000000000000002")]), none, { ...look, frozen }).outgoing[0]).toMatchObject(
      frozen,
    );
  });
});

describe("a span as the SDK takes it", () => {
  const resource = resourceFromAttributes({});
  const readable = (one: TraceSpan, clientSpanId: string | null = null) =>
    toReadableSpan(
      {
        tenantId: "acme",
        correlationId: "cor_1",
        traceId: "0123456789abcdef0123456789abcdef",
        clientSpanId,
        span: one,
        fingerprint: "",
      },
      resource,
    );

  it("keeps milliseconds, names the class of an error, and leaves other statuses without", () => {
    const failed = readable(span("0000000000000002", { status: "error", errorType: "tool_failed" }));
    expect(failed).toMatchObject({
      startTime: [1_767_225_600, 123_000_000],
      duration: [0, 333_000_000],
      status: { code: 2, message: "tool_failed" },
      attributes: { "error.type": "tool_failed" },
      parentSpanContext: { spanId: "0000000000000001", isRemote: false },
    });
    expect(readable(span("0000000000000002")).status).toEqual({ code: 0 });
    const point = readable(span("0000000000000002", { endMs: 1_767_225_600_123 }));
    expect(point).toMatchObject({ endTime: [1_767_225_600, 123_001_000], duration: [0, 1_000] });
  });

  it("hangs the root on the client's span, as a remote one, and links what is not its parent", () => {
    const parent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    const other = "00-0123456789abcdef0123456789abcdef-00000000000000aa-01";
    const remote = readable({ ...root, links: [parent, other, "nonsense"] }, "0123456789abcdef");
    expect(remote.parentSpanContext).toMatchObject({ spanId: "0123456789abcdef", isRemote: true });
    expect(remote.links.map(({ context }) => context.spanId)).toEqual(["00000000000000aa"]);
    expect(readable(root).parentSpanContext).toBeUndefined();
  });
});
