import { inject } from "vitest";
import type { Processor } from "../../processors/kit/processor.ts";
import type { Emission } from "../../processors/kit/emission.ts";
import { eventTypes } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { toKey } from "../../schemas/envelope.ts";
import type { Step, Work } from "../../services/host/batch-steps.ts";
import { liveSteps } from "../../services/host/batch-steps.ts";
import type { Host } from "../../services/host/host.ts";
import { HostDied } from "../../services/host/run-slice.ts";
import type { KafkaRecord, ProducerPort } from "../../services/platform/kafka.ts";
import { createKafkaProducer } from "../../services/platform/kafka-producer.ts";
import { createLog } from "../../services/platform/log.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { eventually } from "../harness/eventually.ts";
import type { HostRig } from "../harness/host-rig.ts";
import { openHostRig } from "../harness/host-rig.ts";
import type { Mishap, Part } from "./deliver.ts";
import { projections } from "./dump.ts";
import { processors } from "./settings.ts";

const partitions = 2;
/** Events of one transaction of the clean run. */
const cleanBatch = 250;
const settleMs = 120_000;

/** What may be planted: the inbox's answer is not heeded; the position is made durable before the work is. */
export type Defect = "none" | "no-inbox" | "watermark-first";

/** What a run said besides its tables: items that were announced, each with its cause before it. */
export type Announced = readonly string[];

/** One topic set and one database for many histories, one after the other. */
export class HistoryRig {
  readonly sql: Database;
  readonly #rig: HostRig;
  #producer: ProducerPort;
  readonly #direct: ReadonlyMap<string, Database>;
  readonly #defect: Defect;
  /** Records on each topic since the rig was opened. */
  readonly #published = new Map<string, number>();
  #host: Mortal | null = null;
  /** Hosts that died in the middle of a slice of this history. */
  deaths = 0;

  private constructor(
    rig: HostRig,
    producer: ProducerPort,
    direct: ReadonlyMap<string, Database>,
    defect: Defect,
  ) {
    this.sql = rig.sql;
    this.#rig = rig;
    this.#producer = producer;
    this.#direct = direct;
    this.#defect = defect;
  }

  static async open(defect: Defect = "none"): Promise<HistoryRig> {
    const rig = await openHostRig();
    // The trail refuses what a test does between two histories.
    for (const table of ["trail", "blocks"])
      await rig.sql.query(`ALTER TABLE audit.${table} DISABLE TRIGGER USER`);
    await rig.createTopics(eventTypes, partitions);
    const producer = await newProducer();
    const direct = new Map(
      processors.map(({ name }) => [
        name,
        openDatabase({
          url: rig.database.roleUrl("fabric_host"),
          applicationName: "clean-run",
          searchPath: [name],
          maxConnections: 1,
        }),
      ]),
    );
    return new HistoryRig(rig, producer, direct, defect);
  }

