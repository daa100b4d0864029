import type { Log } from "../platform/log.ts";
import type { Metrics } from "../platform/metrics.ts";
import type { Database, Listener } from "../platform/postgres.ts";
import { textArray } from "./array-parameter.ts";
import type { TenantFacts } from "./facts.ts";
import type { Hold } from "./holds.ts";

export interface HoldWatchOptions {
  readonly database: Database;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Between two looks for those who do not ask with a version; default 500 ms. */
  readonly pollMs?: number;
}

/** What is held back, as a gate knows it. */
export interface HoldWatch {
  /**
   * Holds of tenants that are exactly those of the versions that were read, or newer ones: then the commit finds the
   * version moved and decides again. Asks the database for tenants whose version it has not seen.
   */
  at(tenants: ReadonlyMap<string, TenantFacts>): Promise<HoldsOf>;
  /** The holds of a tenant as they were last seen: for what is answered while the database is away. */
  lastSeen(tenantId: string): readonly Hold[];
  /** Begins to follow changes that nobody asks for. */
  start(): void;
  close(): Promise<void>;
}
export type HoldsOf = (tenantId: string) => readonly Hold[];

/** Half of the second in which every gate has to know. */
const defaultPollMs = 500;
const channel = "holds";

interface HoldsRow {
  readonly tenant_id: string;
  readonly version: bigint;
  readonly holds:
    | readonly {
        readonly id: string;
        readonly source: Hold["source"];
        readonly mode: Hold["mode"];
        readonly tenant: string;
        readonly scope: Hold["scope"];
        readonly scope_id: string;
        readonly reason: string;
        readonly until_ms: number | null;
      }[]
    | null;
}

/** One statement and so one snapshot: version and holds belong together. */
const holdsText = `SELECT t.tenant_id, t.version,
    (SELECT jsonb_agg(jsonb_build_object('id', h.hold_id, 'source', h.source, 'mode', h.mode, 'tenant', h.tenant_id,
        'scope', h.scope, 'scope_id', h.scope_id, 'reason', h.reason, 'until_ms', extract(epoch FROM h.until) * 1000))
      FROM incidents.holds AS h
      WHERE h.tenant_id IN (t.tenant_id, '*') AND h.lifted_at IS NULL
        AND (h.until IS NULL OR h.until > clock_timestamp())) AS holds
  FROM access.tenants AS t WHERE t.tenant_id = ANY ($1::text[])`;

/**
 * Every hold raises the version of its tenants, so that what was loaded under a version is known to be whole as long as
 * the version stands: in the usual case a decision costs no query.
 * INVARIANT: no decision is committed that did not see a hold (test/integration/holds.test.ts "decides again when a hold
 * comes between facts and commit").
 */
export function createHoldWatch({ database, log, metrics, pollMs }: HoldWatchOptions): HoldWatch {
  const known = new Map<string, { readonly version: number; readonly holds: readonly Hold[] }>();
  let listening: Promise<Listener | null> = Promise.resolve(null);
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  metrics.gauge("fabric_gate_holds", "holds that this gate knows of, by source", ["source"], (set) => {
    const all = new Map([...known.values()].flatMap(({ holds }) => holds.map((one) => [one.id, one.source])));
    for (const source of ["breaker", "incident"] as const)
      set([...all.values()].filter((one) => one === source).length, { source });
  });

  async function load(tenantIds: readonly string[]): Promise<void> {
    if (tenantIds.length === 0) return;
    const found = await database.query<HoldsRow>({
      name: "gate-holds",
      text: holdsText,
      values: [textArray(tenantIds)],
    });
    for (const { tenant_id, version, holds } of found.rows) {
      const before = known.get(tenant_id);
      // Two loads may answer in the other order.
      if (before !== undefined && before.version > Number(version)) continue;
      known.set(tenant_id, {
        version: Number(version),
        holds: (holds ?? []).map((one) => ({
          id: `hld_${one.id}`,
          source: one.source,
          mode: one.mode,
          tenantId: one.tenant === "*" ? null : one.tenant,
          scope: one.scope,
          scopeId: one.scope_id,
          reason: one.reason,
          untilMs: one.until_ms === null ? null : Math.floor(one.until_ms),
        })),
      });
    }
  }
  function look(): Promise<void> {
    return load([...known.keys()]).catch((error: unknown) => {
      log.warn({ err: error }, "holds cannot be looked up; the last ones stay");
    });
  }
  function later(): void {
    if (closed) return;
    timer = setTimeout(() => void look().then(later), pollMs ?? defaultPollMs);
    timer.unref();
  }

  return {
    async at(tenants) {
      const missing = [...tenants].flatMap(([tenantId, { version }]) => {
        const seen = known.get(tenantId);
        return seen === undefined || seen.version < version ? [tenantId] : [];
      });
      await load(missing);
      return (tenantId) => known.get(tenantId)?.holds ?? [];
    },
    lastSeen: (tenantId) => known.get(tenantId)?.holds ?? [],
    start() {
      later();
      // Deaf is no harm: decisions ask by version, and the poll is what counts for the rest.
      listening = database
        .listen(channel, () => void look())
        .catch((error: unknown) => {
          log.warn({ err: error }, "a gate does not listen for holds; it polls");
          return null;
        });
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await (await listening)?.close();
    },
  };
}
