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
  const users = ["gate", "relay", "host", "sealer", "desk", "recovery", "exporter"];
  settings = {
    FABRIC_OTLP_ENDPOINT: collector.endpoint,
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
  await Promise.all([postgres.close(), registry.close(), collector.close()]);
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
}
const silences: readonly Silence[] = [
  {
    name: "Postgres",
    begin: () => postgres.begin({ kind: "black-hole" }),
    end: () => postgres.end(),
  },
  {
    name: "the registry",
    begin: () => registry.begin({ kind: "black-hole" }),
    end: () => registry.end(),
  },
  {
    // A broker names its own address to clients, past any link: its process is stopped instead.
    name: "the broker",
    begin: () => servers.stack.kill("kafka", "SIGSTOP"),
    end: () => servers.stack.kill("kafka", "SIGCONT"),
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

describe("SIGTERM while a dependency is silent", () => {
  for (const silence of silences) {
    it(
      `${silence.name}: every service ends by itself, says how, and loses nothing`,
      { timeout: 400_000 },
      async () => {
        await startAll();
        const gates = (): ServiceProcess[] => running.filter(({ name }) => name === "gate");
        const traffic = new ServiceCallers(gates, await rig.token());
        traffic.start(4);
        await eventually(() => traffic.answered.size > 30, Boolean, { what: "answers", deadlineMs: hangMs });
        traffic.mayBreak = true;
        await silence.begin();
        // Everybody is in the middle of something with it by now.
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
        const decided = await count("gate.decisions");
        expect(await count("audit.trail WHERE event_type = 'agent.tool.requested'")).toBe(decided);
        expect(
          await count("audit.trail WHERE event_type IN ('agent.tool.authorized', 'agent.tool.denied')"),
        ).toBe(decided);
        const told = [...traffic.answered.keys()];
        const held = await rig.sql.query<{ n: bigint }>(
          "SELECT count(DISTINCT tool_call_id) AS n FROM audit.trail WHERE event_type = 'agent.tool.requested' AND tool_call_id = ANY ($1)",
          [told],
        );
        expect(Number(held.rows[0]?.n)).toBe(told.length);
        expect(await count("host.letters")).toBe(0);
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
      // Every one of them connects: an exporter or a relay is started without waiting for its database.
      await eventually(() => postgres.hits().connections >= roles.length, Boolean, {
        what: "connections that nobody answers",
        deadlineMs: hangMs,
      });
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
