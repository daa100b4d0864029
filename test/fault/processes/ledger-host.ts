import { createVaultLetterSealer } from "../../../services/host/letter-sealer.ts";
import { liveSteps } from "../../../services/host/batch-steps.ts";
import type { Step, Work } from "../../../services/host/batch-steps.ts";
import { startHost } from "../../../services/host/host.ts";
import { systemClock } from "../../../services/platform/clock.ts";
import { createKafkaConsumer } from "../../../services/platform/kafka-consumer.ts";
import { createLog } from "../../../services/platform/log.ts";
import { createMetrics } from "../../../services/platform/metrics.ts";
import type { Database } from "../../../services/platform/postgres.ts";
import { openDatabase } from "../../../services/platform/postgres.ts";
import { openMemoryKek, openTenantKeys } from "../../../services/platform/vault-seal.ts";
import { ledgerProcessor } from "../ledger/ledger-processor.ts";
import { codecOf, nextAssigner, nextLedgerProcessor, oldAssigner } from "../ledger/two-versions.ts";
import type { ChildSettings } from "./child.ts";
import { onAskedToEnd, runChild, stopDead } from "./child.ts";

const slicesBeforeGap = 5;

runChild((settings) => {
  const log = createLog({ service: settings.name, level: "error" });
  const database = openDatabase({
    url: settings.databaseUrl,
    applicationName: settings.name,
    searchPath: ["host"],
    maxConnections: 8,
  });
  const { release = "old", broken } = settings;
  const endpoint = { brokers: settings.brokers, clientId: settings.name };
  const next = nextLedgerProcessor(broken === "renamed" ? "next-ledger" : undefined);
  const host = startHost({
    processors: [release === "old" ? ledgerProcessor : next],
    endpoint,
    database,
    codec: codecOf(release),
    sealer: createVaultLetterSealer(openTenantKeys(database, openMemoryKek("test", Buffer.alloc(32, 7)))),
    metrics: createMetrics(),
    log,
    clock: systemClock,
    environment: "test",
    topicPrefix: settings.topicPrefix,
    groupPrefix: settings.topicPrefix,
    steps: stepsOf(settings, database),
    openConsumer: (groupId, consumerLog) =>
      createKafkaConsumer({
        endpoint,
        groupId,
        log: consumerLog,
        sessionTimeoutMs: 6_000,
        rebalanceTimeoutMs: 6_000,
        heartbeatIntervalMs: 500,
        // What is rolled out knows the protocol of what runs, and prefers its own.
        partitionAssigners: release === "old" ? [oldAssigner] : [nextAssigner, oldAssigner],
      }),
  });
  onAskedToEnd(() => host.stop());
});

/** The live steps, with a gap or a defect planted. */
function stepsOf({ gap, broken }: ChildSettings, database: Database): readonly Step[] {
  let slices = 0;
  const planted = (step: Step): Step => {
    if (step.name === gap && broken === undefined) {
      return {
        ...step,
        run: async (work, tx) => {
          slices += 1;
          if (slices > slicesBeforeGap) await stopDead(gap);
          await step.run(work, tx);
        },
      };
    }
    if (step.name === "claim" && broken === "no-inbox") {
      return {
        ...step,
        run: (work) => {
          work.claimed = work.records.filter((read) => read.kind === "event");
          return Promise.resolve();
        },
      };
    }
    if (step.name === "project" && broken === "watermark-first") {
      return {
        ...step,
        run: async (work, tx) => {
          slices += 1;
          await commitWatermark(database, work);
          if (gap === "watermark-projection" && slices > slicesBeforeGap) await stopDead(gap);
          await step.run(work, tx);
        },
      };
    }
    if (step.name === "watermark" && broken === "watermark-first")
      return { ...step, run: () => Promise.resolve() };
    return step;
  };
  return liveSteps.map(planted);
}

/** The defect: progress is made durable before the work is. */
async function commitWatermark(database: Database, work: Work): Promise<void> {
  await database.query(
    "UPDATE host.watermarks SET next_offset = $4 WHERE processor = $1 AND topic = $2 AND partition = $3",
    [work.processor.name, work.position.topic, work.position.partition, work.nextOffset],
  );
}
