import type { Envelope } from "../../schemas/envelope.ts";
import { callOf } from "./call-parts.ts";
import { own } from "./conventions.ts";
import { causeOf, compact, ends, hang, point, under } from "./part-fields.ts";
import type { Parts } from "./part-fields.ts";
import type { PartMaker, Place } from "./place.ts";

/** Rules of one decision that its span names. */
const maxRules = 20;

export function toDecision(
  event: Envelope<"agent.tool.authorized" | "agent.tool.denied" | "agent.tool.deferred">,
  make: PartMaker,
  place: Place,
): Parts {
  const at = event.recorded_at;
  const summary = event.redacted_summary;
  const call = callOf(event, make, place, {
    // A call that was refused is over, unless it is asked for once more under the same id.
    ...(event.type === "agent.tool.denied" ? { endRank: ends.provisional, endedAt: at } : {}),
    ...("deadline_at" in summary ? { holdsUntil: summary.deadline_at } : {}),
  });
  const decision = make.part("decision", [summary.decision_id], {
    ...hang(under(call)),
    isReal: true,
    causeEvent: causeOf(event),
    // The intent's time is taken from its event, when it is there: see assemble.ts.
    startRank: 1,
    startedAt: at,
    endRank: ends.final,
    endedAt: at,
    attributes: compact({
      [own.decisionId]: summary.decision_id,
      [own.decision]: event.policy?.decision,
      [own.reasonCode]: event.policy?.reason_code,
      [own.risk]: event.policy?.risk,
      [own.revision]: event.policy?.revision,
      [own.rules]: event.policy?.matched_rules.slice(0, maxRules),
      [own.planDigest]: event.plan_digest,
    }),
  });
  return { own: [decision, call, ...place.containers], isDelivered: true };
}

export function toApproval(
  event: Envelope<
    | "agent.approval.requested"
    | "agent.approval.granted"
    | "agent.approval.refused"
    | "agent.approval.expired"
    | "agent.approval.voided"
    | "agent.approval.consumed"
  >,
  make: PartMaker,
  place: Place,
): Parts {
  const at = event.recorded_at;
  const summary = event.redacted_summary;
  // `consumed` is told by the later call; its decision is not the one that asked.
  const isConsumed = event.type === "agent.approval.consumed";
  const decision = isConsumed ? null : make.part("decision", [summary.decision_id], hang(place));
  const id = event.approval_id ?? event.event_id;
  const outcome = event.type.slice("agent.approval.".length);
  const isEnd = event.type !== "agent.approval.requested" && !isConsumed;
  const isDecided = event.type === "agent.approval.granted" || event.type === "agent.approval.refused";
  const approval = make.part("approval", [id], {
    ...hang(decision === null ? place : under(decision)),
    isReal: !isConsumed,
    ...(event.type === "agent.approval.requested"
      ? { startRank: 2, startedAt: at, holdsUntil: event.redacted_summary.expires_at }
      : {}),
    ...(isEnd ? { endRank: isDecided ? ends.surer : ends.final, endedAt: at } : {}),
    attributes: compact({
      [own.approvalId]: event.approval_id,
      [own.planDigest]: event.plan_digest,
      [own.risk]: event.policy?.risk,
      [own.outcome]: isEnd ? outcome : null,
      [own.consumed]: isConsumed ? true : null,
    }),
  });
  return { own: [approval, ...(decision === null ? [] : [decision]), ...place.containers] };
}

export function toCapability(
  event: Envelope<
    | "agent.capability.issued"
    | "agent.capability.spent"
    | "agent.capability.revoked"
    | "agent.capability.expired"
  >,
  make: PartMaker,
  place: Place,
): Parts {
  const at = event.recorded_at;
  const id = event.capability_id ?? event.event_id;
  if (event.type === "agent.capability.issued") {
    const call = callOf(event, make, place, {});
    const issued = make.part("capability", [id], {
      ...hang(under(call)),
      isReal: true,
      startRank: 2,
      startedAt: at,
      endRank: ends.final,
      endedAt: at,
      attributes: compact({
        [own.capabilityId]: id,
        [own.calls]: event.redacted_summary.max_calls,
        [own.planDigest]: event.plan_digest,
      }),
    });
    return { own: [issued, call, ...place.containers] };
  }
  const right = make.part("capability", [id], hang(place));
  const part =
    event.type === "agent.capability.spent"
      ? make.part("spend", [id, event.redacted_summary.usage_id], point(event, under(right)))
      : make.part("revocation", [id, event.event_id], point(event, under(right)));
  const attributes = compact({
    [own.capabilityId]: id,
    [own.outcome]: event.type.slice("agent.capability.".length),
    [own.calls]: event.redacted_summary.calls_used,
  });
  return { own: [{ ...part, attributes }, right, ...place.containers] };
}
