import type { KeyObject } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { digestsOfStoredRow } from "../../processors/audit/stored-row.ts";
import { Fault } from "../../schemas/faults.ts";
import { readPublicKey } from "../audit/seal-key.ts";
import { readSealedHeads } from "../audit/sealed-heads.ts";
import type { SealedHead, VerifyReport } from "../audit/verify.ts";
import { verifyAudit } from "../audit/verify.ts";
import { EventCodec } from "../platform/avro.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";
import { createKafkaConsumer } from "../platform/kafka-consumer.ts";
import { createKafkaOffsets } from "../platform/kafka-offsets.ts";
import { createLog } from "../platform/log.ts";
import type { Database } from "../platform/postgres.ts";
import { kafkaEndpoint, registryOf } from "./wiring.ts";

/**
 * Verifies the trail in one snapshot, so that a block that is sealed meanwhile is not taken for tampering.
 */
export function verifySnapshot(config: Config, database: Database, tenantId?: string): Promise<VerifyReport> {
  return database.transaction(async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    return verifyTrail(config, tx, tenantId);
  });
}

/** Verifies the trail that `database` shows, against the seals on the topic where a broker answers. */
export async function verifyTrail(
  config: Config,
  database: Pick<Database, "query">,
  tenantId?: string,
): Promise<VerifyReport> {
  return verifyAudit({
    database,
    keys: await loadPublicKeys(config),
    digestsOf: digestsOfStoredRow,
    heads: await loadHeads(config),
    ...(tenantId === undefined ? {} : { tenantId }),
  });
}

/** Every public key that ever signed a block; the private one is not needed to verify, nor wanted here. */
async function loadPublicKeys(config: Config): Promise<Map<string, KeyObject>> {
  const dir = requireSetting(
    config.sealPublicKeysDir,
    "FABRIC_SEAL_PUBLIC_KEYS_DIR",
    "signatures are checked with the keys in it",
  );
  const keys = new Map<string, KeyObject>();
  try {
    for (const name of (await readdir(dir)).filter((one) => one.endsWith(".pem"))) {
      const { keyId, publicKey } = readPublicKey(await readFile(join(dir, name), "utf8"));
      keys.set(keyId, publicKey);
    }
  } catch (error) {
    throw new Fault("KEY_UNAVAILABLE", `the public keys in \`${dir}\` cannot be read`, { cause: error });
  }
  return keys;
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
