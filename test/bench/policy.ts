import { randomBytes } from "node:crypto";
import type { GateRequest } from "../../schemas/gate.ts";
import { gateRequestSchema } from "../../schemas/gate.ts";
import { createClassifier } from "../../services/gate/classifier.ts";
import type { Facts } from "../../services/gate/facts-of-call.ts";
import { loadPolicy } from "../../services/gate/policy/load-policy.ts";
import type { Policy } from "../../services/gate/policy/policy.ts";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import { loadSqlParser } from "../../services/gate/sql/load-sql-parser.ts";
import { decide } from "../../services/gate/stages/decide.ts";
import type { Bench, Row } from "./figure.ts";
import { median, percentile, toRow } from "./figure.ts";
import { allowedText, openGate } from "./gate-under-test.ts";
import type { HttpTarget, LoadResult } from "./http-load.ts";
import { closedLoop, openLoopHttp } from "./http-load.ts";
import { idMarker } from "./id-marker.ts";
import { startOpa } from "./opa.ts";
import type { BenchBundle } from "./policy-bundle.ts";
import { writeBundle } from "./policy-bundle.ts";
import { cpuMsOf, serverCpuMsOf } from "./process-use.ts";

const connections = 16;
const decisionsPerSecond = 1_000;
/** Decisions a second that the gate is to reach with the larger bundle. */
const goalPerSecond = 2_000;
const budgetMs = 10;
const smallPolicies = 20;
const largePolicies = 200;
/** V8 compiles for the first ten to twenty thousand decisions, with as much processor time as the decisions take. */
const warmUpSeconds = 10;
const decisionsInProcess = 3_000;
const gateApplication = "fabric-bench-gate";

/** No command comes twice: nothing that is remembered of one helps the next. */
const commandText = `git status --short && git log --oneline -20 -- services/payments/${idMarker} | head -5`;
const question = {
  runtime: "claude-code",
  session_id: "session-0",
  turn_id: "turn-0",
  tool_call_id: `toolu_${idMarker}`,
  agent_id: "agent-main",
  tool: "shell.run",
  tool_alias: "Bash",
  input: { command: commandText, description: "Look at the state of the working tree before the change" },
  working_directory: "/home/dev/payments",
  permission_mode: "default",
};

/** What deciding costs, in the process and over HTTP, beside Open Policy Agent on the same payloads. */
export async function policy(bench: Bench): Promise<Row[]> {
  const small = await writeBundle(bench, smallPolicies);
  const large = await writeBundle(bench, largePolicies);
  return [...(await inProcess(bench, [small, large])), ...(await overHttp(bench, large))];
}

interface Costs {
  readonly p50: number[];
  readonly p99: number[];
  readonly mean: number[];
}

async function inProcess(bench: Bench, bundles: readonly BenchBundle[]): Promise<Row[]> {
  const [bash, sql] = await Promise.all([loadBashParser(), loadSqlParser()]);
  const classify = createClassifier({ bash, sql });
  const rows: Row[] = [];
  for (const bundle of bundles) {
    const loaded = await loadPolicy(bundle.dir);
    const name = `decide, ${String(bundle.policies)} policies`;
    const whole = (request: GateRequest): unknown =>
      decide(request, neutralFacts(), loaded, { classify, operands: [] });
    const understand = (request: GateRequest): unknown => classify(request, loaded);
    const decided: Costs = { p50: [], p99: [], mean: [] };
    const understood: Costs = { p50: [], p99: [], mean: [] };
    const asked: Costs = { p50: [], p99: [], mean: [] };
    for (let repetition = 0; repetition <= bench.sizes.repetitions; repetition += 1) {
      // The first round warms up.
      const keep = repetition > 0;
      measure(whole, keep ? decided : null);
      measure(understand, keep ? understood : null);
      measure(askCedar(loaded), keep ? asked : null);
    }
    bench.progress(
      `${name}: p50 ${median(decided.p50).toFixed(0)} µs, p99 ${median(decided.p99).toFixed(0)} µs; of it understanding ${median(understood.mean).toFixed(0)} µs, Cedar ${median(asked.mean).toFixed(0)} µs (means)`,
    );
    const note = `${String(decisionsInProcess)} different commands, in one process; of the mean, understanding the command ${median(understood.mean).toFixed(0)} µs and Cedar ${median(asked.mean).toFixed(0)} µs`;
    const budget = { against: "budget", other: "10 ms", command: bench.command, note } as const;
    const budgets = decided.p99.map(() => budgetMs * 1_000);
    rows.push(
      toRow({ ...budget, name: `${name}, p50`, unit: "µs" }, decided.p50, budgets),
      toRow(
        { ...budget, name: `${name}, p99`, unit: "µs", target: { better: "lower", ratio: 1 } },
        decided.p99,
        budgets,
      ),
    );
  }
  return rows;
}

function measure(what: (request: GateRequest) => unknown, into: Costs | null): void {
  const requests = Array.from({ length: decisionsInProcess }, () => nextRequest());
  const took = requests.map((request) => {
    const startedMs = performance.now();
    what(request);
    return (performance.now() - startedMs) * 1_000;
  });
  if (into === null) return;
  into.p50.push(percentile(took, 0.5));
  into.p99.push(percentile(took, 0.99));
  into.mean.push(took.reduce((sum, one) => sum + one, 0) / took.length);
}

