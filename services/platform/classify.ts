import { Fault } from "../../schemas/faults.ts";
import type { FaultCode } from "../../schemas/faults.ts";

/** Where work can fail: the steps of a consumer's batch, and the sending of what waits in the outbox. */
export type FaultStage =
  "decode" | "claim" | "project" | "apply" | "emit" | "watermark" | "commit" | "offset" | "publish";

/** Stages in which the processor's own code runs: an error that is no fault of the rim is its own. */
const processorStages: ReadonlySet<FaultStage> = new Set(["project", "apply", "emit"]);

/**
 * What an error means for the work, told by where it arose: one of the five kinds, as host, redriver and relay read it. A
 * fault of the rim says it itself; anything else is the processor's where its code ran, the record's where it was read,
 * and else a broken invariant.
 */
export function classify(error: unknown, stage: FaultStage): Fault {
  if (error instanceof Fault) return error;
  const text = error instanceof Error ? error.message : String(error);
  if (stage === "decode") return new Fault("RECORD_UNDECODABLE", text, { cause: error });
  if (processorStages.has(stage)) return new Fault("PROJECTION_FAILED", text, { cause: error });
  return new Fault("INTERNAL", text, { cause: error });
}

/** Whether this one record, and not its surroundings, is at fault. */
export function isRecordFault(fault: Fault): boolean {
  return fault.kind === "poison" || fault.kind === "refused" || fault.kind === "unknown_effect";
}

/** Faults that say that a dependency is away or a step of a deployment is missing. */
const missingDependency: ReadonlySet<FaultCode> = new Set([
  "SCHEMA_NOT_REGISTERED",
  "REGISTRY_UNAVAILABLE",
  "BROKER_UNAVAILABLE",
  "DATABASE_UNAVAILABLE",
  "TOPIC_MISSING",
]);

/** Whether a fault that may pass can be one record's own: it then counts against the record's budget. */
export function mayBeRecordsOwn(fault: Fault): boolean {
  return !missingDependency.has(fault.code);
}
