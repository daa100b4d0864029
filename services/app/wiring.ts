import { setTimeout as sleep } from "node:timers/promises";
import type { Config, DatabaseUser } from "../platform/config.ts";
import { databaseUrl } from "../platform/config.ts";
import { EventCodec } from "../platform/avro.ts";
import { loadSchemaIds } from "../platform/contract-tables.ts";
import type { Probe } from "../platform/http.ts";
import type { KafkaEndpoint } from "../platform/kafka.ts";
import type { Log } from "../platform/log.ts";
import type { Metrics } from "../platform/metrics.ts";
import type { Database, DatabaseOptions } from "../platform/postgres.ts";
import { openDatabase } from "../platform/postgres.ts";
import type { SchemaRegistryPort } from "../platform/registry.ts";
import { openRegistry } from "../platform/registry.ts";

/** What every service of one process is given. */
export interface Surroundings {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** One running service: its dependencies' state, and its end. */
export interface RunningService {
  readonly name: string;
  /** Where it listens, for services that do. */
  readonly address?: string;
  /** Dependency → its state; asked by `/readyz`. */
  readonly probes: Readonly<Record<string, Probe>>;
  close(): Promise<void>;
}

/** The brokers as the configuration names them. */
export function kafkaEndpoint(config: Config, clientId: string): KafkaEndpoint {
  const { brokers, tls, sasl } = config.kafka;
  return { brokers, clientId, tls, ...(sasl === undefined ? {} : { sasl }) };
}

/** A service's own connections, as its own role. */
export function serviceDatabase(
  config: Config,
  user: DatabaseUser,
  options: Omit<DatabaseOptions, "url" | "applicationName"> = {},
): Database {
  return openDatabase({ url: databaseUrl(config, user), applicationName: `fabric-${user}`, ...options });
}

/** The schema registry as the configuration names it. */
export function registryOf(config: Config): SchemaRegistryPort & { close(): void } {
  const { url, username, password } = config.registry;
  return openRegistry({
    url,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  });
}

/** Waits before another try of something that must be there before a service can start. */
const startRetryMs = 1_000;

/**
 * The codec with the ids that `fabric schema register` wrote. Waits, with a log line each time, while the database is
 * away or no schema is registered: a service that starts before its database is late, not dead.
 */
export async function codecWhenRegistered(
  database: Database,
  registry: SchemaRegistryPort,
  log: Log,
  signal: AbortSignal,
): Promise<EventCodec> {
  for (;;) {
    try {
      const schemaIds = await loadSchemaIds(database);
      if (schemaIds.size > 0) return new EventCodec({ source: registry, schemaIds });
      log.warn("no event type has a registered schema; run `fabric schema register`");
    } catch (error) {
      log.warn({ err: error }, "schema ids cannot be read; trying again");
    }
    await sleep(startRetryMs, undefined, { signal });
  }
}
