import { setTimeout as wait } from "node:timers/promises";
import { startProcess } from "./child-process.ts";
import type { Bench, Row } from "./figure.ts";
import { median, toRow } from "./figure.ts";
import { allowedText, gateRequestBody, openGate } from "./gate-under-test.ts";
import type { HttpTarget, LoadResult } from "./http-load.ts";
import { closedLoop, openLoopHttp } from "./http-load.ts";
import { cpuMsOf, serverCpuMsOf } from "./process-use.ts";
import type { FloorResult, RecordedWrites } from "./recorded-writes.ts";
import {
  countWrites,
  createFloor,
  markTransaction,
  oneByOne,
  recordWrites,
  replayWrites,
} from "./recorded-writes.ts";

const connections = 16;
const decisionsPerSecond = 1_000;
/** Postgres alone gets as many connections as serve it best of these: the floor is to be a hard one. */
const floorWriters = [2, 4];
/** V8 compiles for the first ten to twenty thousand decisions, with as much processor time as the decisions take. */
const warmUpSeconds = 10;
const countedSeconds = 2;
/** Name that the gate's process gives to its connections. */
const gateApplication = "fabric-bench-gate";
/** A connection that fell idle reports what it wrote within ten seconds. */
const countersLateMs = 11_000;

/** Decisions with durable records over HTTP. */
export async function gate(bench: Bench): Promise<Row[]> {
  await bench.stack();
  const database = await bench.database("gate");
  const { admin } = database;
  const { target, process } = await openGate(bench, database);
  const sample = await fetch(target.url + target.path, {
    method: "POST",
    headers: target.headers,
    body: target.body(0),
  });
  const answer = await sample.text();
  if (!sample.ok) throw new Error(`the gate answered ${String(sample.status)}: ${answer}`);
  bench.progress(`the gate answers ${answer.slice(0, 160)}`);
  const bare = await startProcess("fastify-process", { path: target.path, answer });
  bench.onEnd(() => bare.stop());
  const bareTarget: HttpTarget = { ...target, url: (await bare.ask("address")) as string };
  for (const one of [target, bareTarget]) await closedLoop(one, connections, warmUpSeconds, allowedText);

  const { seconds, repetitions } = bench.sizes;
  const gateClosed: LoadResult[] = [];
  const gateOpen: LoadResult[] = [];
  const bareClosed: LoadResult[] = [];
  const bareOpen: LoadResult[] = [];
  const gateCpu: number[] = [];
  const bareCpu: number[] = [];
  const gateServer: number[] = [];
  const alone: number[] = [];
  const aloneOneByOne: number[] = [];
  const aloneServer: number[] = [];
  const recorded: RecordedWrites[] = [];
  for (let repetition = 1; repetition <= repetitions; repetition += 1) {
    const since = await markTransaction(admin);
    const cpuBeforeMs = cpuMsOf(process.pid);
    const serverBeforeMs = await serverCpuMsOf(admin, gateApplication);
    const closed = await closedLoop(target, connections, seconds, allowedText);
    gateCpu.push(((cpuMsOf(process.pid) - cpuBeforeMs) / closed.requests) * 1000);
    const serverMs = (await serverCpuMsOf(admin, gateApplication)) - serverBeforeMs;
    gateServer.push((serverMs / closed.requests) * 1000);
    gateClosed.push(closed);
    const kept = await admin.query<{ decisions: number }>(
      "SELECT count(*)::int AS decisions FROM gate.decisions WHERE xmin::text::bigint >= $1",
      [since],
    );
    const decisions = kept.rows[0]?.decisions ?? 0;
    // More are no fault: calls under way when the time was up, and those whose answer came past the budget.
    if (decisions < closed.requests)
      throw new Error(
        `${String(closed.requests)} calls were allowed, ${String(decisions)} decisions are in the database`,
      );
    const writes = await recordWrites(admin, since);
    recorded.push(writes);
    await createFloor(admin, writes);
    const floors: FloorResult[] = [];
    for (const writers of floorWriters)
      floors.push(await replayWrites(database.url, admin, writes, writers, seconds / floorWriters.length));
    const best = floors.reduce((one, other) => (other.perSecond > one.perSecond ? other : one));
    alone.push(best.perSecond);
    aloneServer.push(best.serverMicros);
    const single = await replayWrites(database.url, admin, oneByOne(writes), connections, seconds);
    aloneOneByOne.push(single.perSecond);
    const bareCpuBeforeMs = cpuMsOf(bare.pid);
    const bareResult = await closedLoop(bareTarget, connections, seconds, allowedText);
    bareClosed.push(bareResult);
    bareCpu.push(((cpuMsOf(bare.pid) - bareCpuBeforeMs) / bareResult.requests) * 1000);
    // What Postgres alone wrote is brought to the disk before, not while the gate's answers are timed.
    await admin.query("CHECKPOINT");
    gateOpen.push(await openLoopHttp(target, decisionsPerSecond, seconds, connections, allowedText));
    bareOpen.push(await openLoopHttp(bareTarget, decisionsPerSecond, seconds, connections, allowedText));
    bench.progress(
      `${String(repetition)}/${String(repetitions)} gate ${String(Math.round(closed.perSecond))}/s, bare fastify ${String(Math.round(bareResult.perSecond))}/s, Postgres alone ${String(Math.round(best.perSecond))}/s, without groups ${String(Math.round(single.perSecond))}/s; at ${String(decisionsPerSecond)}/s p50 ${(gateOpen.at(-1)?.p50 ?? 0).toFixed(1)} ms, p99 ${(gateOpen.at(-1)?.p99 ?? 0).toFixed(1)} ms`,
    );
    await admin.query("TRUNCATE outbox.events");
  }
  bench.progress("rows that a decision writes are counted");
  const stateRows = await countStateRows();
  await process.stop();
  await bare.stop();

  /** Rows inserted and updated for a decision, by the server's own counters, which come late: hence the waits. */
  async function countStateRows(): Promise<number> {
    await wait(countersLateMs);
    const before = await countWrites(admin);
    await closedLoop(target, connections, countedSeconds, allowedText);
    await wait(countersLateMs);
    const after = await countWrites(admin);
    const grown = [...after]
      .filter(([table]) => !table.startsWith("floor."))
      .map(([table, writes]) => [table, writes - (before.get(table) ?? 0)] as const);
    const decisions = new Map(grown).get("gate.decisions") ?? 0;
    return grown.reduce((sum, [, writes]) => sum + writes, 0) / decisions;
  }

  const groups = median(recorded.map((one) => one.decisions / one.groups.length));
  const refusedOf = (list: readonly LoadResult[]): string => {
    const refused = list.reduce((sum, one) => sum + one.refused, 0);
    return `${String(refused)} of ${String(list.reduce((sum, one) => sum + one.requests, refused))}`;
  };
  const note = `every decision durable before its answer, ${groups.toFixed(1)} decisions a commit, ${stateRows.toFixed(1)} rows written and ${String(Math.round(median(recorded.map((one) => one.bytesPerDecision))))} bytes kept a decision (counted in the database); ${gateRequestBody}; past the budget and so denied: ${refusedOf(gateClosed)} with 16 connections, ${refusedOf(gateOpen)} at ${String(decisionsPerSecond)}/s; load, server and database each in processes of their own on one machine`;
  const perSecond = (list: readonly LoadResult[]): number[] => list.map((one) => one.perSecond);
  const part = (list: readonly LoadResult[], name: "p50" | "p99"): number[] => list.map((one) => one[name]);
  const row = (
    name: string,
    unit: string,
    against: Row["against"],
    other: string,
    ours: readonly number[],
    theirs: readonly number[],
    target?: Row["target"],
  ): Row =>
    toRow(
      {
        name,
        unit,
        against,
        other,
        ...(target === undefined ? {} : { target }),
        command: bench.command,
        note,
      },
      ours,
      theirs,
    );
  const open = `gate at ${String(decisionsPerSecond)}/s`;
  return [
    row(
      "gate, 16 connections",
      "decisions/s",
      "limit",
      "Postgres alone, same rows in the same groups",
      perSecond(gateClosed),
      alone,
    ),
    row(
      "gate, 16 connections",
      "decisions/s",
      "limit",
      "Postgres alone, same rows, a transaction a decision, 16 connections",
      perSecond(gateClosed),
      aloneOneByOne,
      // A caller of its own per decision, as the gate's callers are; the groups are part of what the gate does.
      {
        better: "higher",
        ratio: 0.5,
      },
    ),
    row(
      "gate, 16 connections",
      "decisions/s",
      "limit",
      "bare fastify",
      perSecond(gateClosed),
      perSecond(bareClosed),
    ),
    row(
      "gate, 16 connections, p50",
      "ms",
      "limit",
      "bare fastify",
      part(gateClosed, "p50"),
      part(bareClosed, "p50"),
    ),
    row(
      "gate, 16 connections, p99",
      "ms",
      "limit",
      "bare fastify",
      part(gateClosed, "p99"),
      part(bareClosed, "p99"),
    ),
    row(
      "gate, Postgres' processor time",
      "µs/decision",
      "limit",
      "Postgres alone, same rows",
      gateServer,
      aloneServer,
    ),
    row("gate, processor time", "µs/decision", "limit", "bare fastify", gateCpu, bareCpu),
    row(`${open}, p50`, "ms", "limit", "bare fastify", part(gateOpen, "p50"), part(bareOpen, "p50")),
    row(`${open}, p99`, "ms", "limit", "bare fastify", part(gateOpen, "p99"), part(bareOpen, "p99")),
    row(
      `${open}, p99`,
      "ms",
      "budget",
      "10 ms",
      part(gateOpen, "p99"),
      gateOpen.map(() => 10),
      {
        better: "lower",
        ratio: 1,
      },
    ),
    row("gate, state rows", "rows/decision", "limit", "one row a decision", [stateRows], [1]),
  ];
}
