import type { Database, Tx } from "../platform/postgres.ts";
import type { EvidenceRow } from "../platform/vault-seal.ts";
import { insertEvidenceStatement } from "../platform/vault-seal.ts";
import { commitStatement } from "./commit-statement.ts";
import type { GroupFacts } from "./facts.ts";
import { loadFacts } from "./facts.ts";
import type { HookOutcome } from "./hook-work.ts";
import type { PreparedCall } from "./prepare-call.ts";
import type { GroupRows } from "./store.ts";

/**
 * What a gate does to the world for its calls, in this order. Between `read` and `write` the group is decided and its
 * evidence sealed, in memory alone. Tests kill a gate before one of them, or put a fault in its place.
 */
export interface CommitSteps {
  /** 1. Evidence that is too large for a group's statement goes to the vault by itself. */
  store(evidence: readonly EvidenceRow[]): Promise<void>;
  /** 2. All that the group is decided on. */
  read(wanted: Parameters<typeof loadFacts>[1]): Promise<GroupFacts>;
  /** 3. Decisions, evidence, rights and events in one statement, which is a transaction: all of it, or nothing. */
  write(tx: Tx, rows: GroupRows, calls: readonly PreparedCall[]): Promise<void>;
  /** 4. What was committed is told to those who wait. */
  answer(calls: readonly PreparedCall[]): Promise<void>;
}

export function createCommitSteps(database: Database): CommitSteps {
  return {
    store: async (evidence) => {
      await database.query(insertEvidenceStatement(evidence));
    },
    read: (wanted) => loadFacts(database, wanted),
    write: async (tx, rows) => {
      await tx.query(commitStatement(rows));
    },
    answer: (calls) => {
      for (const one of calls) one.queued.answer(toOutcome(one));
      return Promise.resolve();
    },
  };
}

function toOutcome({ decision }: PreparedCall): HookOutcome {
  return decision === null
    ? { kind: "recorded", repeated: false }
    : { kind: "answered", answer: decision.answer };
}
