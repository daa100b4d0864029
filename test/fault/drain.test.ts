import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import type { FaultLink } from "../harness/fault-link.ts";
import { startFaultLink } from "../harness/fault-link.ts";
import type { OtlpCollector } from "../harness/otlp-collector.ts";
import { startOtlpCollector } from "../harness/otlp-collector.ts";
import { ServiceCallers } from "../harness/service-callers.ts";
import type { ServiceEnd, ServiceProcess, ServiceRig } from "../harness/service-rig.ts";
import { openServiceRig } from "../harness/service-rig.ts";
import type { CellReport } from "./ledger/cell-report.ts";
import { saveCell } from "./ledger/cell-report.ts";
import type { OwnServers } from "./ledger/own-servers.ts";
import { startOwnServers } from "./ledger/own-servers.ts";
import { overLink } from "./ledger/pipeline.ts";

const processorNames = ["audit", "breaker", "cost", "eval", "takeover", "trace"];
/** Every role of `fabric serve`; what lives by itself is alone, so that it is seen which one does not end. */
const roles: readonly (readonly string[])[] = [
  ["gate"],
  ["relay"],
  ["desk"],
  ["sealer", "exporter", "cost-watch"],
  processorNames.flatMap((name) => ["processor", name]),
];
/** A guard against a hang, twice what the product promises: the machine may be busy. */
const hangMs = 60_000;

const endsWell = /^(0|1, and names what was left)$/;

let servers: OwnServers;
let rig: ServiceRig;
let collector: OtlpCollector;
let postgres: FaultLink;
let registry: FaultLink;
let spans: FaultLink;
let settings: Readonly<Record<string, string>>;
const running: ServiceProcess[] = [];

beforeAll(async () => {
  [servers, collector] = await Promise.all([startOwnServers(), startOtlpCollector()]);
  const { stack } = servers;
  rig = await openServiceRig({ stack });
  const database = new URL(stack.postgresUrl);
  const schemas = new URL(stack.registryUrl);
  postgres = await startFaultLink({ host: database.hostname, port: Number(database.port) });
  registry = await startFaultLink({ host: schemas.hostname, port: Number(schemas.port) });
  const { port } = new URL(collector.endpoint);
  spans = await startFaultLink({ host: "127.0.0.1", port: Number(port) });
  const users = ["gate", "relay", "host", "sealer", "desk", "recovery", "exporter"];
  settings = {
    FABRIC_OTLP_ENDPOINT: overLink(collector.endpoint, spans),
    FABRIC_OTLP_HOLD_MS: "0",
    FABRIC_REGISTRY_URL: overLink(stack.registryUrl, registry),
    ...Object.fromEntries(
      users.map((user) => [
        `FABRIC_DATABASE_URL_${user.toUpperCase()}`,
        overLink(rig.database.roleUrl(`fabric_${user}`), postgres),
      ]),
    ),
  };
}, 300_000);
afterAll(async () => {
  await rig.close();
  await Promise.all([postgres, registry, spans, collector].map((one) => one.close()));
  await servers.close();
}, 120_000);

async function startAll(): Promise<void> {
  running.splice(0, running.length, ...(await Promise.all(roles.map((role) => rig.start(role, settings)))));
  await Promise.all(running.map((one) => one.untilReady()));
}

/** Something that says nothing more, and keeps its connections. */
interface Silence {
  readonly name: string;
  begin(): Promise<unknown>;
  end(): Promise<unknown>;
  /** Whether somebody met it. */
  bit(): boolean;
  /** Asked for the first events alone: the silence has to be there before them. */
  readonly isEarly?: boolean;
}

const overLinkOf = (name: string, link: () => FaultLink): Omit<Silence, "isEarly"> => ({
  name,
  begin: () => link().begin({ kind: "black-hole" }),
  end: () => link().end(),
  bit: () => link().hits().connections > 0,
});
const silences: readonly Silence[] = [
  overLinkOf("Postgres", () => postgres),
  { ...overLinkOf("the registry", () => registry), isEarly: true },
  overLinkOf("the collector of spans", () => spans),
  {
    // A broker names its own address to clients, past any link: its process is stopped instead.
    name: "the broker",
    begin: () => servers.stack.kill("kafka", "SIGSTOP"),
    end: () => servers.stack.kill("kafka", "SIGCONT"),
    bit: () => true,
  },
];

const untilEnded = (one: ServiceProcess): Promise<ServiceEnd | "hangs"> =>
  Promise.race([one.ended, wait(hangMs, "hangs" as const, { ref: false })]);

/** How a process ended, and whether it said so: 0 when all of it ended, 1 when something was left behind. */
async function described(one: ServiceProcess, end: ServiceEnd | "hangs"): Promise<string> {
  if (end === "hangs") return "hangs";
  const log = await one.log();
  const said = log.includes('"stopped"') ? "" : ", without a word of its end";
  if (end.code === 0) return `0${said}`;
  if (end.code === 1 && /did not end in time/.test(log)) return `1, and names what was left${said}`;
  return `${String(end.code ?? end.signal)}${said}: ${log.slice(-600)}`;
}

const count = async (text: string): Promise<number> =>
  Number((await rig.sql.query<{ n: bigint }>(`SELECT count(*) AS n FROM ${text}`)).rows[0]?.n);

