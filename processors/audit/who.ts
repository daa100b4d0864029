import type { JsonValue } from "./words.ts";

/** A row of the trail as Postgres gives it back, as far as a report needs it. */
export interface TrailEvent {
  readonly event_id: string;
  readonly event_type: string;
  readonly tenant_id: string;
  readonly recorded_at: Date;
  readonly user_id: string | null;
  readonly agent_id: string | null;
  readonly runtime_kind: string;
  readonly session_id: string | null;
  readonly turn_id: string | null;
  readonly tool_call_id: string | null;
  readonly attempt: number;
  readonly correlation_id: string;
  readonly origin: string;
  readonly tool: string | null;
  readonly action: string | null;
  readonly resource_ref: string | null;
  readonly policy_revision: string | null;
  readonly risk: string | null;
  readonly decision: string | null;
  readonly reason_code: string | null;
  readonly matched_rules: readonly string[] | null;
  readonly decision_id: string | null;
  readonly capability_id: string | null;
  readonly approval_id: string | null;
  readonly plan_digest: string | null;
  readonly effect_id: string | null;
  readonly receipt_id: string | null;
  readonly payload_ref: string | null;
  readonly summary: JsonValue;
  readonly erased_at: Date | null;
}

/** One ruling about the call. */
export interface WhoDecision {
  readonly at: string;
  readonly decision: string;
  readonly decisionId: string | null;
  readonly policyRevision: string | null;
  readonly reasonCode: string | null;
  readonly risk: string | null;
  readonly matchedRules: readonly string[];
}

/** What `fabric audit who <tool_call_id>` answers: runtimes number their calls per session, so there may be several. */
export interface WhoReport {
  readonly toolCallId: string;
  readonly found: boolean;
  readonly calls: readonly WhoCall[];
}

/** One tool call of one session. */
export interface WhoCall {
  readonly toolCallId: string;
  readonly tenantId: string;
  readonly askedBy: {
    readonly userId: string | null;
    readonly agentId: string | null;
    readonly runtime: string;
    readonly sessionId: string | null;
    readonly turnId: string | null;
    readonly origin: string;
    readonly correlationId: string;
  };
  readonly asked: {
    readonly tool: string | null;
    readonly action: string | null;
    readonly resource: string | null;
    readonly planDigest: string | null;
    readonly payloadRef: string | null;
  };
  readonly decisions: readonly WhoDecision[];
  readonly capabilityIds: readonly string[];
  readonly approvalIds: readonly string[];
  readonly effectIds: readonly string[];
  readonly receiptIds: readonly string[];
  /** Outcome of the last completion, or null while nothing was reported. */
  readonly outcome: string | null;
  /** True when the call ended and nobody had allowed it. */
  readonly ungated: boolean;
  readonly erased: boolean;
  readonly events: readonly { readonly at: string; readonly type: string; readonly eventId: string }[];
}

/** Events that ask for the call, in the order of how much they tell. */
const asking = ["agent.tool.requested", "agent.permission.requested"];

/** Groups the events of a tool call id by tenant and session, oldest first. */
export function toWhoReport(toolCallId: string, rows: readonly TrailEvent[]): WhoReport {
  const groups = new Map<string, TrailEvent[]>();
  for (const row of [...rows].sort((one, other) => one.recorded_at.getTime() - other.recorded_at.getTime())) {
    const group = JSON.stringify([row.tenant_id, row.session_id]);
    const known = groups.get(group);
    if (known === undefined) groups.set(group, [row]);
    else known.push(row);
  }
  return {
    toolCallId,
    found: rows.length > 0,
    calls: [...groups.values()].flatMap((events) => {
      const [first] = events;
      return first === undefined ? [] : [toWhoCall(toolCallId, first, events)];
    }),
  };
}

