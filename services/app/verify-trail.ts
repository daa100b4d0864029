import { digestsOfStoredRow } from "../../processors/audit/stored-row.ts";
import { Fault } from "../../schemas/faults.ts";
import { readSealedHeads } from "../audit/sealed-heads.ts";
import type { SealedHead, VerifyReport } from "../audit/verify.ts";
import { verifyAudit } from "../audit/verify.ts";
import { EventCodec } from "../platform/avro.ts";
import type { Config } from "../platform/config.ts";
import { createKafkaConsumer } from "../platform/kafka-consumer.ts";
import { createKafkaOffsets } from "../platform/kafka-offsets.ts";
import { createLog } from "../platform/log.ts";
import type { Database } from "../platform/postgres.ts";
import { loadSealKey } from "./start-sealer.ts";
import { kafkaEndpoint, registryOf } from "./wiring.ts";

/** Verifies the trail that `database` shows, against the seals on the topic where a broker answers. */
export async function verifyTrail(
  config: Config,
  database: Pick<Database, "query">,
  tenantId?: string,
): Promise<VerifyReport> {
  const { keyId, publicKey } = await loadSealKey(config);
  return verifyAudit({
    database,
    keys: new Map([[keyId, publicKey]]),
    digestsOf: digestsOfStoredRow,
    heads: await loadHeads(config),
    ...(tenantId === undefined ? {} : { tenantId }),
  });
}

/** The last seal of each tenant, as the topic has it; null when no broker can be asked, which the report says. */
async function loadHeads(config: Config): Promise<ReadonlyMap<string, SealedHead> | null> {
  const endpoint = kafkaEndpoint(config, "fabric-audit-verify");
  const log = createLog({ service: "audit-verify", level: "error" });
  const registry = registryOf(config);
  const offsets = createKafkaOffsets({ endpoint, log });
  try {
    return await readSealedHeads({
      openConsumer: (groupId) => createKafkaConsumer({ endpoint, groupId, log, maxWaitMs: 100 }),
      offsets,
      decoder: new EventCodec({ source: registry }),
      topicPrefix: config.kafka.topicPrefix,
    });
  } catch (error) {
    if (error instanceof Fault && error.kind === "transient") return null;
    throw error;
  } finally {
    await offsets.close();
    registry.close();
  }
}