  async close(): Promise<void> {
    await this.#host?.stop();
    await this.#producer.close();
    await Promise.all([...this.#direct.values()].map((one) => one.end()));
    await this.#rig.close();
  }

  /** Empties what histories fill; positions stay. */
  async clear(names: readonly string[] = Object.keys(projections)): Promise<void> {
    const { rows } = await this.sql.query<{ name: string }>(
      "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = ANY ($1::text[])",
      [names],
    );
    await this.sql.query(`TRUNCATE ${rows.map(({ name }) => name).join(", ")}`);
    await this.sql.query("DELETE FROM host.inbox WHERE processor = ANY ($1::text[])", [names]);
  }

  /** Forgets what the histories before said. */
  async forget(): Promise<void> {
    if (!(await this.#isSettled())) {
      // The history before failed half way: what is left of it must not run into the next one.
      await this.#host?.stop();
      this.#host = this.#start();
      await this.#settled();
    }
    await this.clear();
    await this.sql.query("TRUNCATE host.letters, outbox.events");
  }

  /** Ids of events that a processor set aside. */
  async setAside(): Promise<readonly string[]> {
    const { rows } = await this.sql.query<{ id: string }>(
      "SELECT DISTINCT 'evt_' || event_id AS id FROM host.letters ORDER BY 1",
    );
    return rows.map(({ id }) => id);
  }

  /** Each event once, in order, without a log and without a host. */
  async runClean(events: readonly Envelope[], impossible: ReadonlySet<string>): Promise<Announced> {
    const said: string[] = [];
    for (const processor of processors) {
      const database = this.#direct.get(processor.name);
      if (database === undefined) throw new Error(`no connection for ${processor.name}`);
      const own = events.filter(
        (event) =>
          processor.topics.includes(event.type) &&
          !(processor.name === "cost" && impossible.has(event.event_id)),
      );
      for (let from = 0; from < own.length; from += cleanBatch) {
        const changes = own
          .slice(from, from + cleanBatch)
          .flatMap((event, index) =>
            processor.project(event, { topic: event.type, partition: 0, offset: BigInt(from + index) }),
          );
        if (changes.length === 0) continue;
        const emitted = await database.transaction((tx) => processor.apply(tx, changes));
        said.push(...emitted.flatMap(announcedBy));
      }
    }
    return [...new Set(said)].sort();
  }

  /** The same history as it may come: out of order, in copies, to hosts that die. */
  async runWild(parts: readonly Part[]): Promise<Announced> {
    this.deaths = 0;
    const begins = await this.#positions();
    for (const { events, mishap, hasGuest } of parts) {
      this.#host ??= this.#start();
      const host = this.#host;
      if (mishap !== null) host.dieAt(mishap);
      const guest = hasGuest ? this.#start() : null;
      await this.#publish(events);
      if (mishap === null) {
        if (guest !== null) {
          await this.#settled();
          await guest.stop();
        }
        continue;
      }
      await eventually(async () => host.isDead || (await this.#isSettled()), Boolean, {
        deadlineMs: settleMs,
        what: "the death of a host, or the end of the log",
      });
      if (host.isDead) this.deaths += 1;
      await host.stop();
      this.#host = null;
      await this.#setBack(mishap, begins);
    }
    this.#host ??= this.#start();
    await this.#settled();
    const emitted = await this.#rig.outbox();
    const said = emitted.flatMap((event) =>
      event.type === "fabric.takeover.opened"
        ? [`${event.redacted_summary.cause} ${event.redacted_summary.item_id}`]
        : [],
    );
    return [...new Set(said)].sort();
  }

  #start(): Mortal {
    const life = new Life(this.#defect, this.sql);
    const host = this.#rig.start(processors, {
      steps: life.steps,
      fanOutLimit: { maxEmissions: 10_000_000, windowMs: 60_000 },
    });
    return {
      stop: () => host.stop(),
      health: () => host.health(),
      dieAt: (mishap) => life.dieAt(mishap),
      get isDead() {
        return life.isDead;
      },
    };
  }

  async #publish(events: readonly Envelope[]): Promise<void> {
    let due: readonly KafkaRecord[] = events.map((event) => ({
      topic: this.#rig.topicOf(event.type),
      key: toKey(event),
      value: this.#rig.codec.encode(event).bytes,
      headers: { ce_id: event.event_id },
      timestampMs: Date.now(),
    }));
    // A partition that was made a moment ago may have no leader yet: as the relay does, what was refused goes again,
    // in its order, from a new producer.
    await eventually(
      async () => {
        if (due.length === 0) return true;
        const { failures } = await this.#producer.send(due);
        const lasting = failures.find(({ fault }) => fault.kind !== "transient");
        if (lasting !== undefined) throw lasting.fault;
        const refused = new Set(failures.map(({ index }) => index));
        due = due.filter((_, index) => refused.has(index));
        if (due.length > 0) {
          await this.#producer.close();
          this.#producer = await newProducer();
        }
        return due.length === 0;
      },
      Boolean,
      { what: "leaders for every partition" },
    );
    for (const { type } of events) this.#published.set(type, (this.#published.get(type) ?? 0) + 1);
  }

