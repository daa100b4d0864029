import type { AskedCall, Classified, Classify } from "./classified.ts";
import type { Policy } from "./policy/policy.ts";

/** A classification that is made once, and what it cost. */
export interface ClassifyOnce {
  readonly classify: Classify;
  /** Milliseconds that the request's classifications took, all of them; 0: there was none. */
  costMs(request: AskedCall): number;
}

interface Made {
  readonly policy: Policy;
  readonly realPaths: ReadonlyMap<string, string> | undefined;
  readonly classified: Classified;
}

/**
 * Classifies each request object once for a policy and what its links lead to. A rewritten request is an object of its
 * own. What is remembered goes with the request.
 */
export function createClassifyOnce(classify: Classify, monotonicMs: () => number): ClassifyOnce {
  const known = new WeakMap<AskedCall, { made: Made[]; costMs: number }>();
  return {
    classify(request, policy, realPaths) {
      let entry = known.get(request);
      const found = entry?.made.find((one) => one.policy === policy && one.realPaths === realPaths);
      if (found !== undefined) return found.classified;
      const startedMs = monotonicMs();
      const classified = classify(request, policy, realPaths);
      if (entry === undefined) known.set(request, (entry = { made: [], costMs: 0 }));
      entry.made.push({ policy, realPaths, classified });
      entry.costMs += monotonicMs() - startedMs;
      return classified;
    },
    costMs: (request) => known.get(request)?.costMs ?? 0,
  };
}
