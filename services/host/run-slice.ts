import type { Fault } from "../../schemas/faults.ts";
import type { Step, Work } from "./batch-steps.ts";
import type { FaultStage } from "../platform/classify.ts";
import { classify } from "../platform/classify.ts";
import { Fenced } from "./fenced.ts";
import type { HostStore, HostTx } from "./host-store.ts";
import { letterTenant } from "./letter.ts";

/** A step failed; nothing of the slice's transaction remains. */
export class StepFault extends Error {
  readonly stage: FaultStage;
  readonly fault: Fault;
  constructor(stage: FaultStage, fault: Fault) {
    super(`${stage}: ${fault.message}`, { cause: fault });
    this.name = "StepFault";
    this.stage = stage;
    this.fault = fault;
  }
}

/** Thrown by a planted step: the process is gone at this point, no handler runs. Never thrown by shipped steps. */
export class HostDied extends Error {
  constructor(at: string) {
    super(`the host died at ${at}`);
    this.name = "HostDied";
  }
}

/**
 * Runs the steps on one slice: those up to `commit` in one transaction, the rest after it. Throws `Fenced`, or a
 * `StepFault` that says where. `dryRun` undoes the transaction at the end and skips what is behind `commit`.
 */
export async function runSlice(
  work: Work,
  steps: readonly Step[],
  store: Pick<HostStore, "prepareLetters" | "transaction">,
  options: { readonly dryRun?: boolean } = {},
): Promise<void> {
  const boundary = steps.findIndex(({ name }) => name === "commit") + 1;
  const inside = steps.slice(0, boundary);
  let stage: FaultStage = "emit";
  let committed = false;
  try {
    // INVARIANT: nothing inside the transaction waits for another connection of the pool: all of them may be such
    // transactions (test/integration/host-faults.test.ts "needs no second connection to bury the letters of …").
    const tenants = tenantsOfLetters(work);
    if (tenants.length > 0) await store.prepareLetters(tenants);
    stage = inside[0]?.name ?? "commit";
    await store.transaction(async (tx: HostTx) => {
      for (const step of inside) {
        stage = step.name;
        await step.run(work, tx);
      }
      if (options.dryRun === true) throw new DryRunEnd();
    });
    committed = true;
    for (const step of steps.slice(boundary)) {
      stage = step.name;
      await step.run(work, afterCommit);
    }
  } catch (error) {
    if (error instanceof DryRunEnd || error instanceof Fenced || error instanceof HostDied) {
      if (error instanceof DryRunEnd) return;
      throw error;
    }
    // After the commit the work is done: a lost offset commit costs a redelivery that the watermark answers.
    if (!committed) throw new StepFault(stage, classify(error, stage));
  }
}

/** Tenants of the letters that a slice will bury, as far as can be told before its claim. */
function tenantsOfLetters({ letters, records }: Work): readonly string[] {
  const tenants = new Set(letters.map(({ tenantId }) => tenantId));
  for (const read of records) {
    if (read.kind === "refused") tenants.add(letterTenant(null));
    else if (read.kind === "event" && read.thrown !== null) tenants.add(letterTenant(read.thrown.event));
  }
  return [...tenants];
}

class DryRunEnd extends Error {}

const afterCommit: HostTx = new Proxy({} as HostTx, {
  get() {
    throw new Error("a step behind `commit` has no transaction");
  },
});
