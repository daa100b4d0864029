import type { Envelope } from "../../schemas/envelope.ts";
import type { EpochMs } from "../../schemas/generated/types.ts";
import type { Listed } from "./prices.ts";

/** The types that cost reads. */
export const costTypes = [
  "agent.model.completed",
  "agent.tool.completed",
  "agent.subagent.started",
  "fabric.cost.corrected",
] as const;
export type CostEvent = Envelope<(typeof costTypes)[number]>;

/**
 * Where an amount comes from: the price list, the source's own claim, nobody (a price or the tokens are missing), nothing
 * to pay, or a person's correction.
 */
export type PriceState = "listed" | "reported" | "unpriced" | "unmeasured" | "free" | "correction";

/** States of a model call, those first in which it tells most of its cost: of several reports of one call that one counts. */
export const toldFirst = [
  "listed",
  "reported",
  "unpriced",
  "unmeasured",
] as const satisfies readonly PriceState[];

/** The cause of a correction that prices a call for which a price came later; it counts with that call. */
export const repricedCause = "repriced";

/** How a row was priced. */
export interface Pricing {
  readonly state: PriceState;
  readonly price: Listed | null;
}

/** One row of usage: dimensions, quantities, amount. Names are those of the columns; times are UTC milliseconds. */
export interface UsageRow {
  readonly event_id: string;
  readonly tenant_id: string;
  readonly recorded_at: EpochMs;
  readonly kind: "model" | "tool" | "subagent" | "correction";
  /** Rows of one tenant with the same key tell of the same call; the first recorded one counts. Null: no other can. */
  readonly call_key: string | null;
  readonly environment: string;
  readonly runtime_kind: string;
  readonly user_id: string | null;
  readonly agent_id: string | null;
  readonly session_id: string | null;
  readonly turn_id: string | null;
  readonly correlation_id: string;
  readonly model: string | null;
  readonly tool: string | null;
  readonly outcome: string | null;
  readonly price_state: PriceState;
  readonly price_pattern: string | null;
  readonly price_valid_from: EpochMs | null;
  readonly amount_micros: bigint;
  readonly reported_micros: bigint | null;
  readonly uncached_input_tokens: bigint;
  readonly cached_input_tokens: bigint;
  readonly cache_write_tokens: bigint;
  readonly output_tokens: bigint;
  readonly reasoning_tokens: bigint;
  readonly wall_ms: bigint;
  readonly output_bytes: bigint;
  readonly calls: bigint;
  readonly fan_out: bigint;
  readonly corrects_event_id: string | null;
  readonly cause: string | null;
  readonly author: string | null;
}

/** One entry: a debit above 0, a credit below. `event_id` and `line` are its identity. */
export interface CostEntry {
  readonly event_id: string;
  readonly line: number;
  readonly account: string;
  readonly amount_micros: bigint;
}

/** What every row takes from its event; quantities are 0. */
export function toBaseRow(event: CostEvent, kind: UsageRow["kind"], pricing: Pricing): UsageRow {
  return {
    event_id: event.event_id,
    tenant_id: event.tenant_id,
    recorded_at: event.recorded_at,
    kind,
    call_key: null,
    environment: event.environment,
    runtime_kind: event.runtime.kind,
    user_id: event.actor.user_id,
    agent_id: event.actor.agent_id,
    session_id: event.execution.session_id,
    turn_id: event.execution.turn_id,
    correlation_id: event.correlation_id,
    model: null,
    tool: null,
    outcome: null,
    price_state: pricing.state,
    price_pattern: pricing.price?.pattern ?? null,
    price_valid_from: pricing.price?.validFromMs ?? null,
    amount_micros: 0n,
    reported_micros: null,
    uncached_input_tokens: 0n,
    cached_input_tokens: 0n,
    cache_write_tokens: 0n,
    output_tokens: 0n,
    reasoning_tokens: 0n,
    wall_ms: 0n,
    output_bytes: 0n,
    calls: 0n,
    fan_out: 0n,
    corrects_event_id: null,
    cause: null,
    author: null,
  };
}

/** The UTC day of a time, such as 2026-11-30. */
export function toDay(atMs: EpochMs): string {
  return new Date(atMs).toISOString().slice(0, 10);
}
