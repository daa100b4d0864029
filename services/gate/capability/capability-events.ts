import type { Draft, Envelope } from "../../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../../schemas/envelope.ts";
import type { Policy, RevocationScope, Subject } from "../../../schemas/generated/types.ts";
import { toTextPreview } from "../../platform/masked-preview.ts";
import type { CapabilityState } from "./capability-state.ts";

/** Id, time and place of an event, handed in. */
export interface EventPlace {
  readonly eventId: string;
  readonly nowMs: number;
  readonly environment: string;
}

/** The runtime of what the gate does by itself. */
const fabricRuntime = {
  kind: "fabric",
  adapter_version: "1",
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
};

/** What a resource shows in events. */
const resourceMaxChars = 512;
const reasonMaxChars = 512;

/** A reason that a person gave, as rows and events show it. */
export function toShownReason(reason: string): string {
  return toTextPreview(reason, reasonMaxChars);
}

/** `agent.capability.spent`. */
export function toSpentEvent(
  state: CapabilityState,
  use: {
    readonly usageId: string;
    readonly calls: number;
    readonly callsUsed: number;
    readonly spentBy: string;
  },
  place: EventPlace,
): Envelope {
  const spent = draft(
    "agent.capability.spent",
    {
      usage_id: use.usageId,
      calls: use.calls,
      calls_used: use.callsUsed,
      max_calls: state.maxCalls,
    },
    ofCapability(state),
  );
  return toFact(spent, state, place, { userId: use.spentBy, origin: "agent" });
}

/** `agent.capability.revoked`. */
export function toRevokedEvent(
  state: CapabilityState,
  cut: { readonly reason: string; readonly scope: RevocationScope; readonly revokedBy: string | null },
  place: EventPlace,
): Envelope {
  const revoked = draft(
    "agent.capability.revoked",
    { reason: cut.reason, scope: cut.scope, calls_used: state.callsUsed, max_calls: state.maxCalls },
    ofCapability(state),
  );
  const origin = cut.revokedBy === null ? "processor:gate" : "human";
  return toFact(revoked, state, place, { userId: cut.revokedBy, origin });
}

/** `agent.capability.expired`. */
export function toExpiredEvent(state: CapabilityState, place: EventPlace): Envelope {
  const expired = draft(
    "agent.capability.expired",
    { expired_at: state.expiresAtMs, calls_used: state.callsUsed, max_calls: state.maxCalls },
    ofCapability(state),
  );
  return toFact(expired, state, place, { userId: null, origin: "schedule" });
}

/** `agent.plan.revoked`. */
export function toPlanRevokedEvent(
  plan: {
    readonly tenantId: string;
    readonly digest: string;
    readonly reason: string;
    readonly revokedBy: string;
    readonly capabilities: number;
    readonly untilMs: number;
    readonly correlationId: string;
  },
  place: EventPlace,
): Envelope {
  const revoked = draft(
    "agent.plan.revoked",
    { reason: plan.reason, capabilities: plan.capabilities, expires_at: plan.untilMs },
    { plan_digest: plan.digest },
  );
  return toEnvelope(revoked, {
    eventId: place.eventId,
    recordedAtMs: place.nowMs,
    tenantId: plan.tenantId,
    environment: place.environment,
    runtime: fabricRuntime,
    correlationId: plan.correlationId,
    origin: "human",
    userId: plan.revokedBy,
  });
}

function ofCapability(state: CapabilityState) {
  const policy: Policy = {
    revision: state.policyRevision,
    risk: "unknown",
    decision: null,
    reason_code: null,
    matched_rules: [],
  };
  const subject: Subject = {
    tool: state.tool,
    action: null,
    resource_ref: state.resource === null ? null : toTextPreview(state.resource, resourceMaxChars),
    data_class: "unknown",
  };
  return {
    policy,
    subject,
    capability_id: state.capabilityId,
    plan_digest: state.planDigest,
    execution: { session_id: state.sessionId },
  };
}

function toFact(
  one: Draft,
  state: CapabilityState,
  place: EventPlace,
  by: { readonly userId: string | null; readonly origin: string },
): Envelope {
  return toEnvelope(one, {
    eventId: place.eventId,
    recordedAtMs: place.nowMs,
    tenantId: state.tenantId,
    environment: place.environment,
    runtime: fabricRuntime,
    correlationId: state.correlationId,
    causationId: state.requestedEventId,
    origin: by.origin,
    userId: by.userId,
  });
}
