import type { GateRequest } from "../../schemas/gate.ts";

/** A rule's rewrite of a request's input, and the rule's name. Tool, action, resource and place stay as they are. */
export interface Rewrite {
  readonly rule: string;
  readonly request: GateRequest;
}

/** Stage 5: what an input becomes before it runs; null leaves it as it is. */
export type Normalizer = (request: GateRequest) => Rewrite | null;

/** The normalizer of this version: no rule rewrites yet. */
export const keepInput: Normalizer = () => null;
