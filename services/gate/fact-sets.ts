import type { GateRequest, Json } from "../../schemas/gate.ts";
import type { FactScope } from "./policy/policy.ts";
import { factScopes } from "./policy/policy.ts";

/**
 * The value of a fact that is told by user, agent or tool: what holds for whoever is not named. Those who are named have
 * a row of their own (`toScopedName`).
 */
export interface FactSet {
  readonly by: FactScope;
  readonly otherwise: string | number | boolean;
}

/** Reads a fact's value as one that is told by scope; null: it is a plain value. */
export function parseFactSet(value: Json): FactSet | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const { by, otherwise } = value as Readonly<Record<string, unknown>>;
  const scope = factScopes.find((one) => one === by);
  const isPlain =
    typeof otherwise === "string" || typeof otherwise === "number" || typeof otherwise === "boolean";
  return scope === undefined || !isPlain ? null : { by: scope, otherwise };
}

/** Name of the row that holds one scope's value. No reporter can give a plain fact such a name. */
export function toScopedName(fact: string, scopeId: string): string {
  return `${fact}/${scopeId}`;
}

/** Whose value counts for a request; null: it names nobody. */
export function toFactScopeId(by: FactScope, request: GateRequest): string | null {
  switch (by) {
    case "user":
      return request.user_id ?? null;
    case "agent":
      return request.agent_id ?? null;
    case "tool":
      return request.tool;
  }
}
