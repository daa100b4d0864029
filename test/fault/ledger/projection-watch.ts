import type { Database } from "../../../services/platform/postgres.ts";
import { toSentId } from "./traffic.ts";

const pollMs = 40;
/** Ids are drawn before their transaction commits: so many are looked at twice, and everything now and then. */
const overlap = 300n;
const looksUntilAll = 25;

/** Looks at a table of (id, key, n) again and again, and notes when each event was there first. */
export class ProjectionWatch {
  /** Event → monotonic milliseconds. */
  readonly seen = new Map<string, number>();
  readonly #sql: Database;
  readonly #table: string;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();
  #stopped = false;
  #sinceId = 0n;
  #looks = 0;

  constructor(sql: Database, table: "ledger.rows" | "peer.rows") {
    this.#sql = sql;
    this.#table = table;
    this.#next();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#looking;
  }

  #next(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      // A database that is away is looked at again.
      this.#looking = this.#look()
        .catch(() => undefined)
        .then(() => this.#next());
    }, pollMs);
  }

  async #look(): Promise<void> {
    this.#looks += 1;
    const from = this.#looks % looksUntilAll === 0 ? 0n : this.#sinceId - overlap;
    const { rows } = await this.#sql.query<{ id: bigint; key: string; n: bigint }>(
      `SELECT id, key, n FROM ${this.#table} WHERE id > $1 ORDER BY id`,
      [from],
    );
    const nowMs = performance.now();
    for (const { id, ...one } of rows) {
      if (id > this.#sinceId) this.#sinceId = id;
      const name = toSentId(one);
      if (!this.seen.has(name)) this.seen.set(name, nowMs);
    }
  }
}
