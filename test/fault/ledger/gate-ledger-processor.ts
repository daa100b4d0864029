import type { Processor } from "../../../processors/kit/processor.ts";
import { defineProcessor } from "../../../processors/kit/processor.ts";

/** What a gate tells of calls that are asked in its own language. */
export const gateLedgerTypes = [
  "agent.tool.requested",
  "agent.tool.authorized",
  "agent.capability.issued",
  "agent.capability.spent",
] as const;

/** Writes a row per event of a gate into a table without a key, so that what is counted twice shows. */
export const gateLedgerProcessor: Processor = defineProcessor({
  name: "gate-ledger",
  topics: gateLedgerTypes,
  project: (event) => [{ id: event.event_id, type: event.type, call: event.execution.tool_call_id }],
  apply: async (tx, rows) => {
    await tx.query({
      name: "gate-ledger-add",
      text: "INSERT INTO ledger.told (event_id, type, tool_call_id) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])",
      values: [rows.map((one) => one.id), rows.map((one) => one.type), rows.map((one) => one.call)],
    });
  },
});
