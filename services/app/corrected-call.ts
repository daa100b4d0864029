import { loadBookedCall } from "../../processors/cost/queries.ts";
import type { LoadCorrectedCall } from "../desk/correct-cost.ts";
import { toCorrectionAccount } from "./cost-actions.ts";

/** A call of the ledger with the account that a correction of it goes to; null for a call of another tenant. */
export const loadCorrectedCall: LoadCorrectedCall = async (tx, tenantId, eventId) => {
  const call = await loadBookedCall(tx, eventId);
  if (call?.tenant_id !== tenantId || call.kind === "correction") return null;
  return { account: toCorrectionAccount(call), correlationId: call.correlation_id };
};
