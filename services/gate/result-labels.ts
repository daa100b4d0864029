import type { GateRequest } from "../../schemas/gate.ts";
import type { Classify } from "./classified.ts";
import type { Facts } from "./facts-of-call.ts";
import type { Policy } from "./policy/policy.ts";
import { classifySafely } from "./stages/classify-stage.ts";
import { riskStage } from "./stages/risk.ts";
import { judgeSafely } from "./stages/stage.ts";

/**
 * Labels that a session carries once a call has a result, whatever was decided on it and whether anybody asked: what was
 * read was read. Pure.
 */
export function labelsOfResult(
  reported: GateRequest,
  facts: Facts,
  policy: Policy,
  classify: Classify,
): readonly string[] {
  if (policy.labels.length === 0) return [];
  const classified = classifySafely(classify, reported, policy);
  const { notes } = judgeSafely(riskStage, { request: reported, classified, facts, policy, cedar: silent });
  return [...new Set(notes.flatMap((note) => (note.kind === "labels" ? note.labels : [])))].sort();
}

/** Nothing is authorized afterwards. */
const silent = () => ({ denied: [], forbidden: [], permitted: [] });
