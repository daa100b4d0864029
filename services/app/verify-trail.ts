import { digestsOfStoredRow } from "../../processors/audit/stored-row.ts";
import type { SealedHead, VerifyReport } from "../audit/verify.ts";
import { verifyAudit } from "../audit/verify.ts";
import { EventCodec } from "../platform/avro.ts";
import type { Config } from "../platform/config.ts";
import type { Database } from "../platform/postgres.ts";
import { loadSealKey } from "./start-sealer.ts";
import { readTopicRecords } from "./topic-records.ts";
import { registryOf } from "./wiring.ts";

const sealedType = "fabric.audit.sealed";

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
    heads: await loadHeads(config).catch(() => null),
    ...(tenantId === undefined ? {} : { tenantId }),
  });
}

/** The last seal of each tenant, as the topic has it. */
async function loadHeads(config: Config): Promise<ReadonlyMap<string, SealedHead>> {
  const registry = registryOf(config);
  const codec = new EventCodec({ source: registry });
  const heads = new Map<string, SealedHead>();
  try {
    for (const record of await readTopicRecords(config, [sealedType])) {
      const { envelope } = await codec.decode(record.value);
      if (envelope.type !== sealedType) continue;
      const { block_number, block_digest } = envelope.redacted_summary;
      const before = heads.get(envelope.tenant_id);
      if (before === undefined || before.blockNumber < block_number) {
        heads.set(envelope.tenant_id, { blockNumber: block_number, blockDigest: block_digest });
      }
    }
    return heads;
  } finally {
    registry.close();
  }
}
