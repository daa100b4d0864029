import type { Envelope } from "../../schemas/envelope.ts";
import { callOf } from "./call-parts.ts";
import { own } from "./conventions.ts";
import {
  causeOf,
  compact,
  ends,
  hang,
  point,
  startedBefore,
  statusOf,
  statuses,
  under,
} from "./part-fields.ts";
import type { Optional, Parts } from "./part-fields.ts";
import type { PartMaker, Place, SpanFields } from "./place.ts";
import { parentRanks } from "./place.ts";
import type { SpanState } from "./words.ts";

export function toEffect(
  event: Envelope<
    | "agent.effect.attempted"
    | "agent.effect.receipted"
    | "agent.effect.unresolved"
    | "agent.effect.reconciled"
  >,
  make: PartMaker,
  place: Place,
): Parts {
  const at = event.recorded_at;
  const { capability_id: capabilityId } = event;
  const call = event.execution.tool_call_id === null ? null : callOf(event, make, place, {});
  const right = capabilityId === null ? null : make.part("capability", [capabilityId], hang(place));
  const home = call !== null ? under(call) : right !== null ? under(right, parentRanks.right) : place;
  const named = [...(call === null ? [] : [call]), ...(right === null ? [] : [right]), ...place.containers];
  const id = event.effect_id ?? event.causation_id ?? event.event_id;
  const shared = {
    [own.effectId]: event.effect_id,
    [own.capabilityId]: capabilityId,
    [own.effectClass]: event.redacted_summary.effect_class,
  };
  const effect = (fields: SpanFields, more: Optional = {}): SpanState =>
    make.part("effect", [id], {
      ...hang(home),
      isReal: true,
      ...fields,
      attributes: compact({ ...shared, ...more }),
    });
  switch (event.type) {
    case "agent.effect.attempted": {
      const part = effect(
        { startRank: 2, startedAt: at, causeEvent: call === null ? causeOf(event) : null },
        { [own.connector]: event.redacted_summary.connector },
      );
      return { own: [part, ...named], cause: { spanId: part.spanId, topic: "effect" } };
    }
    case "agent.effect.receipted": {
      const { outcome, duration_ms: durationMs } = event.redacted_summary;
      const status = statusOf(outcome, "effect_failed");
      const times = { ...startedBefore(at, durationMs), endRank: ends.surer, endedAt: at };
      return {
        own: [
          effect({ ...times, ...status }, { [own.receiptId]: event.receipt_id, [own.outcome]: outcome }),
          ...named,
        ],
      };
    }
    case "agent.effect.unresolved":
      return {
        own: [
          effect({
            endRank: ends.final,
            endedAt: at,
            statusRank: statuses.unresolved,
            status: "error",
            errorType: `unresolved_${event.redacted_summary.cause}`,
          }),
          ...named,
        ],
      };
    case "agent.effect.reconciled": {
      const { outcome } = event.redacted_summary;
      const status = statusOf(outcome, "effect_failed");
      const settled = effect(
        status.status === undefined ? {} : { ...status, statusRank: statuses.reconciled },
      );
      const part = make.part("reconciliation", [event.event_id], point(event, under(settled)));
      return { own: [{ ...part, attributes: { [own.outcome]: outcome } }, settled, ...named] };
    }
  }
}
