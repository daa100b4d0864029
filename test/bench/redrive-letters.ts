import type { Client } from "pg";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { Fault } from "../../schemas/faults.ts";
import { toLetter } from "../../services/host/letter.ts";
import { insertLetters } from "../../services/host/letter-rows.ts";
import { createVaultLetterSealer } from "../../services/host/letter-sealer.ts";
import { EventCodec } from "../../services/platform/avro.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openMemoryKek, openTenantKeys } from "../../services/platform/vault-seal.ts";
import { benchEvent, benchType } from "./bench-events.ts";

export const redriveProcessor = "bench-redrive";
const types = [
  benchType,
  "fabric.letter.redriven",
  "fabric.letter.buried",
  "fabric.redrive.requested",
] as const;
const lettersPerCommit = 1_000;
const partitions = 6;

/** The types that a redrive reads and writes, without a registry. */
export function letterCodec(): EventCodec {
  return new EventCodec({
    schemaIds: new Map(types.map((type, index) => [type as string, index + 1])),
    source: {
      schemaById(id) {
        const type = types[id - 1];
        return type === undefined
          ? Promise.reject(new Fault("SCHEMA_ID_UNKNOWN", String(id)))
          : Promise.resolve(eventSchema(type));
      },
    },
  });
}

/** Buries letters as a host does whose processor fails at every event: bytes in the vault, the event claimed. */
export async function buryLetters(hostUrl: string, admin: Client, count: number): Promise<void> {
  await admin.query("INSERT INTO access.tenants (tenant_id) VALUES ('acme') ON CONFLICT DO NOTHING");
  const database = openDatabase({ url: hostUrl, applicationName: "fabric-bench-bury", maxConnections: 2 });
  const sealer = createVaultLetterSealer(
    openTenantKeys(database, openMemoryKek("bench", Buffer.alloc(32, 7))),
  );
  const codec = letterCodec();
  await sealer.open(["acme"]);
  for (let from = 0; from < count; from += lettersPerCommit) {
    const letters = Array.from({ length: Math.min(lettersPerCommit, count - from) }, (_, index) => {
      const n = from + index;
      const event = benchEvent(n);
      const record = {
        offset: BigInt(Math.floor(n / partitions)),
        key: Buffer.from("acme"),
        value: codec.encode(event).bytes,
        headers: {},
        timestampMs: event.recorded_at,
      };
      return toLetter(record, event, new Fault("PROJECTION_FAILED", "planted"), 1, {
        processor: { name: redriveProcessor, version: "1" },
        source: { topic: benchType, partition: n % partitions },
        type: benchType,
        environment: "bench",
        nowMs: event.recorded_at,
      });
    });
    await database.transaction(async (tx) => {
      await tx.query("SELECT host.claim_events($1, $2::uuid[])", [
        redriveProcessor,
        letters.map(({ eventUuid }) => eventUuid),
      ]);
      await insertLetters(tx, sealer, letters, "host");
    });
  }
  await database.end();
  await admin.query("ANALYZE host.letters; ANALYZE vault.evidence; ANALYZE host.inbox");
}
