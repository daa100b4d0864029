import type { Envelope } from "../../schemas/envelope.ts";
import type { Source } from "../kit/processor.ts";
import { bucketMs } from "./thresholds.ts";
import type { Scope } from "./thresholds.ts";

/** What is counted, and the resets that end a trip. */
export const watchedTypes = [
  "agent.subagent.started",
  "agent.tool.authorized",
  "agent.tool.denied",
  "agent.tool.completed",
  "agent.model.completed",
] as const;
export type WatchedType = (typeof watchedTypes)[number];

/** What one event adds to each of its scopes. Names are those of the columns. */
export interface Counts {
  readonly events: bigint;
  readonly starts: bigint;
  readonly spawns: bigint;
  readonly decisions: bigint;
  readonly denials: bigint;
  readonly results: bigint;
  readonly failures: bigint;
  readonly cost_micros: bigint;
  readonly priced: bigint;
  readonly wait_ms: bigint;
}

/** The columns that are summed, in their order. */
export const countNames = [
  "events",
  "starts",
  "spawns",
  "decisions",
  "denials",
  "results",
  "failures",
  "cost_micros",
  "priced",
  "wait_ms",
] as const satisfies readonly (keyof Counts)[];

/** Something that is counted together. */
export interface ScopeKey {
  readonly tenantId: string;
  readonly scope: Scope;
  readonly scopeId: string;
}

/** A report of a model call; several tell of one call, and one of them counts. */
export interface ModelReport {
  readonly tenantId: string;
  /** Reports of one tenant with the same key tell of the same call. */
  readonly callKey: string;
  readonly eventId: string;
  /** How little it tells of the call's cost: 0 most. */
  readonly silence: number;
}

/** What a report of a model call says of its cost: millionths of the price list's currency, and how little it tells (0 most). */
export interface ModelCost {
  readonly micros: bigint;
  readonly silence: number;
}

/** One event, as the breaker counts it. */
export interface Tally {
  /** Null: no other event can tell of the same. */
  readonly report: ModelReport | null;
  readonly scopes: readonly ScopeKey[];
  /** Begin of the bucket, UTC milliseconds. */
  readonly startedMs: number;
  readonly recordedMs: number;
  readonly counts: Counts;
}

/** The tenant of what concerns every tenant. */
export const fabricTenant = "fabric";

/** What every event counts: itself. */
export const nothing: Counts = {
  events: 1n,
  starts: 0n,
  spawns: 0n,
  decisions: 0n,
  denials: 0n,
  results: 0n,
  failures: 0n,
  cost_micros: 0n,
  priced: 0n,
  wait_ms: 0n,
};

/** Denials that follow from a trip or a freeze: counted, they would keep up what they follow from. */
const heldReasons: ReadonlySet<string> = new Set(["READ_ONLY_BREAKER", "INCIDENT_FROZEN", "TENANT_FROZEN"]);

/** What an event amounts to; null: it is of the fabric's own making, or follows from a trip. */
export function toTally(
  event: Envelope<WatchedType>,
  source: Source,
  costOf: (event: Envelope<"agent.model.completed">) => ModelCost,
): Tally | null {
  if (event.origin.startsWith("processor:")) return null;
  const cost = event.type === "agent.model.completed" ? costOf(event) : noCost;
  const counts = toCounts(event, cost);
  if (counts === null) return null;
  const waitMs = source.timestampMs === undefined ? 0 : Math.max(0, source.timestampMs - event.recorded_at);
  return {
    report: toReport(event, cost),
    scopes: toScopes(event),
    startedMs: toStartedMs(event.recorded_at),
    recordedMs: event.recorded_at,
    counts: { ...counts, wait_ms: BigInt(Math.floor(waitMs)) },
  };
}

const noCost: ModelCost = { micros: 0n, silence: 0 };

/** Begin of the bucket that a time of recording belongs to, UTC milliseconds. */
export function toStartedMs(recordedMs: number): number {
  return recordedMs - (((recordedMs % bucketMs) + bucketMs) % bucketMs);
}

/** As the ledger names a call. */
function toReport(event: Envelope<WatchedType>, { silence }: ModelCost): ModelReport | null {
  if (event.type !== "agent.model.completed" || event.redacted_summary.model_call_id === null) return null;
  const { session_id, attempt } = event.execution;
  const key = [event.correlation_id, session_id, event.redacted_summary.model_call_id, attempt];
  return {
    tenantId: event.tenant_id,
    callKey: JSON.stringify(key).replaceAll("\0", "\uFFFD"),
    eventId: event.event_id,
    silence,
  };
}

function toCounts(event: Envelope<WatchedType>, { micros }: ModelCost): Counts | null {
  switch (event.type) {
    case "agent.subagent.started":
      return { ...nothing, starts: 1n };
    case "agent.tool.authorized":
      return {
        ...nothing,
        decisions: 1n,
        spawns: event.redacted_summary.effect_class === "spawn" ? 1n : 0n,
      };
    case "agent.tool.denied": {
      if (heldReasons.has(event.policy?.reason_code ?? "")) return null;
      // One that waits for a person is no denial.
      const isDenied = event.policy?.decision !== "require_approval";
      return { ...nothing, decisions: 1n, denials: isDenied ? 1n : 0n };
    }
    case "agent.tool.completed":
      return {
        ...nothing,
        results: 1n,
        failures: event.redacted_summary.outcome === "failed" ? 1n : 0n,
      };
    case "agent.model.completed":
      return { ...nothing, cost_micros: micros, priced: micros > 0n ? 1n : 0n };
  }
}

function toScopes(event: Envelope): ScopeKey[] {
  const { tenant_id: tenantId, correlation_id, actor, runtime, execution } = event;
  const { session_id } = execution;
  return [
    { tenantId, scope: "correlation", scopeId: clean(correlation_id) },
    // As the gate names an agent of a session.
    ...(session_id === null
      ? []
      : [
          {
            tenantId,
            scope: "agent",
            scopeId: clean(`${runtime.kind}/${session_id}/${actor.agent_id ?? ""}`),
          } as const,
        ]),
    { tenantId, scope: "tenant", scopeId: tenantId },
    { tenantId: fabricTenant, scope: "all", scopeId: "*" },
  ];
}

const scopeMaxChars = 600;

/** Postgres takes no NUL in a text, and an index row has a bound. */
function clean(text: string): string {
  return text.replaceAll("\0", "").slice(0, scopeMaxChars);
}
