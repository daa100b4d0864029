import fc from "fast-check";
import { expect, it } from "vitest";
import { appendTrail } from "../../processors/audit/store.ts";
import { digestsOfStoredRow } from "../../processors/audit/stored-row.ts";
import { toAuditRow } from "../../processors/audit/words.ts";
import { newSealKeyPem, readSealKey } from "../../services/audit/seal-key.ts";
import { createSealer } from "../../services/audit/sealer.ts";
import { verifyAudit } from "../../services/audit/verify.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { createTestDatabase } from "../harness/database.ts";
import { modelEvent } from "../harness/host-rig.ts";
import { memoryCodec } from "../harness/memory-codec.ts";

it("seals every row exactly once while partitions commit out of step, some of them during a run", async () => {
  const database = await createTestDatabase();
  const sql = openDatabase({
    url: database.url,
    applicationName: "audit-property",
    searchPath: ["host", "audit"],
    maxConnections: 6,
  });
  const key = readSealKey(newSealKeyPem());
  const sealer = createSealer({
    database: sql,
    encoder: memoryCodec(),
    key,
    clock: systemClock,
    environment: "test",
    log: createLog({ service: "sealer", level: "silent" }),
  });
  const partitions = 3;
  /** One batch of a partition, as the host commits it: rows and watermark together, the commit a moment later. */
  const commit = (
    topic: string,
    partition: number,
    from: number,
    count: number,
    holdMs: number,
  ): Promise<void> =>
    sql.transaction(async (tx) => {
      const rows = Array.from({ length: count }, (_, index) =>
        toAuditRow(modelEvent(index, `tenant-${(from + index) % 2}`), {
          topic,
          partition,
          offset: BigInt(from + index),
        }),
      );
      if (rows.length > 0) await appendTrail(tx, rows);
      await tx.query(
        `INSERT INTO watermarks (processor, topic, partition, next_offset, owner) VALUES ('audit', $1, $2, $3, 'x')
          ON CONFLICT (processor, topic, partition) DO UPDATE SET next_offset = excluded.next_offset`,
        [topic, partition, from + count],
      );
      await tx.query("SELECT pg_sleep($1)", [holdMs / 1_000]);
    });
  const round = fc.array(
    fc.record({ partition: fc.nat(partitions - 1), count: fc.nat(8), holdMs: fc.constantFrom(0, 2, 6) }),
    { maxLength: 5 },
  );
  let story = 0;
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(round, { maxLength: 5 }), async (rounds) => {
        story += 1;
        const topic = `t${story}`;
        const next = Array.from({ length: partitions }, () => 0);
        for (const batches of rounds) {
          const lines = next.map(async (_, partition) => {
            for (const { count, holdMs } of batches.filter((one) => one.partition === partition)) {
              await commit(topic, partition, next[partition] ?? 0, count, holdMs);
              next[partition] = (next[partition] ?? 0) + count;
            }
          });
          await Promise.all([...lines, sealer.sealOnce(), sealer.sealOnce()]);
        }
        while ((await sealer.sealOnce()).state === "sealed");
        const report = await verifyAudit({
          database: sql,
          keys: new Map([[key.keyId, key.publicKey]]),
          digestsOf: digestsOfStoredRow,
          heads: null,
        });
        expect(report).toMatchObject({ ok: true, unsealedRows: 0 });
        const { rows } = await sql.query<{ n: bigint }>("SELECT count(*) AS n FROM trail");
        expect(BigInt(report.sealedRows)).toBe(rows[0]?.n);
      }),
      { numRuns: 25 },
    );
  } finally {
    await sql.end();
    await database.drop();
  }
});
