import type { VerifyReport } from "../../audit/verify.ts";
import { verifySnapshot, verifyTrail } from "../verify-trail.ts";
import type { World } from "./world.ts";

/** Thrown to undo the tampering. */
class Undo extends Error {}

/** Step: the audit trail is sealed in signed blocks; it verifies, and a changed row is named. */
export async function sealTrail(world: World): Promise<void> {
  world.say("The audit trail under seal");
  const unsealed = await world.until(
    () =>
      world.count(
        `SELECT count(*) FROM audit.trail t LEFT JOIN audit.frontiers f USING (topic, partition)
         WHERE t.kafka_offset >= coalesce(f.sealed_to, 0)`,
      ),
    (left) => left === 0,
  );
  const clean = await verifySnapshot(world.config, world.sql);
  world.claim(
    "every row is sealed, and the chain verifies against its signatures and the heads on the topic",
    clean.ok && unsealed.held && clean.headsChecked,
    `${String(clean.sealedRows)} rows in ${String(clean.blocks)} blocks`,
  );

  let tampered: VerifyReport | undefined;
  await world.sql
    .transaction(async (tx) => {
      // As a superuser would: past the grants and past the trigger.
      await tx.query("SET LOCAL session_replication_role = replica");
      await tx.query(
        "UPDATE audit.trail SET reason_code = 'ALLOWED', decision = 'allow' WHERE event_id = (SELECT event_id FROM audit.trail WHERE event_type = 'agent.tool.denied' LIMIT 1)",
      );
      tampered = await verifyTrail(world.config, tx);
      throw new Undo();
    })
    .catch((error: unknown) => {
      if (!(error instanceof Undo)) throw error;
    });
  const finding = tampered?.findings[0];
  world.show(
    "finding",
    finding === undefined
      ? "none"
      : `${finding.kind} at ${finding.row?.topic ?? "?"}: ${finding.detail.slice(0, 100)}`,
  );
  world.claim(
    "a denial that somebody turns into an allow is found, and its row named (then undone)",
    tampered?.ok === false && finding?.kind === "row_changed",
    finding === undefined ? "nothing found" : finding.kind,
  );
}
