import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { Storm } from "../harness/storm-rig.ts";
import { openStorm, spawnRequest } from "../harness/storm-rig.ts";
import type { Bench, Row } from "./figure.ts";
import { median, toRow } from "./figure.ts";

/** Sub-agents that one goal may start in a minute before it is a storm. */
const fanOutLimit = 20;
/** Storms for each repetition of the run. */
const stormsPerRepetition = 10;
/** The pace of a storm, below what a gate takes, so that what is measured is the detection and not a queue. */
const everyMs = 20;
/** From the event that crosses the limit to the gates' refusal (DESIGN 11). */
const boundMs = 2_000;
/** A storm that is not stopped by then never will be. */
const maxSpawns = 2_000;

interface Stopped {
  /** From the recording of the spawn that passed the limit to the moment from which every gate refuses. */
  readonly detectionMs: number;
  /** Spawns that were allowed past the limit. */
  readonly over: number;
}

/** How long a storm of agents goes on past its limit, and how many it still starts. */
export async function storm(bench: Bench): Promise<Row[]> {
  const { kafkaBrokers: brokers } = await bench.stack();
  const database = await bench.database("storm");
  const world = await openStorm({
    brokers,
    databaseUrl: database.url,
    roleUrl: (role) => database.roleUrl(role),
    projectDir: bench.projectDir,
    spawnLimit: 1_000_000,
    thresholds: [
      {
        scope: "correlation",
        measure: "fan_out",
        windowMs: 60_000,
        limit: BigInt(fanOutLimit),
        minCount: 1n,
        resetAfterMs: null,
      },
    ],
  });
  bench.onEnd(() => world.close());
  await runStorm(world);
  const stopped: Stopped[] = [];
  const count = bench.sizes.repetitions * stormsPerRepetition;
  for (let index = 0; index < count; index += 1) {
    const one = await runStorm(world);
    stopped.push(one);
    bench.progress(
      `storm ${String(index + 1)}/${String(count)}: seen after ${one.detectionMs.toFixed(0)} ms, ${String(one.over)} spawns past the limit`,
    );
  }
  const delays = stopped.map(({ detectionMs }) => detectionMs);
  const over = stopped.map((one) => one.over);
  const note = `${String(count)} storms of one agent every ${String(everyMs)} ms, limit ${String(fanOutLimit)} a goal; two gates, relay, breaker on real Kafka and Postgres in one process; past the limit: median ${String(median(over))}, most ${String(Math.max(...over))} agents started`;
  const row = (name: string, ours: readonly number[]): Row =>
    toRow(
      {
        name,
        unit: "ms",
        against: "budget",
        other: "2 s",
        target: { better: "lower", ratio: 1 },
        command: bench.command,
        note,
      },
      ours,
      ours.map(() => boundMs),
    );
  return [row("storm seen, median", [median(delays)]), row("storm seen, worst", [Math.max(...delays)])];
}

/** Starts agents of one goal until a gate refuses. */
async function runStorm(world: Storm): Promise<Stopped> {
  const root = `storm-${randomUUID()}`;
  let goal = "";
  for (let spawn = 0; spawn < maxSpawns; spawn += 1) {
    const parent = spawn === 0 ? {} : { parent_session_id: root };
    const session = spawn === 0 ? root : `${root}.${String(spawn)}`;
    const answer = await world.decide(spawnRequest(session, parent), spawn);
    if (spawn === 0) goal = answer.correlation_id;
    if (answer.reason_code === "READ_ONLY_BREAKER") return stoppedAt(world, goal);
    if (answer.decision !== "allow") throw new Error(`a storm ended by ${answer.reason_code}`);
    await wait(everyMs);
  }
  throw new Error(`no breaker tripped within ${String(maxSpawns)} spawns`);
}

async function stoppedAt(world: Storm, goal: string): Promise<Stopped> {
  const { rows } = await world.sql.query<{ crossed_at: Date; held_at: Date; allowed: bigint }>(
    `SELECT (SELECT decided_at FROM gate.decisions WHERE correlation_id = $1::uuid AND decision = 'allow'
        ORDER BY decided_at OFFSET $2 LIMIT 1) AS crossed_at,
      (SELECT declared_at FROM incidents.holds WHERE scope_id = $3 AND source = 'breaker') AS held_at,
      (SELECT count(*) FROM gate.decisions WHERE correlation_id = $1::uuid AND decision = 'allow') AS allowed`,
    [goal.slice("cor_".length), fanOutLimit, goal],
  );
  const [row] = rows;
  if (row === undefined) throw new Error("a storm was stopped by nobody");
  return {
    detectionMs: row.held_at.getTime() - row.crossed_at.getTime(),
    over: Number(row.allowed) - fanOutLimit,
  };
}
