import { afterAll, beforeAll, expect, it } from "vitest";
import { audit } from "../../processors/audit/audit.ts";
import type { Common } from "../../services/cli/actions.ts";
import { readActions } from "../../services/app/read-actions.ts";
import { loadConfig } from "../../services/platform/config.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TraceHistory } from "../harness/trace-history.ts";
import { traceHistory } from "../harness/trace-history.ts";
import type { TraceRig } from "../harness/trace-rig.ts";
import { openTraceRig } from "../harness/trace-rig.ts";

let rig: TraceRig;
let histories: readonly TraceHistory[];
beforeAll(async () => {
  rig = await openTraceRig();
  // Of the second one the trail alone is there yet.
  histories = [traceHistory({ seed: 1, calls: 8 }), traceHistory({ seed: 2, calls: 8 })];
  await rig.project(histories[0]?.events ?? []);
  const host = openDatabase({
    url: rig.database.roleUrl("fabric_host"),
    applicationName: "trace-command",
    searchPath: ["audit"],
  });
  const events = histories.flatMap((one) => one.events);
  const changes = events.flatMap((event, index) =>
    audit.project(event, { topic: event.type, partition: 0, offset: BigInt(index) }),
  );
  await host.transaction((tx) => audit.apply(tx, changes));
  await host.end();
});
afterAll(() => rig.close());

const { trace } = readActions(() =>
  Promise.resolve(
    loadConfig({
      env: {
        FABRIC_KAFKA_BROKERS: "127.0.0.1:1",
        FABRIC_REGISTRY_URL: "http://127.0.0.1:1",
        FABRIC_DATABASE_URL_AUDITOR: rig.database.roleUrl("fabric_auditor"),
      },
    }),
  ),
);
const ask = (id: string) => trace({} as Common, { id });

it("draws the spans for a correlation, a session, an event, a call and a decision", async () => {
  const history = histories[0];
  const call = history?.events.find((one) => one.execution.tool_call_id !== null);
  const decision = history?.events.find((one) => one.type === "agent.tool.authorized");
  const ids = [
    history?.correlationId,
    "s1",
    history?.events[5]?.event_id,
    decision?.type === "agent.tool.authorized" ? decision.redacted_summary.decision_id : undefined,
  ];
  for (const id of ids) {
    const report = await ask(id ?? "");
    expect(report.text, id).toContain("cor_1 · tenant acme · trace ");
    expect(report.text.split("\n").filter((line) => line.length > 80)).toEqual([]);
  }
  expect((await ask(call?.execution.tool_call_id ?? "")).text).toContain("cor_1 · tenant acme");
});

it("draws the events of the trail where there are no spans yet, and says when there is nothing", async () => {
  const report = await ask("cor_2");
  expect(report.text).toContain("agent.session.started");
  expect(report.text).not.toContain("trace ");
  expect(await ask("cor_3")).toMatchObject({ exit: 1, json: [] });
});
