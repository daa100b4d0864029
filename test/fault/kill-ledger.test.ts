import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { eventOf } from "../../processors/kit/given.ts";
import { draft } from "../../schemas/envelope.ts";
import { newUuidV7 } from "../../services/platform/ids.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../../services/platform/outbox.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import { openRelayRig } from "../harness/relay-rig.ts";
import type { RelayRig } from "../harness/relay-rig.ts";
import { memoryCodec } from "../harness/memory-codec.ts";
import { projectDir } from "../harness/stack.ts";
import type { ChildSettings } from "./processes/child.ts";

/** Load: 200 keys and more, 500 events a second and more, 16 transactions that overlap, 6 partitions. */
const keys = 240;
const writers = 16;
const eventsPerSecond = 600;
/** Share of transactions that roll back after their append: true gaps in the serial numbers. */
const rollbackShare = 0.05;
const partitions = 6;
const type = "agent.model.completed";
const codec = memoryCodec();

let rig: RelayRig;
let sql: Database;
const children = new Set<ChildProcess>();

beforeEach(async () => {
  rig = await openRelayRig();
  sql = openDatabase({
    url: rig.testDatabase.url,
    applicationName: "kill-ledger",
    maxConnections: writers + 4,
  });
  await sql.query(`
    CREATE SCHEMA ledger;
    CREATE TABLE ledger.rows (id bigint GENERATED ALWAYS AS IDENTITY, event_id text NOT NULL, key text NOT NULL, n bigint NOT NULL);
    CREATE TABLE ledger.counters (key text PRIMARY KEY, n bigint NOT NULL);
    GRANT USAGE ON SCHEMA ledger TO fabric_host;
    GRANT SELECT, INSERT ON ledger.rows TO fabric_host;`);
  await sql.query("INSERT INTO ledger.counters SELECT 'cor_' || i, 0 FROM generate_series(1, $1::int) i", [
    keys,
  ]);
  await rig.createTopic(type, partitions);
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  await sql.end();
  await rig.close();
});

