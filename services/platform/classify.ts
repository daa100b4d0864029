import { Fault } from "../../schemas/faults.ts";
import type { FaultCode } from "../../schemas/faults.ts";

/**
 * Where work can fail: the steps of a consumer's batch, the sending of what waits in the outbox, a decision with its
 * commit, the sending of spans, and a call that changes something outside once it is on the wire.
 */
export type FaultStage =
  | "decode"
  | "claim"
  | "project"
  | "apply"
  | "emit"
  | "watermark"
  | "commit"
  | "offset"
  | "publish"
  | "decide"
  | "export"
  | "effect";

/** Stages in which the processor's own code runs: an error that is no fault of the rim is its own. */
const processorStages: ReadonlySet<FaultStage> = new Set(["project", "apply", "emit"]);

/**
 * What an error means for the work, told by where it arose: one of the five kinds, as host, redriver, relay, gate and
 * exporter read it. A fault of the rim says it itself; anything else is the processor's where its code ran, the record's
 * where it was read, unknown where an effect was under way (never sent again blindly), and else a broken invariant.
 */
export function classify(error: unknown, stage: FaultStage): Fault {
  if (error instanceof Fault) return error;
  const text = error instanceof Error ? error.message : String(error);
  if (stage === "effect") return new Fault("EFFECT_UNKNOWN", text, { cause: error });
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
  "COLLECTOR_UNAVAILABLE",
]);

/** Whether a fault that may pass can be one record's own: it then counts against the record's budget. */
export function mayBeRecordsOwn(fault: Fault): boolean {
  return !missingDependency.has(fault.code);
}
