import type { Clock } from "../platform/clock.ts";
import type { Database } from "../platform/postgres.ts";
import type { TenantKeys } from "../platform/vault-seal.ts";
import type { Classify } from "./classified.ts";
import { withRealPaths } from "./classified.ts";
import type { Facts } from "./facts-of-call.ts";
import type { Policy } from "./policy/policy.ts";
import type { Ruling } from "./ruling.ts";
import { loadRecordedDecision } from "./simulate-source.ts";
import { decide } from "./stages/decide.ts";

export interface DecideAgainDeps {
  readonly database: Database;
  readonly keys: TenantKeys;
  readonly clock: Clock;
  readonly environment: string;
  readonly classify: Classify;
  readonly policy: () => Policy;
}

/**
 * What the policy of now says of a request that was decided before, on the facts that it was decided on, changed as asked.
 * Null: the request cannot be read any more. Nothing is written.
 */
export async function decideAgain(
  deps: DecideAgainDeps,
  decisionId: string,
  change: (facts: Facts) => Facts = (facts) => facts,
): Promise<Ruling | null> {
  const line = await loadRecordedDecision(deps, decisionId, deps.clock.nowMs());
  if (line?.kind !== "decision") return null;
  const { request, facts, operands, realPaths } = line.record;
  return decide(request, change(facts), deps.policy(), {
    classify: withRealPaths(deps.classify, realPaths),
    operands: operands ?? [],
  });
}