  async #positions(): Promise<ReadonlyMap<string, bigint>> {
    const { rows } = await this.sql.query<{ place: string; next_offset: bigint }>(
      "SELECT concat_ws(' ', processor, topic, partition) AS place, next_offset FROM host.watermarks",
    );
    return new Map(rows.map((row) => [row.place, row.next_offset]));
  }

  /** Lets one processor read again, from anywhere in this history; a rebuild begins with nothing. */
  async #setBack({ then, processor }: Mishap, begins: ReadonlyMap<string, bigint>): Promise<void> {
    const name = processors[processor % processors.length]?.name;
    if (then === "nothing" || name === undefined) return;
    if (then === "rebuild") await this.clear([name]);
    const { rows } = await this.sql.query<{ topic: string; partition: number; next_offset: bigint }>(
      "SELECT topic, partition, next_offset FROM host.watermarks WHERE processor = $1",
      [name],
    );
    for (const { topic, partition, next_offset } of rows) {
      const begin = begins.get(`${name} ${topic} ${String(partition)}`) ?? 0n;
      const to = then === "rebuild" ? begin : begin + (next_offset - begin) / 3n;
      await this.sql.query(
        "UPDATE host.watermarks SET next_offset = $4 WHERE processor = $1 AND topic = $2 AND partition = $3",
        [name, topic, partition, to],
      );
    }
  }

  async #isSettled(): Promise<boolean> {
    const { rows } = await this.sql.query<{ processor: string; n: bigint }>(
      "SELECT processor, sum(next_offset)::bigint AS n FROM host.watermarks GROUP BY processor",
    );
    const read = new Map(rows.map((row) => [row.processor, Number(row.n)]));
    return processors.every((one) => (read.get(one.name) ?? 0) === this.#sentTo(one));
  }

  #sentTo(processor: Processor): number {
    return processor.topics.reduce((sum, type) => sum + (this.#published.get(type) ?? 0), 0);
  }

  async #settled(): Promise<void> {
    await eventually(() => this.#isSettled(), Boolean, {
      deadlineMs: settleMs,
      what: "a position of each processor at the end of the log",
    });
  }
}

interface Mortal extends Host {
  dieAt(mishap: Pick<Mishap, "step" | "slice">): void;
  readonly isDead: boolean;
}

/** The steps of one process: once it is dead, none of its processors takes another step. */
class Life {
  isDead = false;
  readonly steps: readonly Step[];
  #end: Pick<Mishap, "step" | "slice"> | null = null;
  #passed = 0;

  constructor(defect: Defect, sql: Database) {
    this.steps = liveSteps.map((step) => ({
      name: step.name,
      run: async (work, tx) => {
        if (this.#isOver(step.name)) throw new HostDied(step.name);
        if (defect === "watermark-first") {
          if (step.name === "project") await moveAlone(sql, work);
          if (step.name === "watermark") return;
        }
        await step.run(work, tx);
        if (step.name === "claim" && defect === "no-inbox")
          work.claimed = work.records.filter((read) => read.kind === "event");
      },
    }));
  }

  dieAt(end: Pick<Mishap, "step" | "slice">): void {
    this.#end = end;
    this.#passed = 0;
  }

  #isOver(name: Step["name"]): boolean {
    if (this.#end?.step === name) {
      this.#passed += 1;
      this.isDead ||= this.#passed >= this.#end.slice;
    }
    return this.isDead;
  }
}

async function moveAlone(sql: Database, work: Work): Promise<void> {
  await sql.query(
    "UPDATE host.watermarks SET next_offset = $4 WHERE processor = $1 AND topic = $2 AND partition = $3",
    [work.processor.name, work.position.topic, work.position.partition, work.nextOffset],
  );
}

function announcedBy(emission: Emission): readonly string[] {
  if (emission.draft.type !== "fabric.takeover.opened") return [];
  const { cause, item_id } = emission.draft.redacted_summary;
  return [`${cause} ${item_id}`];
}

/** A broker that has just started does not give out producer ids at once. */
function newProducer(): Promise<ProducerPort> {
  return eventually(() =>
    createKafkaProducer({
      brokers: inject("stack").kafkaBrokers,
      clientId: "histories",
      log: createLog({ service: "histories", level: "silent" }),
    }),
  );
}
