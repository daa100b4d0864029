import type { DatabaseOptions } from "../platform/postgres.ts";

type PoolOptions = Omit<DatabaseOptions, "url" | "applicationName">;

/**
 * How long relay and host wait for one statement. A slice of a thousand events takes a second on a busy database, and one
 * that does not finish is halved; over a dead link each wait stands still for this long.
 */
const patience = { statementTimeoutMs: 10_000, queryTimeoutMs: 12_000 };

/** Reading ahead, deleting behind, renewing leases, marking, measuring: at most these at once. */
export const relayPool: PoolOptions = { maxConnections: 5, ...patience };

/**
 * Six partitions a topic and a few topics at once; more only queues in Postgres. In the host's own transactions each
 * processor's schema comes first.
 */
export const hostPool: PoolOptions = { maxConnections: 8, searchPath: ["host"], ...patience };

/** A host that was killed is missed after this; then its partitions move. Heartbeats go out three times in it. */
export const hostSessionTimeoutMs = 10_000;
