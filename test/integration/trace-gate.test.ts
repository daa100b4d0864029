import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadTraces } from "../../processors/trace/queries.ts";
import type { TraceTree } from "../../processors/trace/queries.ts";
import { trace } from "../../processors/trace/trace.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { renderSpanTree } from "../../services/cli/span-tree.ts";
import type { GateRig } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";
import { projectDir } from "../harness/stack.ts";
import { openDatabase } from "../../services/platform/postgres.ts";

let rig: GateRig;
let events: readonly Envelope[];
let trees: readonly TraceTree[];
beforeAll(async () => {
  rig = await createGateRig();
  const running = await rig.gate();
  for (const runtime of ["claude-code", "codex"]) {
    const dir = join(projectDir, "test", "corpus", "hooks", runtime);
    for (const file of readdirSync(dir).sort()) {
      if (!file.endsWith(".json") || file.startsWith("_")) continue;
      await running.post(`/v1/hooks/${runtime}`, readFileSync(join(dir, file), "utf8"));
    }
  }
  const wanted = new Set<string>(trace.topics);
  events = (await rig.events()).filter(({ type }) => wanted.has(type));
  const host = openDatabase({
    url: rig.test.roleUrl("fabric_host"),
    applicationName: "trace-gate",
    searchPath: ["trace"],
  });
  try {
    // Newest first: the worst order there is.
    for (const event of [...events].reverse()) {
      const changes = trace.project(event, { topic: event.type, partition: 0, offset: 0n });
      await host.transaction((tx) => trace.apply(tx, changes));
    }
    const keys = new Map(
      events.map(({ tenant_id: tenantId, correlation_id: correlationId }) => [
        correlationId,
        { tenantId, correlationId },
      ]),
    );
    trees = await loadTraces(host, [...keys.values()]);
  } finally {
    await host.end();
  }
});
afterAll(() => rig.close());

const spansOf = (topic: string) => trees.flatMap(({ spans }) => spans.filter((one) => one.topic === topic));

it("makes one tree of what real clients and the real gate recorded, with one root and no orphan each", () => {
  expect(trees.length).toBeGreaterThan(1);
  for (const { spans } of trees) {
    const ids = new Set(spans.map(({ spanId }) => spanId));
    expect(ids.size).toBe(spans.length);
    expect(spans.filter(({ parentId }) => parentId === null || !ids.has(parentId))).toHaveLength(1);
  }
});

it("has one span per call and per decision, the decision below its call", () => {
  const calls = new Set(
    events.flatMap(({ type, correlation_id: correlation, execution }) =>
      /^agent[.](tool|permission)[.]/.test(type) && execution.tool_call_id !== null
        ? [`${correlation} ${execution.session_id ?? ""} ${execution.tool_call_id}`]
        : [],
    ),
  );
  const named = spansOf("call").filter(({ attributes }) => attributes["gen_ai.tool.call.id"] !== undefined);
  expect(named).toHaveLength(calls.size);
  const decisions = events.filter(({ type }) => /^agent[.]tool[.](authorized|denied|deferred)$/.test(type));
  expect(spansOf("decision")).toHaveLength(decisions.length);
  const callIds = new Set(spansOf("call").map(({ spanId }) => spanId));
  expect(spansOf("decision").filter(({ parentId }) => !callIds.has(parentId ?? ""))).toEqual([]);
});

it("draws them in 80 columns", () => {
  const longest = [...trees].sort((a, b) => b.spans.length - a.spans.length)[0];
  const text = longest === undefined ? "" : renderSpanTree(longest);
  if (process.env["SHOW"] === "1") process.stderr.write(text + "\n");
  expect(
    text
      .split("\n")
      .slice(3)
      .filter((line) => line.length > 80),
  ).toEqual([]);
});
