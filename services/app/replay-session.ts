import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Common } from "../cli/actions.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { databaseUrl } from "../platform/config.ts";
import type { LogLookupPort } from "../platform/kafka-offsets.ts";
import { createKafkaOffsets } from "../platform/kafka-offsets.ts";
import { createLog } from "../platform/log.ts";
import type { Database } from "../platform/postgres.ts";
import { OpenRuns } from "../replay/open-runs.ts";
import { makeRunSchemas, openRunRole } from "../replay/run-schemas.ts";
import { setGroups } from "../replay/shadow-rows.ts";
import type { RunNames, Shadow, Side } from "../replay/shadow.ts";
import { sidesOf, toRunNames } from "../replay/shadow.ts";
import { costFilesOf } from "./load-processors.ts";
import type { Place } from "./place.ts";
import { progressLine } from "./replay-progress.ts";
import type { RunPlace, ShadowJob } from "./shadow-job.ts";
import { kafkaEndpoint, serviceDatabase } from "./wiring.ts";

/** A comparison of millions of rows; the database's own clients wait far shorter. */
const comparisonMaxMs = 3_600_000;
const connections = 6;
const groupPollMs = 500;

/** One command on shadows: its connections, as the owner of the database, and the runs that it has opened. */
export interface ReplaySession {
  readonly config: Config;
  readonly database: Database;
  readonly log: LogLookupPort;
  namesOf(name: string, side: Side): RunNames;
  /** Builds the schemas of a shadow's runs, where they are missing. */
  makeSchemas(shadow: Shadow): Promise<void>;
  openRuns(shadow: Shadow): OpenRuns;
  /**
   * Deletes the consumer groups of a shadow's runs, and gives those that the broker keeps for now; they stay on the
   * list. A killed run's group can be deleted once its session has run out, for which `waitMs` gives it time.
   */
  forgetGroups(
    shadow: Pick<Shadow, "name">,
    options?: { readonly waitMs: number },
  ): Promise<readonly string[]>;
}

export interface SessionDeps {
  readonly config: Config;
  readonly place: Place;
  readonly common: Common;
  readonly runPlace: RunPlace;
}

/** Runs `work` with a session; whatever it opened is closed in the end. */
export async function withReplay<T>(
  deps: SessionDeps,
  work: (session: ReplaySession) => Promise<T>,
): Promise<T> {
  const { config, place, common, runPlace } = deps;
  const database = serviceDatabase(config, "admin", {
    maxConnections: connections,
    statementTimeoutMs: comparisonMaxMs,
  });
  const log = createKafkaOffsets({
    endpoint: kafkaEndpoint(config, "fabric-replay"),
    log: createLog({ service: "replay", level: "fatal" }),
  });
  const opened: OpenRuns[] = [];
  const adminUrl = databaseUrl(config, "admin");
  const databaseName = new URL(adminUrl).pathname.slice(1);
  const namesOf = (name: string, side: Side): RunNames => toRunNames(name, side, databaseName);
  const progress = progressLine(common.screen, () => systemClock.nowMs());

  async function jobOf(shadow: Shadow, side: Side): Promise<Omit<ShadowJob, "ranges">> {
    const names = namesOf(shadow.name, side);
    const password = await openRunRole(database, { names });
    const address = new URL(adminUrl);
    address.username = names.role;
    address.password = password;
    const groupId = `${config.kafka.topicPrefix}shadow-${shadow.name}-${side}-${randomBytes(4).toString("hex")}`;
    const { rows } = await database.query<{ groups: string[] }>(
      "UPDATE replay.shadows SET groups = array_append(groups, $2) WHERE name = $1 RETURNING groups",
      [shadow.name, groupId],
    );
    void rows;
    const { brokers, tls, sasl } = config.kafka;
    const { url, username, password: registryPassword } = config.registry;
    return {
      processor: shadow.processor,
      versionFile: side === "candidate" ? shadow.versionFile : null,
      ...costFilesOf(config, place),
      databaseUrl: address.href,
      names,
      kafka: { brokers: [...brokers], tls, sasl: sasl ?? null },
      registry: { url, username: username ?? null, password: registryPassword ?? null },
      topicPrefix: config.kafka.topicPrefix,
      groupId,
      environment: config.environment,
    };
  }

  const session: ReplaySession = {
    config,
    database,
    log,
    namesOf,
    async makeSchemas(shadow) {
      for (const side of sidesOf(shadow)) {
        await makeRunSchemas({
          adminUrl,
          migrationsDir: join(place.packageDir, "deploy", "migrations"),
          processor: shadow.processor,
          processorDir: side === "candidate" ? shadow.migrationsDir : null,
          names: namesOf(shadow.name, side),
        });
      }
    },
    openRuns(shadow) {
      const runs = new OpenRuns({
        database,
        processor: shadow.processor,
        sides: sidesOf(shadow).map((side) => ({ side, names: namesOf(shadow.name, side) })),
        open: async (side, ranges) =>
          runPlace.start({ ...(await jobOf(shadow, side)), ranges: ranges.map((range) => ({ ...range })) }),
        signal: common.signal,
        onProgress: progress.show,
      });
      opened.push(runs);
      return runs;
    },
    async forgetGroups({ name }, { waitMs } = { waitMs: 0 }) {
      const { rows } = await database.query<{ groups: string[] }>(
        "SELECT groups FROM replay.shadows WHERE name = $1",
        [name],
      );
      let groups: readonly string[] = rows[0]?.groups ?? [];
      const until = systemClock.nowMs() + waitMs;
      while (groups.length > 0) {
        groups = await log.deleteGroups(groups);
        await setGroups(database, name, groups);
        if (groups.length === 0 || systemClock.nowMs() >= until) break;
        await wait(groupPollMs, undefined, { signal: common.signal });
      }
      return groups;
    },
  };
  try {
    return await work(session);
  } finally {
    progress.end();
    await Promise.all(opened.map((runs) => runs.close()));
    await log.close();
    await database.end();
  }
}
