import type { Database } from "../platform/postgres.ts";
import { laneGroups } from "./outbox-event.ts";

export interface LaneLeaseOptions {
  readonly database: Database;
  readonly relayId: string;
  readonly leaseMs: number;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
}

/** The lanes to publish now. A new `era` means another set of lanes. */
export interface LaneView {
  readonly groups: readonly number[];
  readonly all: boolean;
  readonly era: number;
}

/**
 * The lane groups that this relay holds. Expiry is the database's clock's business; here it is a stretch of monotonic
 * time counted from before the request was sent, so that we stop before the others may start.
 *
 * A relay that goes on after its lease (stopped, swapped out, cut off in mid-send) does no harm but duplicates. Each
 * relay sends a row only when every earlier row of its lane is acknowledged to it or was deleted, that is,
 * acknowledged to somebody. So whenever a row is written to the log, by whomever, all its predecessors are there
 * already, and first occurrences stay in order; what the sleeper sends late is there a second time.
 * INVARIANT: test/fault/relay-takeover.test.ts "a relay that wakes up after its lease repeats, and never reorders".
 */
export class LaneLeases {
  readonly #options: LaneLeaseOptions;
  #groups: readonly number[] = [];
  #leaving: readonly number[] = [];
  #validUntilMs = Number.NEGATIVE_INFINITY;
  #era = 0;
  #renewing: Promise<void> | null = null;

  constructor(options: LaneLeaseOptions) {
    this.#options = options;
  }

  /** Whether what we hold is ours for sure. */
  get valid(): boolean {
    return this.#options.nowMs() < this.#validUntilMs;
  }

  get view(): LaneView {
    return { groups: this.#groups, all: this.#groups.length === laneGroups, era: this.#era };
  }

  /** Groups above our share: read no more of them, and give them back when nothing of them is in flight. */
  get leaving(): readonly number[] {
    return this.#leaving;
  }

  /** One request at a time; who asks meanwhile gets the same answer. */
  renew(): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async #renew(): Promise<void> {
    const { database, relayId, leaseMs, nowMs } = this.#options;
    const askedAtMs = nowMs();
    const { rows } = await database.query<{ lane_groups: number[]; share: number }>({
      name: "outbox-renew-lanes",
      text: "SELECT lane_groups, share FROM outbox.renew_lanes($1, $2)",
      values: [relayId, leaseMs],
    });
    const held = rows[0]?.lane_groups ?? [];
    const share = rows[0]?.share ?? laneGroups;
    // An answer that came too late is worth nothing: others may hold them by now.
    this.#validUntilMs = askedAtMs + leaseMs;
    this.#adopt(held.slice(0, share), held.slice(share));
  }

  /** Gives back what is leaving. Only when nothing of it is in flight. */
  async releaseLeaving(): Promise<void> {
    const leaving = this.#leaving;
    if (leaving.length === 0) return;
    await this.#release([...leaving]);
    this.#leaving = this.#leaving.filter((group) => !leaving.includes(group));
  }

  /** Gives back everything and signs off. */
  async releaseAll(): Promise<void> {
    this.#validUntilMs = Number.NEGATIVE_INFINITY;
    this.#adopt([], []);
    await this.#release(null);
  }

  async #release(groups: number[] | null): Promise<void> {
    await this.#options.database.query("SELECT outbox.release_lanes($1, $2)", [
      this.#options.relayId,
      groups,
    ]);
  }

  #adopt(groups: readonly number[], leaving: readonly number[]): void {
    const same =
      groups.length === this.#groups.length && groups.every((group, i) => group === this.#groups[i]);
    this.#groups = groups;
    this.#leaving = leaving;
    if (!same) this.#era += 1;
  }
}
