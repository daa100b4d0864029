import { trace } from "../../processors/trace/trace.ts";
import { dumpTables } from "../../processors/trace/queries.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestDatabase } from "./database.ts";
import { createTestDatabase } from "./database.ts";

/** A database whose trace tables are filled as the host does it, without the bus. */
export interface TraceRig {
  readonly database: TestDatabase;
  readonly sql: Database;
  /** Projects events in batches of at most `size`; each event once, as the inbox has it. */
  project(events: readonly Envelope[], size?: number, processor?: Processor): Promise<void>;
  /** The tables that a rebuild makes equal. */
  dump(): Promise<Record<string, readonly unknown[]>>;
  clear(): Promise<void>;
  as(role: string): Database;
  close(): Promise<void>;
}

export async function openTraceRig(): Promise<TraceRig> {
  const database = await createTestDatabase();
  const opened: Database[] = [];
  const open = (url: string, searchPath: readonly string[] = []): Database => {
    const one = openDatabase({ url, applicationName: "trace-rig", maxConnections: 4, searchPath });
    opened.push(one);
    return one;
  };
  const sql = open(database.url, ["trace"]);
  const host = open(database.roleUrl("fabric_host"), ["trace"]);
  const claimed = new Set<string>();
  return {
    database,
    sql,
    async project(events, size = 100, processor = trace) {
      const fresh = events.filter(({ event_id: id }) => !claimed.has(id) && claimed.add(id));
      for (let from = 0; from < fresh.length; from += size) {
        const changes = fresh.slice(from, from + size).flatMap((event) =>
          processor.project(event, {
            topic: event.type,
            partition: 0,
            offset: BigInt(from),
            timestampMs: event.recorded_at + 3,
          }),
        );
        await host.transaction((tx) => processor.apply(tx, changes));
      }
    },
    async dump() {
      const tables: Record<string, readonly unknown[]> = {};
      for (const { table, orderBy } of dumpTables) {
        tables[table] = (await sql.query(`SELECT * FROM ${table} ORDER BY ${orderBy}`)).rows;
      }
      return tables;
    },
    async clear() {
      claimed.clear();
      await sql.query("TRUNCATE trace.traces, trace.spans, trace.causes, trace.deliveries, trace.arrivals");
      await sql.query("TRUNCATE exporters.traces, exporters.spans");
    },
    as: (role) => open(database.roleUrl(role)),
    async close() {
      for (const one of opened) await one.end();
      await database.drop();
    },
  };
}
