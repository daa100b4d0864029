import { setTimeout as wait } from "node:timers/promises";
import { eventOf } from "../../../processors/kit/given.ts";
import type { Envelope } from "../../../schemas/envelope.ts";
import { draft } from "../../../schemas/envelope.ts";
import { Fault } from "../../../schemas/faults.ts";
import { newUuidV7 } from "../../../services/platform/ids.ts";
import type { EventEncoder } from "../../../services/platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../../../services/platform/outbox.ts";
import type { Database } from "../../../services/platform/postgres.ts";

/** The type that all traffic is of. */
export const trafficType = "agent.model.completed";

/** One committed event: number `n` of its key, counted in commit order. */
export interface Sent {
  readonly key: string;
  readonly n: bigint;
}
/** Names an event in lists and sets. */
export const toSentId = ({ key, n }: Sent): string => `${key}#${String(n)}`;

export interface TrafficOptions {
  /** Not behind the fault: what is committed is known. */
  readonly sql: Database;
  readonly encoder: () => EventEncoder;
  readonly keys: number;
  readonly writers: number;
  readonly eventsPerSecond: number;
  /** True when the database itself may be away: what is not known to be committed is looked up at the end. */
  readonly mayFail?: boolean;
  readonly onCommitted?: (events: readonly Envelope<typeof trafficType>[]) => void;
}

/** Share of transactions that roll back after their append: true gaps in the serial numbers. */
const rollbackShare = 0.05;
const retryMs = 100;

/** Makes the tables of the traffic and of the projection that is compared with it. */
export async function prepareTraffic(sql: Database, keys: number): Promise<void> {
  await sql.query(`
    CREATE SCHEMA ledger;
    CREATE TABLE ledger.rows (id bigint GENERATED ALWAYS AS IDENTITY, event_id text NOT NULL, key text NOT NULL, n bigint NOT NULL);
    CREATE TABLE ledger.counters (key text PRIMARY KEY, n bigint NOT NULL);
    GRANT USAGE ON SCHEMA ledger TO fabric_host;
    GRANT SELECT, INSERT ON ledger.rows TO fabric_host;`);
  await sql.query("INSERT INTO ledger.counters SELECT 'cor_' || i, 0 FROM generate_series(1, $1::int) i", [
    keys,
  ]);
}

/** Commits events into the outbox under load until it is told to stop; its own log says which. */
export class Traffic {
  /** Key → numbers that were committed. */
  readonly committed = new Map<string, bigint[]>();
  readonly #options: TrafficOptions;
  readonly #unknown: Sent[] = [];
  readonly #startedMs = Date.now();
  #running = true;
  #workers: Promise<void>[] = [];
  #events = 0;
  #turns = 0;
  #refused = 0;

  constructor(options: TrafficOptions) {
    this.#options = options;
  }

  get events(): number {
    return this.#events;
  }

  /** Commits that the database did not take, or said nothing about. */
  get refused(): number {
    return this.#refused;
  }

  start(): void {
    this.#workers = Array.from({ length: this.#options.writers }, (_, index) => this.#work(index));
  }

  /** Ends, and finds out what became of commits that got no answer. */
  async stop(): Promise<{ events: number; perSecond: number }> {
    this.#running = false;
    await Promise.all(this.#workers);
    const perSecond = (this.#events * 1_000) / (Date.now() - this.#startedMs);
    await this.#settleUnknown();
    return { events: this.#events, perSecond };
  }

  /** Commits `count` events as fast as it can, three to a transaction. */
  async burst(count: number): Promise<void> {
    for (let done = 0; done < count; done += 3) {
      this.#turns += 1;
      await this.#commit(this.#keysOf(this.#turns % this.#options.writers, this.#turns), 1);
    }
  }

  /** Committed events that are not among the seen. */
  pending(seen: ReadonlyMap<string, unknown>): string[] {
    return [...this.committed].flatMap(([key, numbers]) =>
      numbers.map((n) => toSentId({ key, n })).filter((id) => !seen.has(id)),
    );
  }

  async #work(writer: number): Promise<void> {
    for (let turn = 0; this.#running; turn += 1) {
      await this.#commit(this.#keysOf(writer, turn), turn + writer);
      const aheadMs = (this.#events / this.#options.eventsPerSecond) * 1_000 - (Date.now() - this.#startedMs);
      if (aheadMs > 0) await wait(Math.min(aheadMs, 500));
    }
  }

  /** Keys in a stride that makes writers meet on the same key, and lanes of one transaction differ. */
  #keysOf(writer: number, turn: number): string[] {
    const { keys } = this.#options;
    const first = (writer * 7 + turn * 13) % keys;
    return [...new Set([first, (first + 31) % keys, (first * 3 + turn) % keys])]
      .sort((a, b) => a - b)
      .map((one) => `cor_${String(one + 1)}`);
  }

  async #commit(wanted: readonly string[], turn: number): Promise<void> {
    const { sql, encoder, onCommitted } = this.#options;
    const rollsBack = turn % Math.round(1 / rollbackShare) === 0;
    const sent: Sent[] = [];
    let events: readonly Envelope<typeof trafficType>[] = [];
    try {
      await sql.transaction(async (tx) => {
        // In key order: two writers that want the same keys wait, and do not deadlock.
        for (const key of wanted) {
          const { rows } = await tx.query<{ n: bigint }>(
            "UPDATE ledger.counters SET n = n + 1 WHERE key = $1 RETURNING n",
            [key],
          );
          sent.push({ key, n: rows[0]?.n ?? 0n });
        }
        events = sent.map(toEvent);
        await appendOutbox(tx, toOutboxRows(encoder(), events));
        // Held open after the append: serial numbers are drawn, and later ones commit first.
        await wait(turn % 20);
        if (rollsBack) throw new RolledBack();
      });
    } catch (error) {
      if (error instanceof RolledBack) return;
      if (!(error instanceof Fault)) throw error;
      if (error.code === "DATABASE_CONFLICT") return;
      if (this.#options.mayFail !== true) throw error;
      this.#refused += 1;
      this.#unknown.push(...sent);
      await wait(retryMs);
      return;
    }
    this.#note(sent);
    onCommitted?.(events);
    notifyOutbox(sql);
  }

  #note(sent: readonly Sent[]): void {
    for (const { key, n } of sent) this.committed.set(key, [...(this.committed.get(key) ?? []), n]);
    this.#events += sent.length;
  }

  /** A key's counter rises in the transaction of its events: what is not above it was committed, by whomever. */
  async #settleUnknown(): Promise<void> {
    if (this.#unknown.length === 0) return;
    const { rows } = await this.#options.sql.query<Sent>("SELECT key, n FROM ledger.counters");
    const counters = new Map(rows.map(({ key, n }) => [key, n]));
    const known = new Set([...this.committed].flatMap(([key, all]) => all.map((n) => toSentId({ key, n }))));
    for (const one of this.#unknown) {
      if (known.has(toSentId(one)) || one.n > (counters.get(one.key) ?? 0n)) continue;
      known.add(toSentId(one));
      this.#note([one]);
    }
  }
}
class RolledBack extends Error {}

const toEvent = ({ key, n }: Sent): Envelope<typeof trafficType> =>
  eventOf(
    draft(trafficType, {
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
