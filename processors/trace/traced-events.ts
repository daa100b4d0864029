import type { Envelope } from "../../schemas/envelope.ts";

/** Types that say something about a span. Text of people and of tools is in none of their attributes. */
export const tracedTypes = [
  "agent.session.started",
  "agent.session.ended",
  "agent.session.compacted",
  "agent.turn.started",
  "agent.turn.completed",
  "agent.prompt.submitted",
  "agent.subagent.started",
  "agent.subagent.stopped",
  "agent.model.completed",
  "agent.tool.requested",
  "agent.tool.authorized",
  "agent.tool.denied",
  "agent.tool.deferred",
  "agent.tool.completed",
  "agent.permission.requested",
  "agent.permission.refused",
  "agent.approval.requested",
  "agent.approval.granted",
  "agent.approval.refused",
  "agent.approval.expired",
  "agent.approval.voided",
  "agent.approval.consumed",
  "agent.capability.issued",
  "agent.capability.spent",
  "agent.capability.revoked",
  "agent.capability.expired",
  "agent.effect.attempted",
  "agent.effect.receipted",
  "agent.effect.unresolved",
  "agent.effect.reconciled",
  "agent.effect.ungated",
  "agent.plan.diverged",
] as const;

export type TracedEvent = Envelope<(typeof tracedTypes)[number]>;
