import type { Tx } from "../platform/postgres.ts";
import type { LogRecord } from "../platform/kafka-consumer.ts";
import type { Letter } from "./letter.ts";
import type { LetterSealer } from "./letter-sealer.ts";

/** Stores letters: bytes to the vault, rows to `letters` of the schema `host`, in the caller's transaction. */
export async function insertLetters(
  tx: Tx,
  sealer: LetterSealer,
  letters: readonly Letter[],
  host: string,
): Promise<void> {
  const sealed = await sealer.seal(
    tx,
    letters.map(({ tenantId, dataClass, record }) => ({
      tenantId,
      dataClass,
      bytes: record.value ?? Buffer.alloc(0),
    })),
  );
  await tx.query({
    name: "host-insert-letters",
    text: `INSERT INTO ${host}.letters (id, kind, fault_kind, code, detail, processor, processor_version, attempts, tenant_id,
        topic, partition, kafka_offset, record_timestamp, record_key, headers, event_id, payload_ref, payload_digest,
        accountable, redeliver_role)
      SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::int[], $9::text[], $10::text[], $11::int[], $12::bigint[], $13::timestamptz[], $14::bytea[], $15::jsonb[],
        $16::uuid[], $17::text[], $18::text[], $19::text[], $20::text[])
      ON CONFLICT (id) DO NOTHING`,
    values: [
      letters.map((one) => one.id),
      letters.map((one) => one.kind),
      letters.map((one) => one.fault.kind),
      letters.map((one) => one.fault.code),
      letters.map((one) => withoutNul(one.detail)),
      letters.map((one) => one.processorName),
      letters.map((one) => one.processorVersion),
      letters.map((one) => one.attempts),
      letters.map((one) => one.tenantId),
      letters.map((one) => one.source.topic),
      letters.map((one) => one.source.partition),
      letters.map((one) => one.record.offset),
      letters.map((one) => new Date(one.record.timestampMs)),
      letters.map((one) => one.record.key),
      letters.map((one) => JSON.stringify(toHeaderTexts(one.record))),
      letters.map((one) => one.eventUuid),
      sealed.map((one) => one.ref),
      sealed.map((one) => one.digest),
      letters.map((one) => one.accountable),
      letters.map((one) => one.redeliverRole),
    ],
  });
}

/** Postgres text and jsonb hold no NUL. */
const withoutNul = (text: string): string => text.replaceAll("\u0000", "\uFFFD");

/** Headers as base64, byte for byte, so that a redrive sends them as they were; a repeated one keeps all its values. */
function toHeaderTexts(record: LogRecord): Record<string, string | string[]> {
  const base64 = (value: Buffer | string): string => Buffer.from(value as string).toString("base64");
  return Object.fromEntries(
    Object.entries(record.headers).flatMap(([name, value]) =>
      value === undefined
        ? []
        : [[withoutNul(name), Array.isArray(value) ? value.map(base64) : base64(value)]],
    ),
  );
}
