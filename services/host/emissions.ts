import type { Emission } from "../../processors/kit/emission.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { toEnvelope } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import { emissionEventId } from "../platform/ids.ts";
import { hostRuntime } from "./letter.ts";

/**
 * Completes what a processor asks to publish. The id is derived from processor, type and dedupe key, so that a replay
 * or a second run publishes the same event. Throws PROJECTION_FAILED for a type that the processor does not declare.
 */
export function toEmittedEvents(
  processor: Pick<Processor, "name" | "emits">,
  emissions: readonly Emission[],
  nowMs: number,
): readonly Envelope[] {
  return emissions.map(({ dedupeKey, draft, cause }) => {
    if (!processor.emits.includes(draft.type)) {
      throw new Fault(
        "PROJECTION_FAILED",
        `\`${processor.name}\` returned ${draft.type}, which its \`emits\` does not list`,
      );
    }
    return toEnvelope(
      {
        ...draft,
        user_id: draft.user_id ?? cause.actor.user_id,
        agent_id: draft.agent_id ?? cause.actor.agent_id,
        execution: draft.execution ?? { ...cause.execution, attempt: 1 },
      } as typeof draft,
      {
        eventId: emissionEventId(processor.name, draft.type, cause.tenant_id, dedupeKey),
        recordedAtMs: nowMs,
        tenantId: cause.tenant_id,
        environment: cause.environment,
        runtime: hostRuntime,
        correlationId: cause.correlation_id,
        causationId: cause.event_id,
        origin: `processor:${processor.name}`,
        hopCount: cause.hop_count + 1,
        automationDepth: cause.automation_depth,
        traceparent: cause.trace?.traceparent ?? null,
      },
    );
  });
}