/** Cedar alone, asked what it is asked for such a command. */
function askCedar(loaded: Policy): (request: GateRequest) => unknown {
  return (request) =>
    loaded.cedar.ask({
      tenant: "acme",
      user: "dev",
      agent: request.agent_id ?? "",
      runtime: request.runtime,
      tool: request.tool,
      action: "run",
      effect: "execute",
      dataClass: "internal",
      environment: "bench",
      signals: [],
      labels: [],
    });
}

function nextRequest(): GateRequest {
  return gateRequestSchema.parse(
    JSON.parse(JSON.stringify(question).replaceAll(idMarker, randomBytes(6).toString("hex"))),
  );
}

function neutralFacts(): Facts {
  return {
    nowMs: Date.now(),
    environment: "bench",
    tenant: { id: "acme", state: "active", version: 1 },
    session: { version: 0, labels: [], openApprovals: 0, deferredSinceMs: null },
    approval: null,
    isRevoked: false,
    counters: {},
    dated: {},
  };
}

async function overHttp(bench: Bench, bundle: BenchBundle): Promise<Row[]> {
  await bench.stack();
  const database = await bench.database("policy");
  const { admin } = database;
  const gate = await openGate(bench, database, bundle.dir);
  const target: HttpTarget = {
    ...gate.target,
    body: (agent) => JSON.stringify({ ...question, session_id: `session-${String(agent)}` }),
  };
  const opa = await startOpa(bench, bundle.denied);
  const opaTarget: HttpTarget = {
    url: opa.url,
    path: opa.path,
    headers: { "content-type": "application/json" },
    body: (agent) => JSON.stringify({ input: { ...question, session_id: `session-${String(agent)}` } }),
  };
  for (const one of [target, opaTarget]) await closedLoop(one, connections, warmUpSeconds, allowedText);
  const ours: LoadResult[] = [];
  const theirs: LoadResult[] = [];
  const oursOpen: LoadResult[] = [];
  const theirsOpen: LoadResult[] = [];
  const node: number[] = [];
  const server: number[] = [];
  for (let repetition = 1; repetition <= bench.sizes.repetitions; repetition += 1) {
    const cpuMs = cpuMsOf(gate.process.pid);
    const serverMs = await serverCpuMsOf(admin, gateApplication);
    const closed = await closedLoop(target, connections, bench.sizes.seconds, allowedText);
    node.push(((cpuMsOf(gate.process.pid) - cpuMs) / closed.requests) * 1_000);
    server.push((((await serverCpuMsOf(admin, gateApplication)) - serverMs) / closed.requests) * 1_000);
    ours.push(closed);
    theirs.push(await closedLoop(opaTarget, connections, bench.sizes.seconds, allowedText));
    // What the closed loop wrote is brought to the disk before, not while answers are timed.
    await admin.query("CHECKPOINT");
    oursOpen.push(
      await openLoopHttp(target, decisionsPerSecond, bench.sizes.seconds, connections, allowedText),
    );
    theirsOpen.push(
      await openLoopHttp(opaTarget, decisionsPerSecond, bench.sizes.seconds, connections, allowedText),
    );
    bench.progress(
      `${String(repetition)}/${String(bench.sizes.repetitions)} gate ${closed.perSecond.toFixed(0)}/s, OPA ${(theirs.at(-1)?.perSecond ?? 0).toFixed(0)}/s; at ${String(decisionsPerSecond)}/s p99 ${(oursOpen.at(-1)?.p99 ?? 0).toFixed(1)} and ${(theirsOpen.at(-1)?.p99 ?? 0).toFixed(1)} ms`,
    );
    await admin.query("TRUNCATE outbox.events");
  }
  const refused = ours.concat(oursOpen).reduce((sum, one) => sum + one.refused, 0);
  const note = `${String(bundle.policies)} policies; the gate parses the command and keeps a durable record, OPA matches ${String(bundle.denied.length + 10)} patterns over the text and keeps nothing; no command comes twice; processor time a decision: gate ${median(node).toFixed(0)} µs, Postgres ${median(server).toFixed(0)} µs; answers past the budget and so denied: ${String(refused)}`;
  const base = { command: bench.command, note };
  const peer = { ...base, against: "peer", other: "OPA over HTTP" } as const;
  const part = (list: readonly LoadResult[], name: "perSecond" | "p50" | "p99"): number[] =>
    list.map((one) => one[name]);
  const name = `gate, ${String(bundle.policies)} policies, ${String(connections)} connections`;
  const open = `gate, ${String(bundle.policies)} policies, at ${String(decisionsPerSecond)}/s`;
  return [
    toRow({ ...peer, name, unit: "decisions/s" }, part(ours, "perSecond"), part(theirs, "perSecond")),
    toRow(
      {
        ...base,
        name,
        unit: "decisions/s",
        against: "budget",
        other: "2,000/s",
        target: { better: "higher", ratio: 1 },
      },
      part(ours, "perSecond"),
      ours.map(() => goalPerSecond),
    ),
    toRow({ ...peer, name: `${name}, p50`, unit: "ms" }, part(ours, "p50"), part(theirs, "p50")),
    toRow({ ...peer, name: `${name}, p99`, unit: "ms" }, part(ours, "p99"), part(theirs, "p99")),
    toRow({ ...peer, name: `${open}, p99`, unit: "ms" }, part(oursOpen, "p99"), part(theirsOpen, "p99")),
    toRow(
      {
        ...base,
        name: `${open}, p99`,
        unit: "ms",
        against: "budget",
        other: "10 ms",
        target: { better: "lower", ratio: 1 },
      },
      part(oursOpen, "p99"),
      oursOpen.map(() => budgetMs),
    ),
  ];
}
