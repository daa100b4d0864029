import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { eventOf } from "../../processors/kit/given.ts";
import { draft } from "../../schemas/envelope.ts";
import { newUuidV7 } from "../../services/platform/ids.ts";
import { toOutboxRows } from "../../services/platform/outbox.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { RelayRig } from "../harness/relay-rig.ts";
import { openRelayRig } from "../harness/relay-rig.ts";
import { saveCell, toCellVerdict } from "./ledger/cell-report.ts";
import { KilledService } from "./ledger/killed-service.ts";
import type { NextFile } from "./ledger/next-migrations.ts";
import { migrateUnderTraffic } from "./ledger/next-migrations.ts";
import { prepareTraffic, Traffic, trafficType } from "./ledger/traffic.ts";
import type { Release } from "./ledger/two-versions.ts";
import { addedType, codecOf, nextEncoder } from "./ledger/two-versions.ts";
import { cleanVerdict, compareLedger } from "./ledger/verdict.ts";
import type { Verdict } from "./ledger/verdict.ts";
import type { ChildSettings } from "./processes/child.ts";

const keys = 120;
const addedEvents = 20;
const stuckMs = 90_000;
const next = codecOf("next");

let rig: RelayRig;
let sql: Database;
/** What writers of now write with. */
let encoder: ReturnType<typeof nextEncoder>;
const services: KilledService[] = [];

beforeEach(async () => {
  rig = await openRelayRig();
  sql = openDatabase({ url: rig.testDatabase.url, applicationName: "rollout", maxConnections: 12 });
  encoder = codecOf("old");
  await prepareTraffic(sql, keys);
  await rig.createTopic(trafficType, 6);
  await rig.createTopic(addedType, 2);
  rig.startRelay();
});
afterEach(async () => {
  await Promise.all(services.splice(0).map((one) => one.kill()));
  await sql.end();
  await rig.close();
});

/** What the next release brings: columns in tables that every batch and every send writes, and one of the processor. */
const nextFiles: readonly NextFile[] = [
  {
    owner: "host",
    text: "ALTER TABLE watermarks ADD COLUMN next_note text; ALTER TABLE inbox ADD COLUMN next_note text NOT NULL DEFAULT '';",
  },
  { owner: "outbox", text: "ALTER TABLE events ADD COLUMN next_note text;" },
  { owner: "ledger", text: "ALTER TABLE rows ADD COLUMN note text;" },
];
const migrateNext = (): Promise<readonly string[]> =>
  migrateUnderTraffic({
    sql,
    adminUrl: rig.testDatabase.url,
    files: nextFiles,
    reads: ["host.watermarks", "host.inbox", "outbox.events", "ledger.rows"],
    whileItWaits: () => progress("any", 200),
  });

function host(name: string, release: Release, broken?: ChildSettings["broken"]): KilledService {
  const one = new KilledService("ledger-host", {
    name,
    release,
    brokers: inject("stack").kafkaBrokers,
    topicPrefix: rig.prefix,
    databaseUrl: rig.testDatabase.roleUrl("fabric_host"),
    ...(broken === undefined ? {} : { broken }),
  });
  services.push(one);
  return one;
}

const count = async (text: string): Promise<number> =>
  Number((await sql.query<{ n: bigint }>(`SELECT count(*) AS n FROM ${text}`)).rows[0]?.n);

/** Waits until so many more rows are projected, of a release or of any. */
async function progress(release: Release | "any", more = 100): Promise<void> {
  const of = {
    any: "ledger.rows",
    old: "ledger.rows WHERE note IS NULL",
    next: "ledger.rows WHERE note <> ''",
  };
  const from = await count(of[release]);
  await eventually(
    () => count(of[release]),
    (n) => n >= from + more,
    { what: `rows of ${release}`, deadlineMs: stuckMs, pollMs: 50 },
  );
}

const both = (): Promise<unknown> => Promise.all([progress("old"), progress("next")]);

const protocolOfGroup = async (): Promise<string | undefined> =>
  (await rig.admin.describeGroups([`${rig.prefix}ledger`])).groups[0]?.protocol;

function startTraffic(): Traffic {
  const traffic = new Traffic({ sql, encoder: () => encoder, keys, writers: 6, eventsPerSecond: 200 });
  traffic.start();
  return traffic;
}

