import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { EventCodec } from "../platform/avro.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { databaseUrl } from "../platform/config.ts";
import { loadSchemaIds } from "../platform/contract-tables.ts";
import { crc32c } from "../platform/crc32c.ts";
import { migrationOwners } from "../platform/migrate.ts";
import { processorList, toProcessorFiles } from "../scaffold/processor-files.ts";
import type { EventSink } from "../seed/outbox-sink.ts";
import { createOutboxSink } from "../seed/outbox-sink.ts";
import type { SeedPlan } from "../seed/session.ts";
import { generateSessions } from "../seed/session.ts";
import { toTenants } from "../seed/world.ts";
import { loadCostSettings, processorsWith } from "./load-processors.ts";
import type { Place } from "./place.ts";
import { openDirectProjector } from "./project-directly.ts";
import { registryOf, serviceDatabase } from "./wiring.ts";

type WorkshopActions = Pick<Actions, "benchSeed" | "newProcessor">;
type SeedOptions = Parameters<Actions["benchSeed"]>[1];

const dayMs = 86_400_000;
const daysOfMonth = 30;
/** Seeds and prefixes are spread over so many histories of one database. */
const historyNumbers = 1_000_000_000;
const progressSessions = 1_000;

/** `fabric bench seed` and `fabric new processor`. */
export function workshopActions(
  place: Place,
  configOf: (common: Common) => Promise<Config>,
): WorkshopActions {
  return {
    async benchSeed(common, options) {
      const plan = toSeedPlan(options);
      const config = await configOf(common);
      await addTenants(config, options.prefix);
      const sink = options.direct ? await openDirect(config, place, options) : await openOutbox(config);
      let sessions = 0;
      let events = 0;
      try {
        for (const one of generateSessions(plan)) {
          common.signal.throwIfAborted();
          await sink.add(one);
          sessions += 1;
          events += one.length;
          if (sessions % progressSessions === 0)
            common.screen.progress(
              `${String(sessions)} of ${String(plan.sessions)} sessions, ${String(events)} events`,
            );
        }
      } finally {
        await sink.end();
      }
      const done = { sessions, events, from: dayOf(plan.startMs), days: plan.days, direct: options.direct };
      return {
        json: done,
        text: `${String(events)} events of ${String(sessions)} sessions over ${String(plan.days)} days from ${done.from}`,
      };
    },
    async newProcessor(_common, { name, topics }) {
      const root = place.packageDir;
      const listFile = join(root, processorList);
      const list = await readFile(listFile, "utf8").catch((error: unknown) => {
        throw new Fault(
          "USAGE",
          "a processor is added to a clone of the project, not to an installed package",
          {
            cause: error,
          },
        );
      });
      const taken = [
        ...migrationOwners,
        ...(await namesIn(join(root, "processors"))),
        ...(await namesIn(join(root, "deploy", "migrations"))),
      ];
      const made = toProcessorFiles({ name, topics, taken, list });
      for (const [path, text] of made.files) {
        await mkdir(dirname(join(root, path)), { recursive: true });
        await writeFile(join(root, path), text, { flag: "wx" });
      }
      await writeFile(listFile, made.list);
      const files = [...made.files.keys()];
      return {
        json: { name, topics, files, list: processorList },
        text: [
          ...files.map((file) => `written  ${file}`),
          `changed  ${processorList}`,
          `\nchange them, then: npx vitest run processors/${name} && make up ARGS=--detach`,
        ].join("\n"),
      };
    },
  };
}

function toSeedPlan(options: SeedOptions): SeedPlan {
  const untilMs = Date.parse(`${options.until ?? dayOf(systemClock.nowMs())}T00:00:00Z`);
  if (Number.isNaN(untilMs))
    throw new Fault("USAGE", `\`${options.until ?? ""}\` is no day such as 2026-11-30`);
  if (!/^[a-z][a-z0-9-]{0,40}$/.test(options.prefix))
    throw new Fault(
      "USAGE",
      `\`${options.prefix}\` cannot begin a tenant's name: lower case letters, digits, -`,
    );
  const days = options.months * daysOfMonth;
  return {
    seed: options.seed,
    sessions: options.sessions,
    startMs: untilMs - days * dayMs,
    days,
    tenantPrefix: options.prefix,
  };
}

async function addTenants(config: Config, prefix: string): Promise<void> {
  const database = serviceDatabase(config, "admin", { maxConnections: 1 });
  try {
    await database.query(
      "INSERT INTO access.tenants (tenant_id) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING",
      [toTenants(prefix).map((one) => one.tenantId)],
    );
  } finally {
    await database.end();
  }
}

async function openDirect(
  config: Config,
  place: Place,
  { only, seed, prefix }: SeedOptions,
): Promise<EventSink> {
  const all = processorsWith(await loadCostSettings(config, place));
  const stray = only?.find((name) => !all.some((one) => one.name === name));
  if (stray !== undefined)
    throw new Fault(
      "USAGE",
      `there is no processor \`${stray}\`; ${all.map((one) => one.name).join(", ")} are`,
    );
  return openDirectProjector(
    databaseUrl(config, "host"),
    all.filter((one) => only === undefined || only.includes(one.name)),
    crc32c(Buffer.from(`${prefix}/${String(seed)}`)) % historyNumbers,
  );
}

async function openOutbox(config: Config): Promise<EventSink> {
  const database = serviceDatabase(config, "host", { maxConnections: 2 });
  const contracts = serviceDatabase(config, "contracts", { maxConnections: 1 });
  const registry = registryOf(config);
  const schemaIds = await loadSchemaIds(contracts).finally(() => contracts.end());
  if (schemaIds.size === 0) throw new Fault("SCHEMA_NOT_REGISTERED", "run `fabric schema register` first");
  const sink = createOutboxSink(database, new EventCodec({ source: registry, schemaIds }));
  return {
    add: (events) => sink.add(events),
    async end() {
      await sink.end();
      registry.close();
      await database.end();
    },
  };
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

async function namesIn(dir: string): Promise<readonly string[]> {
  return (await readdir(dir, { withFileTypes: true }))
    .filter((one) => one.isDirectory())
    .map((one) => one.name);
}
