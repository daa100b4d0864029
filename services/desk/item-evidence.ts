import type { Tx } from "../platform/postgres.ts";

/** What the queue's own room puts together about an item: the desk shows it as it is, but for the references. */
export interface ItemEvidence {
  /** References into the vault; the bytes need a right of their own. */
  readonly payload_refs: readonly string[];
}

/** Reads what an item rests on; handed in, since the tables are the queue's. */
export type LoadEvidence = (tx: Tx, tenantId: string, itemId: string) => Promise<ItemEvidence>;
