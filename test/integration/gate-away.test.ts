import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GateAnswer } from "../../schemas/gate.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { GateRig, RunningGate } from "../harness/gate-rig.ts";
import { createGateRig, ownRequest } from "../harness/gate-rig.ts";
import type { TcpProxy } from "../harness/tcp-proxy.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";

let rig: GateRig;
let proxy: TcpProxy;
let database: Database;
let running: RunningGate;
/** Longer than a slow machine's decision, much shorter than the database's own time limit. */
const budgetMs = 1_000;
beforeAll(async () => {
  rig = await createGateRig();
  const address = new URL(rig.test.roleUrl("fabric_gate"));
  proxy = await startTcpProxy({ host: address.hostname, port: Number(address.port) });
  address.host = `${proxy.host}:${String(proxy.port)}`;
  database = openDatabase({
    url: address.href,
    applicationName: "gate-away",
    maxConnections: 4,
    queryTimeoutMs: 1_500,
    connectTimeoutMs: 1_500,
  });
  running = await rig.gate({ database, budgetMs, observeBudgetMs: budgetMs });
});
afterAll(async () => {
  await rig.close();
  await database.end();
  await proxy.close();
});

const ask = async (id: string): Promise<GateAnswer> =>
  (
    await running.post(
      "/v1/gate/decide",
      ownRequest("shell.run", { command: "make" }, { session_id: id, tool_call_id: id }),
    )
  ).json as GateAnswer;
const decisionsOf = (id: string): Promise<number> =>
  rig.count(`gate.decisions WHERE request ->> 'session_id' = '${id}'`);
const backToNormal = (id: string): Promise<GateAnswer> =>
  eventually(
    () => ask(id),
    (answer) => answer.decision === "allow",
  );

describe("the link to the database", () => {
  it("swallows everything: each call is denied within its budget, and calls go on when it heals", async () => {
    await backToNormal("before");
    proxy.swallow = "both";
    const startedMs = performance.now();
    const answers = await Promise.all(Array.from({ length: 10 }, (_, call) => ask(`hole-${String(call)}`)));
    expect(performance.now() - startedMs).toBeLessThan(10_000);
    expect(new Set(answers.map((one) => `${one.decision} ${one.reason_code}`))).toEqual(
      new Set(["deny GATE_TIMEOUT"]),
    );
    proxy.swallow = "none";
    await backToNormal("after-hole");
    for (const call of answers.keys()) expect(await decisionsOf(`hole-${String(call)}`)).toBe(0);
  });

  it("refuses connections: each call is denied at once with GATE_UNAVAILABLE", async () => {
    await proxy.shut();
    const denied = await ask("refused");
    expect(denied).toMatchObject({ decision: "deny", reason_code: "GATE_UNAVAILABLE" });
    expect(denied).not.toHaveProperty("capability");
    await proxy.open();
    await backToNormal("refused");
    expect(await decisionsOf("refused")).toBe(1);
  });

  it("loses the answer to a commit: the call was told no, and asked again it gets the one decision that was made", async () => {
    await backToNormal("warm");
    let isCommitting = false;
    proxy.onChunk = (direction, chunk) => {
      if (direction === "toServer" && chunk.includes("gate-commit-group")) isCommitting = true;
      return !(isCommitting && direction === "toClient");
    };
    const told = await ask("lost-ack");
    expect(told.decision).toBe("deny");
    expect(isCommitting).toBe(true);
    proxy.onChunk = null;
    proxy.reset();
    expect(await decisionsOf("lost-ack")).toBe(1);
    const again = await backToNormal("lost-ack");
    expect(again.repeated).toBe(true);
    expect(await decisionsOf("lost-ack")).toBe(1);
    expect(
      await rig.count(
        "gate.capabilities WHERE session_key IN (SELECT session_key FROM gate.sessions WHERE session_id = 'lost-ack')",
      ),
    ).toBe(1);
  });
});