const compare = (traffic: Traffic, deadlineMs = stuckMs): Promise<Verdict> =>
  compareLedger({
    committed: traffic.committed,
    sql,
    decoder: next,
    readTopic: () => rig.read(trafficType),
    deadlineMs,
  });

describe("two releases side by side in one group", () => {
  it(
    "lose, double and reorder nothing while one joins and the other leaves, through a migration, a newer schema, another protocol and a step back",
    { timeout: 600_000 },
    async () => {
      const old = [host("old-a", "old"), host("old-b", "old")] as const;
      const young = [host("next-a", "next"), host("next-b", "next")] as const;
      const ends: (number | null)[] = [];
      await Promise.all(old.map((one) => one.start()));
      const traffic = startTraffic();
      await rig.append(
        toOutboxRows(
          next,
          Array.from({ length: addedEvents }, (_, n) =>
            eventOf(
              draft("agent.turn.completed", {
                outcome: "succeeded",
                error_kind: null,
                final_message_bytes: null,
                continued_by_hook: false,
                background_tasks: 0,
              }),
              {
                eventId: `evt_${newUuidV7(Date.now())}`,
                tenantId: "acme",
                correlationId: `cor_${String(n)}`,
                recordedAtMs: Date.now(),
              },
            ),
          ),
        ),
      );
      await progress("any");
      const applied = await migrateNext();
      await progress("old");

      await young[0].start();
      await both();
      const mixedProtocol = await protocolOfGroup();
      // Producers are rolled out too: from now on events carry a field more, which the old ones have to read over.
      encoder = nextEncoder();
      await both();
      ends.push(await old[0].end());
      await both();
      await young[1].start();
      await old[1].kill();
      await progress("next");
      const nextProtocol = await eventually(protocolOfGroup, (name) => name === "NextAssigner", {
        what: "the group's protocol of the next release",
        deadlineMs: stuckMs,
      });
      // A step back: the old release comes again, beside and then instead of one of the new ones.
      await old[0].start();
      await both();
      ends.push(await young[0].end());
      await both();
      await young[0].start();
      ends.push(await old[0].end());
      await progress("next");

      const { events, perSecond } = await traffic.stop();
      const verdict = await compare(traffic);
      const added = `host.watermarks WHERE processor = 'ledger' AND topic = '${rig.prefix}${addedType}'`;
      await eventually(
        async () =>
          Number((await sql.query<{ n: bigint }>(`SELECT sum(next_offset) AS n FROM ${added}`)).rows[0]?.n),
        (n) => n === addedEvents,
        { what: "the topic that the next release reads too", deadlineMs: stuckMs },
      );
      await saveCell({
        name: "host-rollout",
        link: "host",
        fault: "two releases, a migration, a kill",
        rounds: [],
        verdict: toCellVerdict(verdict),
      });
      console.info("rollout", {
        ...verdict,
        perSecond: Math.round(perSecond),
        old: await count("ledger.rows WHERE note IS NULL"),
        next: await count("ledger.rows WHERE note IS NOT NULL"),
      });
      expect(verdict).toEqual(cleanVerdict(events, verdict.repeatedOnTopic));
      expect(applied).toEqual(["outbox", "host", "ledger"]);
      expect([mixedProtocol, nextProtocol]).toEqual(["RoundRobinAssigner", "NextAssigner"]);
      // The next release read its own field, and what was written before it.
      expect(await count("ledger.rows WHERE note = 'somebody'")).toBeGreaterThan(0);
      expect(await count("ledger.rows WHERE note = 'nobody'")).toBeGreaterThan(0);
      // All that were asked to end did so in good order.
      expect(ends).toEqual([0, 0, 0]);
    },
  );

  it(
    "count twice when the next release calls its processor by another name",
    { timeout: 200_000 },
    async () => {
      const old = host("old", "old");
      const renamed = host("next", "next", "renamed");
      await old.start();
      const traffic = startTraffic();
      await progress("any");
      await migrateNext();
      await renamed.start();
      await both();
      await traffic.stop();
      expect((await compare(traffic)).doubledInProjection).toBeGreaterThan(0);
    },
  );
});
