import type { Processor } from "../../../processors/kit/processor.ts";
import { defineProcessor } from "../../../processors/kit/processor.ts";

/** Writes a row per event into a table without a key, so that what is counted twice shows; `id` is the order. */
export const ledgerProcessor: Processor = defineProcessor({
  name: "ledger",
  topics: ["agent.model.completed"],
  project: (event) => [
    { id: event.event_id, key: event.correlation_id, n: event.redacted_summary.output_tokens ?? 0n },
  ],
  apply: async (tx, rows) => {
    await tx.query({
      name: "ledger-add",
      text: "INSERT INTO ledger.rows (event_id, key, n) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])",
      values: [rows.map((one) => one.id), rows.map((one) => one.key), rows.map((one) => one.n)],
    });
  },
});
