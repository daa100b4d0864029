import type { Log } from "../platform/log.ts";
import { toStorableText } from "../platform/masked-preview.ts";
import type { Tx } from "../platform/postgres.ts";
import { textArray } from "./array-parameter.ts";

/** A client that came to this gate. */
export interface SeenClient {
  readonly tenantId: string;
  readonly subject: string;
  readonly runtime: string;
  /** What it says of its hooks; anything but a digest counts as nothing. */
  readonly hooks: unknown;
  /** An effect waits for the answer. */
  readonly isAsking: boolean;
}

export interface SeenClients {
  /** Keeps the moment; writes nothing. */
  note(client: SeenClient, nowMs: number): void;
  /** Writes what was kept. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

const everyMs = 30_000;
/** Clients between two writes; whoever comes on top is noted with the next ones. */
const keptMax = 5_000;
const hooksPattern = /^(?:sha256:)?[0-9a-f]{8,64}$/;

interface Kept {
  readonly key: readonly [tenantId: string, subject: string, runtime: string, hooks: string];
  readonly firstMs: number;
  readonly lastMs: number;
  readonly askedMs: number | null;
}

/** Notes which clients come, and writes it now and then: a call costs no row, and its answer waits for nothing. */
export function startSeenClients({
  database,
  log,
}: {
  readonly database: Tx;
  readonly log: Log;
}): SeenClients {
  let kept = new Map<string, Kept>();
  let running: Promise<void> = Promise.resolve();

  async function write(): Promise<void> {
    if (kept.size === 0) return;
    const rows = [...kept.values()];
    kept = new Map();
    const toTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
    try {
      await database.query({
        name: "gate-seen-clients",
        // In one order, so that two gates never wait for each other.
        text: `INSERT INTO gate.clients AS c (tenant_id, user_id, runtime, hooks, first_seen_at, last_seen_at, last_asked_at)
          SELECT n.tenant, n.person, n.runtime, n.hooks, n.first::timestamptz, n.last::timestamptz, n.asked::timestamptz
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
            AS n(tenant, person, runtime, hooks, first, last, asked)
          JOIN access.tenants AS t ON t.tenant_id = n.tenant
          ORDER BY n.tenant, n.person, n.runtime, n.hooks
          ON CONFLICT (tenant_id, user_id, runtime, hooks) DO UPDATE SET
            first_seen_at = least(c.first_seen_at, excluded.first_seen_at),
            last_seen_at = greatest(c.last_seen_at, excluded.last_seen_at),
            last_asked_at = greatest(c.last_asked_at, excluded.last_asked_at)`,
        values: [
          ...[0, 1, 2, 3].map((at) => textArray(rows.map(({ key }) => key[at] ?? ""))),
          textArray(rows.map(({ firstMs }) => toTime(firstMs))),
          textArray(rows.map(({ lastMs }) => toTime(lastMs))),
          textArray(rows.map(({ askedMs }) => toTime(askedMs))),
        ],
      });
    } catch (error) {
      for (const row of rows) keep(row);
      throw error;
    }
  }

  function keep(row: Kept): void {
    const name = row.key.join("\n");
    const before = kept.get(name);
    if (before === undefined && kept.size >= keptMax) return;
    kept.set(name, {
      key: row.key,
      firstMs: Math.min(before?.firstMs ?? row.firstMs, row.firstMs),
      lastMs: Math.max(before?.lastMs ?? row.lastMs, row.lastMs),
      askedMs: row.askedMs ?? before?.askedMs ?? null,
    });
  }

  function flush(): Promise<void> {
    running = running
      .then(write)
      .catch((error: unknown) =>
        log.warn({ err: error }, "which clients came was not written; trying again"),
      );
    return running;
  }

  const timer = setInterval(() => void flush(), everyMs);
  timer.unref();
  return {
    note({ tenantId, subject, runtime, hooks, isAsking }, nowMs) {
      const told = typeof hooks === "string" && hooksPattern.test(hooks) ? hooks : "";
      const askedMs = isAsking ? nowMs : null;
      const key = [tenantId, toStorableText(subject), toStorableText(runtime), told] as const;
      keep({ key, firstMs: nowMs, lastMs: nowMs, askedMs });
    },
    flush,
    async stop() {
      clearInterval(timer);
      await flush();
    },
  };
}
