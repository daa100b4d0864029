import { join } from "node:path";
import { systemClock } from "../platform/clock.ts";
import type { Actions, Common } from "../cli/actions.ts";
import type { Report } from "../cli/report.ts";
import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { checkSchemas, renderCheck } from "../contracts/check.ts";
import { generateSchemas, renderGenerate } from "../contracts/generate.ts";
import { acceptHistory, renderAccept } from "../contracts/history.ts";
import type { SchemaLine } from "../contracts/list.ts";
import { listSchemas } from "../contracts/list.ts";
import { registerSchemas, renderRegister } from "../contracts/register.ts";
import { renderShow, showSchema } from "../contracts/show.ts";
import type { TopicPlan } from "../contracts/topics.ts";
import { applyTopics, planTopics, renderTopics } from "../contracts/topics.ts";
import type { Config } from "../platform/config.ts";
import { createKafkaAdmin } from "../platform/kafka-admin.ts";
import { createLog } from "../platform/log.ts";
import type { Place } from "./place.ts";
import { kafkaEndpoint, registryOf, serviceDatabase } from "./wiring.ts";

type ContractActions = Pick<
  Actions,
  | "schemaList"
  | "schemaShow"
  | "schemaCheck"
  | "schemaGenerate"
  | "schemaRegister"
  | "topicsPlan"
  | "topicsApply"
  | "topicsDrift"
>;

/** `fabric schema …` and `fabric topics …`. */
export function contractActions(
  place: Place,
  configOf: (common: Common) => Promise<Config>,
): ContractActions {
  const schemasDir = join(place.packageDir, "schemas");
  return {
    async schemaList(common) {
      // The catalogue needs no server; the registered ids are shown when there is one.
      const config = await configOf(common).catch(() => null);
      const database =
        config?.databaseUrls.contracts === undefined ? null : serviceDatabase(config, "contracts");
      try {
        const lines = await listSchemas(database).catch(() => listSchemas(null));
        return { json: lines, text: renderList(common.screen, lines) };
      } finally {
        await database?.end();
      }
    },
    schemaShow: (_common, { type }) => {
      const detail = showSchema(type);
      return Promise.resolve({ json: detail, text: renderShow(detail).trimEnd() });
    },
    async schemaCheck() {
      const report = await checkSchemas(schemasDir);
      return {
        json: report,
        text: renderCheck(report).trimEnd(),
        exit: report.findings.length === 0 ? 0 : 1,
      };
    },
    async schemaGenerate(_common, { check, accept }) {
      const report = await generateSchemas(schemasDir, { check });
      const accepted = accept && !check ? await acceptHistory(schemasDir) : null;
      return {
        json: { ...report, ...(accepted === null ? {} : accepted) },
        text: [renderGenerate(report), accepted === null ? "" : renderAccept(accepted)].join("").trimEnd(),
        exit: check && report.stale.length > 0 ? 1 : 0,
      };
    },
    async schemaRegister(common) {
      const report = await registerAll(await configOf(common));
      return { json: report, text: renderRegister(report).trimEnd() };
    },
    topicsPlan: async (common) =>
      withPlan(await configOf(common), (plan) => ({ json: plan, text: renderTopics(plan).trimEnd() })),
    topicsApply: async (common) => applyAll(await configOf(common)),
    topicsDrift: async (common) =>
      withPlan(await configOf(common), (plan) => ({
        json: plan,
        text: renderTopics(plan).trimEnd(),
        exit: plan.changes.length + plan.drift.length === 0 ? 0 : 1,
      })),
  };
}

/** Registers every type; used by `fabric schema register` and when a local stack comes up. */
export async function registerAll(config: Config) {
  const database = serviceDatabase(config, "contracts");
  const registry = registryOf(config);
  try {
    return await registerSchemas({ registry, database, topicPrefix: config.kafka.topicPrefix });
  } finally {
    registry.close();
    await database.end();
  }
}

/** Creates and adjusts the topics. */
export async function applyAll(config: Config): Promise<Report> {
  return withPlan(config, async (plan, admin) => {
    const applied = await applyTopics(admin, plan);
    return { json: applied, text: renderTopics(applied, true).trimEnd() };
  });
}

async function withPlan(
  config: Config,
  work: (plan: TopicPlan, admin: ReturnType<typeof createKafkaAdmin>) => Report | Promise<Report>,
): Promise<Report> {
  const log = createLog({ service: "topics", level: "fatal" });
  const admin = createKafkaAdmin({
    endpoint: kafkaEndpoint(config, `fabric-topics-${String(systemClock.nowMs())}`),
    log,
  });
  try {
    const plan = await planTopics(admin, {
      topicPrefix: config.kafka.topicPrefix,
      replication: config.kafka.replication,
    });
    return await work(plan, admin);
  } finally {
    await admin.close();
  }
}

function renderList(screen: Screen, lines: readonly SchemaLine[]): string {
  return toTable(
    ["TYPE", "VERSION", "ID", "CLASS", "OWNER", "WHAT"],
    lines.map((one) => [
      one.type,
      one.version,
      one.schemaId === null ? "-" : String(one.schemaId),
      one.class,
      one.owner,
      one.summary,
    ]),
    screen.columns,
  );
}
