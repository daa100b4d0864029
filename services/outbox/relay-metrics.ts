import type { Database } from "../platform/postgres.ts";
import type { Metrics } from "../platform/metrics.ts";

/** The relay's figures, by the names that the alert rules use. */
export interface RelayMetrics {
  published(count: number): void;
  batch(rows: number, seconds: number): void;
  parked(code: string): void;
  failedSend(code: string): void;
  sweptBelowFloor(): void;
  lanes(groups: number): void;
  listener(live: boolean): void;
  heldTopics(types: readonly string[]): void;
  backlog(rows: number, ageSeconds: number): void;
}

export function createRelayMetrics(metrics: Metrics): RelayMetrics {
  const published = metrics.counter("fabric_outbox_published_total", "rows that the broker acknowledged");
  const rows = metrics.histogram(
    "fabric_outbox_batch_rows",
    "rows per send",
    [],
    [1, 10, 50, 100, 250, 500, 1000],
  );
  const seconds = metrics.histogram("fabric_outbox_send_seconds", "time from send to acknowledgement");
  const parked = metrics.counter("fabric_outbox_parked_total", "rows that the broker will never take", [
    "code",
  ]);
  const failed = metrics.counter("fabric_outbox_failed_sends_total", "sends that did not wholly succeed", [
    "code",
  ]);
  const swept = metrics.counter(
    "fabric_outbox_below_floor_total",
    "rows found below the settled floor: a bug",
  );
  const lanes = metrics.gauge("fabric_outbox_lane_groups", "lane groups that this relay holds, of 16");
  const listener = metrics.gauge(
    "fabric_outbox_listener_live",
    "1 while NOTIFY reaches us, 0 while only polling does",
  );
  const held = metrics.gauge("fabric_outbox_topic_held", "1 while rows wait because the topic takes none", [
    "type",
  ]);
  const backlogRows = metrics.gauge("fabric_outbox_backlog_rows", "rows that wait, an estimate");
  const backlogAge = metrics.gauge("fabric_outbox_backlog_age_seconds", "age of the oldest row that waits");
  let known = new Set<string>();
  return {
    published: (count) => published.add({}, count),
    batch: (count, took) => {
      rows.observe(count);
      seconds.observe(took);
    },
    parked: (code) => parked.add({ code }),
    failedSend: (code) => failed.add({ code }),
    sweptBelowFloor: () => swept.add(),
    lanes: (groups) => lanes.set(groups),
    listener: (live) => listener.set(live ? 1 : 0),
    heldTopics: (types) => {
      for (const type of known) if (!types.includes(type)) held.set(0, { type });
      for (const type of types) held.set(1, { type });
      known = new Set([...known, ...types]);
    },
    backlog: (count, ageSeconds) => {
      backlogRows.set(count);
      backlogAge.set(ageSeconds);
    },
  };
}

/** Exact up to this many rows; above it the span of serial numbers, which counts rolled-back ones too. */
const countedRows = 10_000;

/** How many rows wait, and how old the oldest is by the database's clock. */
export async function measureBacklog(database: Database): Promise<{ rows: number; ageSeconds: number }> {
  const { rows } = await database.query<{ counted: number; span: number; age: number }>({
    name: "outbox-backlog",
    text: `
      SELECT (SELECT count(*)::int FROM (SELECT FROM outbox.events LIMIT $1) AS waiting) AS counted,
             coalesce((SELECT seq FROM outbox.events ORDER BY seq DESC LIMIT 1) - o.seq + 1, 0)::float8 AS span,
             coalesce(extract(epoch FROM clock_timestamp() - o.created_at), 0)::float8 AS age
      FROM (SELECT 1) AS one LEFT JOIN LATERAL
           (SELECT seq, created_at FROM outbox.events ORDER BY seq LIMIT 1) AS o ON true`,
    values: [countedRows],
  });
  const found = rows[0];
  if (found === undefined) return { rows: 0, ageSeconds: 0 };
  return {
    rows: found.counted < countedRows ? found.counted : Math.max(found.span, countedRows),
    ageSeconds: Math.max(found.age, 0),
  };
}