/** What was decided, and what callers were told, against the trail. */
async function compareTrail(told: readonly string[]): Promise<CellReport["verdict"]> {
  const decided = await count("gate.decisions");
  const requested = await count("audit.trail WHERE event_type = 'agent.tool.requested'");
  const ruled = await count("audit.trail WHERE event_type IN ('agent.tool.authorized', 'agent.tool.denied')");
  const held = await rig.sql.query<{ n: bigint }>(
    "SELECT count(DISTINCT tool_call_id) AS n FROM audit.trail WHERE event_type = 'agent.tool.requested' AND tool_call_id = ANY ($1)",
    [told],
  );
  const missing = (n: number): number => Math.max(0, decided - n);
  const extra = (n: number): number => Math.max(0, n - decided);
  return {
    committed: decided,
    lost: missing(requested) + missing(ruled) + told.length - Number(held.rows[0]?.n),
    doubled: extra(requested) + extra(ruled),
    outOfOrder: 0,
    stuck: 0,
    setAside: await count("host.letters"),
    repeatedOnTopic: 0,
  };
}

describe("SIGTERM while a dependency is silent", () => {
  for (const silence of silences) {
    it(
      `${silence.name}: every service ends by itself, says how, and loses nothing`,
      { timeout: 600_000 },
      async () => {
        await startAll();
        const gates = (): ServiceProcess[] => running.filter(({ name }) => name === "gate");
        if (silence.isEarly === true) await silence.begin();
        const traffic = new ServiceCallers(gates, await rig.token());
        traffic.start(4);
        await eventually(() => traffic.answered.size > 30, Boolean, { what: "answers", deadlineMs: hangMs });
        traffic.mayBreak = true;
        if (silence.isEarly !== true) await silence.begin();
        await eventually(silence.bit, Boolean, {
          what: "somebody who meets the silence",
          deadlineMs: hangMs,
        });
        // The others are in the middle of something with it by now, too.
        await wait(1_000);
        for (const one of running) one.signal("SIGTERM");
        const ends: Record<string, string> = {};
        const tookMs: Record<string, number> = {};
        for (const one of running) {
          const end = await untilEnded(one);
          ends[one.name] = await described(one, end);
          if (end !== "hangs") tookMs[one.name] = Math.round(end.tookMs);
        }
        await silence.end();
        console.info(`SIGTERM while ${silence.name} is silent`, ends, tookMs);
        await startAll();
        const from = traffic.answered.size;
        await eventually(() => traffic.answered.size > from + 10, Boolean, {
          what: "answers",
          deadlineMs: hangMs,
        });
        traffic.mayBreak = false;
        await traffic.stop();
        for (const [name, end] of Object.entries(ends))
          expect([name, end]).toEqual([name, expect.stringMatching(endsWell)]);
        expect(traffic.broken).toEqual([]);
        await rig.untilAllIsProjected(processorNames);
        const verdict = await compareTrail([...traffic.answered.keys()]);
        await saveCell({
          name: `sigterm-${silence.name.replaceAll(" ", "-")}-silent`,
          link: silence.name,
          fault: "SIGTERM in a silence",
          rounds: [],
          verdict,
        });
        expect(verdict).toMatchObject({ lost: 0, doubled: 0, setAside: 0 });
        expect((await Promise.all(running.map((one) => one.end("SIGTERM")))).map(({ code }) => code)).toEqual(
          roles.map(() => 0),
        );
      },
    );
  }
});

describe("a service that is started while Postgres is silent", () => {
  it("ends on SIGTERM before it ever began", { timeout: 200_000 }, async () => {
    await postgres.begin({ kind: "black-hole" });
    try {
      const all = await Promise.all(roles.map((role) => rig.start(role, settings)));
      // One that says that it waits, or that it is started without its database, hears signals.
      for (const one of all)
        await eventually(
          () => one.log(),
          (text) => text.includes('"msg"'),
          {
            what: `a word of ${one.name}`,
            deadlineMs: hangMs,
          },
        );
      expect(postgres.hits().connections).toBeGreaterThan(0);
      for (const one of all) one.signal("SIGTERM");
      for (const one of all) {
        const end = await untilEnded(one);
        expect([one.name, await described(one, end)]).toEqual([one.name, expect.stringMatching(endsWell)]);
      }
    } finally {
      await postgres.end();
    }
  });
});

describe("all services in one process, as `fabric up` runs them, while Postgres is silent", () => {
  const start = async (): Promise<ServiceProcess> => {
    const all = await rig.start([], settings);
    await all.untilReady();
    await postgres.begin({ kind: "black-hole" });
    return all;
  };

  it("end by themselves on SIGTERM, and say which of them were left", { timeout: 300_000 }, async () => {
    try {
      const all = await start();
      all.signal("SIGTERM");
      const end = await untilEnded(all);
      console.info("SIGTERM of all while Postgres is silent", end);
      expect(await described(all, end)).toMatch(endsWell);
    } finally {
      await postgres.end();
    }
  });

  it("end at once on a second signal", { timeout: 300_000 }, async () => {
    try {
      const all = await start();
      all.signal("SIGTERM");
      // What follows at once is the same Ctrl-C, passed on by a wrapper too.
      all.signal("SIGTERM");
      await wait(1_500);
      expect(all.isRunning).toBe(true);
      all.signal("SIGTERM");
      expect(await untilEnded(all)).toMatchObject({ code: 130 });
    } finally {
      await postgres.end();
    }
  });
});