/** Puts the events of one call together. Between topics there is no order: what counts is ranked, not first. */
function toWhoCall(toolCallId: string, first: TrailEvent, events: readonly TrailEvent[]): WhoCall {
  const request = asking.flatMap((type) => events.filter((one) => one.event_type === type))[0] ?? first;
  const decisions = events.flatMap((one): WhoDecision[] =>
    one.decision === null || one.decision === "unknown" || one.decision_id === null
      ? []
      : [
          {
            at: one.recorded_at.toISOString(),
            decision: one.decision,
            decisionId: one.decision_id,
            policyRevision: one.policy_revision,
            reasonCode: one.reason_code,
            risk: one.risk,
            matchedRules: one.matched_rules ?? [],
          },
        ],
  );
  const completion = events.filter((one) => one.event_type === "agent.tool.completed").at(-1);
  const outcome = textOf(completion?.summary, "outcome");
  const distinct = (pick: (one: TrailEvent) => string | null): readonly string[] => [
    ...new Set(events.map(pick).filter((one) => one !== null)),
  ];
  return {
    toolCallId,
    tenantId: first.tenant_id,
    askedBy: {
      userId: events.find((one) => one.user_id !== null)?.user_id ?? null,
      agentId: request.agent_id,
      runtime: request.runtime_kind,
      sessionId: request.session_id,
      turnId: request.turn_id,
      origin: request.origin,
      correlationId: request.correlation_id,
    },
    asked: {
      tool: request.tool,
      action: request.action,
      resource: request.resource_ref,
      planDigest: events.find((one) => one.plan_digest !== null)?.plan_digest ?? null,
      payloadRef: request.payload_ref,
    },
    decisions,
    capabilityIds: distinct((one) => one.capability_id),
    approvalIds: distinct((one) => one.approval_id),
    effectIds: distinct((one) => one.effect_id),
    receiptIds: distinct((one) => one.receipt_id),
    outcome,
    ungated:
      completion !== undefined &&
      outcome !== "blocked" &&
      !decisions.some((one) => one.decision === "allow" || one.decision === "modify"),
    erased: events.some((one) => one.erased_at !== null),
    events: events.map((one) => ({
      at: one.recorded_at.toISOString(),
      type: one.event_type,
      eventId: `evt_${one.event_id}`,
    })),
  };
}

/** The report as lines for a person. */
export function renderWho(report: WhoReport): string {
  if (report.calls.length === 0) {
    return `no event of tool call ${report.toolCallId} is in the trail; check the id, or wait until audit has caught up`;
  }
  return report.calls.map(renderCall).join("\n\n");
}

function renderCall(report: WhoCall): string {
  const { askedBy, asked } = report;
  const lines = [
    `tool call    ${report.toolCallId} (tenant ${report.tenantId})`,
    `asked by     ${askedBy.userId ?? "unknown user"}, agent ${askedBy.agentId ?? "main"}, ${askedBy.runtime}, session ${askedBy.sessionId ?? "unknown"}`,
    `origin       ${askedBy.origin}, correlation ${askedBy.correlationId}`,
    `wanted       ${[asked.tool, asked.action, asked.resource].filter((one) => one !== null).join("  ") || "unknown"}`,
  ];
  if (asked.planDigest !== null) lines.push(`plan         ${asked.planDigest}`);
  if (asked.payloadRef !== null) lines.push(`evidence     ${asked.payloadRef}`);
  if (report.decisions.length === 0) lines.push("decision     none: nobody decided about this call");
  for (const one of report.decisions) {
    lines.push(
      `decision     ${one.decision} ${one.reasonCode ?? ""} under ${one.policyRevision ?? "no policy"}, risk ${one.risk ?? "unknown"} (${one.decisionId ?? "no id"})`,
      `rules        ${one.matchedRules.length === 0 ? "none matched" : one.matchedRules.join(", ")}`,
    );
  }
  const named: readonly [string, readonly string[]][] = [
    ["capability", report.capabilityIds],
    ["approval", report.approvalIds],
    ["effect", report.effectIds],
    ["receipt", report.receiptIds],
  ];
  for (const [name, ids] of named) if (ids.length > 0) lines.push(`${name.padEnd(12)} ${ids.join(", ")}`);
  lines.push(`happened     ${report.outcome ?? "nothing was reported"}`);
  if (report.ungated) lines.push("UNGATED      the call ended and nobody had allowed it");
  if (report.erased) lines.push("erased       content of some events was erased; their digests are kept");
  lines.push("", ...report.events.map((one) => `${one.at}  ${one.type.padEnd(28)} ${one.eventId}`));
  return lines.map((line) => line.trimEnd()).join("\n");
}

function textOf(summary: JsonValue | undefined, name: string): string | null {
  if (typeof summary !== "object" || summary === null || Array.isArray(summary)) return null;
  const value = (summary as Readonly<Record<string, JsonValue>>)[name];
  return typeof value === "string" ? value : null;
}
