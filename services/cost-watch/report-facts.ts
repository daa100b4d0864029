import type { Log } from "../platform/log.ts";

/** A tenant, and a token that may report facts of it. */
export interface Reporter {
  readonly tenantId: string;
  readonly token: string;
}

/** One fact for the gate: with one value, or told by user, agent or tool. */
export type DatedFact = { readonly name: string } & (
  | { readonly value: string }
  | {
      readonly by: string;
      readonly otherwise: string;
      readonly values: readonly { readonly id: string; readonly value: string }[];
    }
);

/** What the reporting of facts needs; all effects are handed in. */
export interface FactReporting {
  readonly loadReporters: () => Promise<readonly Reporter[]>;
  /** Facts of a tenant on a UTC day. */
  readonly loadFacts: (tenantId: string, day: string) => Promise<readonly DatedFact[]>;
  readonly report: (token: string, fact: DatedFact & { readonly at: string }) => Promise<void>;
  readonly nowMs: () => number;
  readonly log: Log;
}

/**
 * Tells the gate how each tenant's budgets stand, and returns how many facts it took. Told again in time although nothing
 * changed: a rule that finds its fact too old puts calls off, so a watch that is away is noticed and not taken for "within".
 */
export async function reportFacts(one: FactReporting): Promise<number> {
  let told = 0;
  for (const { tenantId, token } of await one.loadReporters()) {
    // The time before the look: a fact is never younger than what it was read from.
    const at = new Date(one.nowMs()).toISOString();
    try {
      for (const fact of await one.loadFacts(tenantId, at.slice(0, 10))) {
        await one.report(token, { ...fact, at });
        told += 1;
      }
    } catch (error) {
      one.log.warn(
        { err: error, tenant: tenantId },
        "the gate was not told of a tenant's budgets; trying again",
      );
    }
  }
  return told;
}
