import type { GateRequest } from "../../schemas/gate.ts";

/** A rule's rewrite of an input: what it was, what it is, and who did it. */
export interface Rewrite {
  readonly rule: string;
  readonly request: GateRequest;
}

/**
 * Stage 5: the input that will run. No rule rewrites yet, so it is the one that came in; a rewrite returned here
 * passes the stages before it once more.
 */
export function normalizeInput(_request: GateRequest): Rewrite | null {
  return null;
}
