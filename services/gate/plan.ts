import type { Constraints, GateRequest, Json, JsonObject } from "../../schemas/gate.ts";
import { canonicalDigest } from "../platform/canonical-json.ts";
import type { Classified } from "./classify.ts";

/** The frozen action: what was judged and nothing else may be done with the right that comes of it. */
export interface Plan {
  readonly tool: string;
  readonly action: string;
  readonly arguments: JsonObject;
  readonly working_directory: string | null;
  readonly resource: string | null;
  readonly constraints: Constraints;
}

/** The plan of a request. Volatile fields (the model's own description, a time limit) are no part of it. */
export function toPlan(request: GateRequest, classified: Classified, constraints: Constraints): Plan {
  const volatile = new Set(classified.entry?.volatile ?? []);
  const kept = Object.entries(request.input).filter(([field]) => !volatile.has(field));
  return {
    tool: request.tool,
    action: classified.action,
    arguments: Object.fromEntries(kept),
    working_directory: request.working_directory ?? null,
    resource: classified.resource,
    constraints,
  };
}

/** `sha256:` and hex over the plan's RFC 8785 form; null when the input has no such form. */
export function planDigest(plan: Plan): string | null {
  try {
    return canonicalDigest(plan as unknown as Json);
  } catch (error) {
    // Half a surrogate pair, or nested too deep: the request is denied as unreadable, and has no plan.
    if (error instanceof TypeError) return null;
    throw error;
  }
}