/** A service process that is started again whenever it was killed. */
class Service {
  readonly #program: string;
  readonly #settings: ChildSettings;
  #child: ChildProcess | undefined;
  constructor(program: string, settings: Omit<ChildSettings, "brokers" | "topicPrefix">) {
    this.#program = join(projectDir, "dist", "test", "fault", "processes", `${program}.js`);
    this.#settings = { ...settings, brokers: inject("stack").kafkaBrokers, topicPrefix: rig.prefix };
  }
  async start(gap?: ChildSettings["gap"]): Promise<void> {
    if (!existsSync(this.#program))
      throw new Error("run `make test-faults`: it compiles the processes of this test");
    const child = fork(this.#program, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    children.add(child);
    this.#child = child;
    const ready = once(child, "message");
    child.send(gap === undefined ? this.#settings : { ...this.#settings, gap });
    await ready;
  }
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    children.delete(child);
  }
  /** Runs until the process stands in the gap, and kills it there. */
  async killIn(gap: NonNullable<ChildSettings["gap"]>): Promise<void> {
    await this.kill();
    await this.start(gap);
    const child = this.#child;
    if (child === undefined) throw new Error("the process was not started");
    for await (const [message] of onMessages(child)) if (message === `gap ${gap}`) break;
    await this.kill();
    await this.start();
  }
}

async function* onMessages(child: ChildProcess): AsyncGenerator<[unknown]> {
  for (;;) yield (await once(child, "message", { signal: AbortSignal.timeout(60_000) })) as [unknown];
}

/** Commits events under load until it is told to stop; returns its own log: key → numbers that were committed. */
class Generator {
  readonly committed = new Map<string, bigint[]>();
  #running = true;
  #workers: Promise<void>[] = [];
  #events = 0;
  readonly #startedMs = Date.now();

  start(): void {
    this.#workers = Array.from({ length: writers }, (_, index) => this.#work(index));
  }
  async stop(): Promise<{ events: number; perSecond: number }> {
    this.#running = false;
    await Promise.all(this.#workers);
    return { events: this.#events, perSecond: (this.#events * 1_000) / (Date.now() - this.#startedMs) };
  }
  async #work(writer: number): Promise<void> {
    for (let turn = 0; this.#running; turn += 1) {
      // Keys in a stride that makes writers meet on the same key, and lanes of one transaction differ.
      const first = (writer * 7 + turn * 13) % keys;
      const wanted = [...new Set([first, (first + 31) % keys, (first * 3 + turn) % keys])].sort(
        (a, b) => a - b,
      );
      await this.#commit(
        wanted.map((one) => `cor_${String(one + 1)}`),
        turn + writer,
      );
      notifyOutbox(sql);
      const aheadMs = (this.#events / eventsPerSecond) * 1_000 - (Date.now() - this.#startedMs);
      if (aheadMs > 0) await wait(aheadMs);
    }
  }
  async #commit(wanted: readonly string[], turn: number): Promise<void> {
    const rollsBack = turn % Math.round(1 / rollbackShare) === 0;
    const numbers: { key: string; n: bigint }[] = [];
    try {
      await sql.transaction(async (tx) => {
        // In key order: two writers that want the same keys wait, and do not deadlock.
        for (const key of wanted) {
          const { rows } = await tx.query<{ n: bigint }>(
            "UPDATE ledger.counters SET n = n + 1 WHERE key = $1 RETURNING n",
            [key],
          );
          numbers.push({ key, n: rows[0]?.n ?? 0n });
        }
        await appendOutbox(
          tx,
          toOutboxRows(
            codec,
            numbers.map(({ key, n }) => completed(key, n)),
          ),
        );
        // Held open after the append: serial numbers are drawn, and later ones commit first.
        await wait(turn % 20);
        if (rollsBack) throw new RolledBack();
      });
    } catch (error) {
      if (error instanceof RolledBack || isConflict(error)) return;
      throw error;
    }
    for (const { key, n } of numbers) this.committed.set(key, [...(this.committed.get(key) ?? []), n]);
    this.#events += numbers.length;
  }
}
class RolledBack extends Error {}
const isConflict = (error: unknown): boolean => (error as { code?: string }).code === "DATABASE_CONFLICT";

const completed = (key: string, n: bigint) =>
  eventOf(
    draft(type, {
      model: "m",
      outcome: "succeeded",
      input_tokens: null,
      cached_input_tokens: null,
      cache_write_tokens: null,
      output_tokens: n,
      reasoning_tokens: null,
      duration_ms: null,
      cost_micros: null,
      error_kind: null,
      model_call_id: null,
    }),
    {
      eventId: `evt_${newUuidV7(Date.now())}`,
      tenantId: "acme",
      correlationId: key,
      recordedAtMs: Date.now(),
    },
  );

/** The generator's log against the topic and the projection. */
interface Verdict {
  readonly committed: number;
  readonly lostOnTopic: number;
  readonly repeatedOnTopic: number;
  readonly outOfOrderOnTopic: number;
  readonly lostInProjection: number;
  readonly doubledInProjection: number;
  readonly outOfOrderInProjection: number;
}

async function compare(generator: Generator): Promise<Verdict> {
  const committed = [...generator.committed.values()].reduce((sum, numbers) => sum + numbers.length, 0);
  await eventually(
    async () => (await sql.query<{ n: number }>("SELECT count(*)::int AS n FROM outbox.events")).rows[0]?.n,
    (left) => left === 0,
    { deadlineMs: 120_000, what: "an empty outbox" },
  );
  const records = await rig.read(type);
  const onTopic = new Map<string, bigint[]>();
  for (const record of records) {
    const { envelope } = await codec.decode(record.value);
    if (envelope.type !== type) continue;
    const key = envelope.correlation_id;
    onTopic.set(key, [...(onTopic.get(key) ?? []), envelope.redacted_summary.output_tokens ?? 0n]);
  }
  const projected = async (): Promise<Map<string, bigint[]>> => {
    const { rows } = await sql.query<{ key: string; n: bigint }>(
      "SELECT key, n FROM ledger.rows ORDER BY id",
    );
    const byKey = new Map<string, bigint[]>();
    for (const { key, n } of rows) byKey.set(key, [...(byKey.get(key) ?? []), n]);
    return byKey;
  };
  await settled(records.length);
  const inProjection = await projected();
  const topicVerdict = judge(generator.committed, onTopic);
  const projectionVerdict = judge(generator.committed, inProjection);
  return {
    committed,
    lostOnTopic: topicVerdict.lost,
    repeatedOnTopic: topicVerdict.repeated,
    outOfOrderOnTopic: topicVerdict.outOfOrder,
    lostInProjection: projectionVerdict.lost,
    doubledInProjection: projectionVerdict.repeated,
    outOfOrderInProjection: projectionVerdict.outOfOrder,
  };
}

/** Waits until the host has read everything that the topic holds: its watermarks are the log's ends. */
async function settled(records: number): Promise<void> {
  await eventually(
    async () =>
      (
        await sql.query<{ n: number }>(
          "SELECT coalesce(sum(next_offset), 0)::int AS n FROM host.watermarks WHERE processor = 'ledger'",
        )
      ).rows[0]?.n,
    (read) => read === records,
    { deadlineMs: 120_000, what: `watermarks at ${String(records)}` },
  );
}

function judge(
  committed: ReadonlyMap<string, readonly bigint[]>,
  found: ReadonlyMap<string, readonly bigint[]>,
) {
  let lost = 0;
  let repeated = 0;
  let outOfOrder = 0;
  for (const [key, numbers] of committed) {
    const seen = found.get(key) ?? [];
    const first = [...new Set(seen)];
    lost += numbers.filter((n) => !first.includes(n)).length;
    repeated += seen.length - first.length;
    outOfOrder += first.filter((n, index) => index > 0 && n < (first[index - 1] ?? 0n)).length;
  }
  return { lost, repeated, outOfOrder };
}

function startAll(broken?: ChildSettings["broken"]) {
  const relayUrl = rig.testDatabase.roleUrl("fabric_relay");
  const hostUrl = rig.testDatabase.roleUrl("fabric_host");
  const services = {
    relays: ["relay-a", "relay-b"].map(
      (name) => new Service("ledger-relay", { name, databaseUrl: relayUrl }),
    ),
    hosts: ["host-a", "host-b"].map(
      (name) =>
        new Service("ledger-host", {
          name,
          databaseUrl: hostUrl,
          ...(broken === undefined ? {} : { broken }),
        }),
    ),
  };
  return {
    ...services,
    async start() {
      await Promise.all([...services.relays, ...services.hosts].map((one) => one.start()));
    },
    async end() {
      await Promise.all([...services.relays, ...services.hosts].map((one) => one.kill()));
    },
  };
}

describe("twenty kills under load", () => {
  it(
    "lose nothing, double nothing in the projection, and keep the order of each key",
    { timeout: 400_000 },
    async () => {
      const all = startAll();
      await all.start();
      const generator = new Generator();
      generator.start();
      const victims = [...all.relays, ...all.hosts];
      for (let kill = 0; kill < 16; kill += 1) {
        await wait(400 + ((kill * 137) % 900));
        const victim = victims[kill % victims.length];
        await victim?.kill();
        await victim?.start();
      }
      await all.relays[0]?.killIn("ack-delete");
      await all.relays[1]?.killIn("ack-delete");
      await all.hosts[0]?.killIn("commit-offset");
      await all.hosts[1]?.killIn("commit-offset");
      const { events, perSecond } = await generator.stop();
      const verdict = await compare(generator);
      console.info("kill ledger", { ...verdict, perSecond: Math.round(perSecond) });
      expect(events).toBeGreaterThan(5_000);
      expect(perSecond).toBeGreaterThanOrEqual(500);
      expect(verdict.repeatedOnTopic).toBeGreaterThan(0);
      expect(verdict).toEqual({
        committed: events,
        lostOnTopic: 0,
        // At least once: a kill between the ack and the delete publishes again.
        repeatedOnTopic: verdict.repeatedOnTopic,
        outOfOrderOnTopic: 0,
        lostInProjection: 0,
        doubledInProjection: 0,
        outOfOrderInProjection: 0,
      });
      await all.end();
    },
  );

  it("double the projection when the inbox claim is taken out", { timeout: 200_000 }, async () => {
    const all = startAll("no-inbox");
    await all.start();
    const generator = new Generator();
    generator.start();
    await all.relays[0]?.killIn("ack-delete");
    await all.relays[1]?.killIn("ack-delete");
    await generator.stop();
    const verdict = await compare(generator);
    expect(verdict.lostOnTopic).toBe(0);
    expect(verdict.doubledInProjection).toBeGreaterThan(0);
    await all.end();
  });

  it(
    "lose from the projection when the position is committed before the work",
    { timeout: 200_000 },
    async () => {
      const all = startAll("watermark-first");
      await all.start();
      const generator = new Generator();
      generator.start();
      await all.hosts[0]?.killIn("watermark-projection");
      await all.hosts[1]?.killIn("watermark-projection");
      await generator.stop();
      const verdict = await compare(generator);
      expect(verdict.lostOnTopic).toBe(0);
      expect(verdict.lostInProjection).toBeGreaterThan(0);
      await all.end();
    },
  );
});
