import type { EventType } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { Random } from "../../services/seed/random.ts";
import { createRandom } from "../../services/seed/random.ts";
import { generateSession } from "../../services/seed/session.ts";
import { impossibleCall, oddEvents } from "./odd-events.ts";

/** A history, in the order in which its events were recorded. */
export interface History {
  readonly events: readonly Envelope[];
  /** Ids of model calls whose numbers cannot be: cost sets them aside, all others read them. */
  readonly impossible: ReadonlySet<string>;
}

/** Two thirds are what agents do all day; the rest is what happens beside it, and what should not. */
const usualShare = 0.66;
const impossibleShare = 0.002;
/** Days around the end of a month: budgets, prices and folders change in the middle of a history. */
export const firstDayMs = Date.UTC(2026, 8, 27);
const days = 8;

/** Streams of one seed; sessions have those from 0 on. */
const shapeStream = 1_000_001;

/** `size` events, the same for the same seed. */
export function generateHistory(seed: number, size: number): History {
  const random = createRandom(seed, shapeStream);
  const usual = usualEvents(random, seed, Math.floor(size * usualShare));
  const impossible = Array.from({ length: Math.ceil(size * impossibleShare) }, () =>
    impossibleCall(random, random.pick(asList(usual))),
  );
  const twins = usual.flatMap((event) => twinOf(random, event));
  const events = [...usual, ...impossible, ...twins];
  const odd = oddEvents(random, usual, size - events.length);
  return {
    events: [...events, ...odd].slice(0, size).sort(byRecording),
    impossible: new Set(impossible.map((event) => event.event_id)),
  };
}

/** The order of a ledger: by time, then by id. */
export function byRecording(a: Envelope, b: Envelope): number {
  return a.recorded_at - b.recorded_at || (a.event_id < b.event_id ? -1 : 1);
}

function usualEvents(random: Random, seed: number, size: number): readonly Envelope[] {
  const events: Envelope[] = [];
  // In some histories nearly everything belongs to one goal; in others sessions mostly stand alone.
  const joinChance = random.pick([0.1, 0.3, 0.3, 0.95]);
  let goal: { readonly tenantId: string; readonly correlationId: string } | null = null;
  for (let index = 0; events.length < size; index += 1) {
    const plan = { seed, sessions: index + 1, startMs: firstDayMs, days, tenantPrefix: "t" };
    const session = generateSession(plan, index);
    const [first] = session;
    if (first === undefined) continue;
    const joins = goal !== null && goal.tenantId === first.tenant_id && random.chance(joinChance);
    if (!joins) goal = { tenantId: first.tenant_id, correlationId: first.correlation_id };
    // A coarse clock: many events of a moment, whose order only their ids tell.
    const grainMs = random.pick([1, 1, 1_000]);
    const traceparent = random.chance(0.2) ? `00-${random.hex(32)}-${random.hex(16)}-01` : null;
    const isLossy = random.chance(0.2);
    for (const event of session) {
      // Parents that never came.
      if (isLossy && random.chance(0.15)) continue;
      events.push({
        ...event,
        correlation_id: goal?.correlationId ?? event.correlation_id,
        recorded_at: event.recorded_at - (event.recorded_at % grainMs),
        trace: traceparent === null || random.chance(0.3) ? event.trace : { traceparent },
      });
    }
  }
  return events.slice(0, size);
}

/** The same fact once more under an id of its own, told by somebody else: before or after, and not with the same figures. */
function twinOf(random: Random, event: Envelope): readonly Envelope[] {
  if (!twinned.has(event.type) || !random.chance(0.06)) return [];
  const recordedAt = event.recorded_at + random.pick([0, 0, 1, -1, random.between(-5_000, 5_000)]);
  const twin = { ...event, event_id: `evt_${random.uuidV7(recordedAt)}`, recorded_at: recordedAt };
  if (twin.type !== "agent.tool.completed") return [twin];
  const summary = { ...twin.redacted_summary, duration_ms: BigInt(random.between(0, 60_000)) };
  return [{ ...twin, redacted_summary: summary }];
}
const twinned: ReadonlySet<EventType> = new Set(["agent.tool.completed", "agent.subagent.started"]);

/** A list that is not empty, for a pick. */
export function asList<T>(items: readonly T[]): readonly [T, ...T[]] {
  const [first, ...rest] = items;
  if (first === undefined) throw new Error("there is nothing to pick from");
  return [first, ...rest];
}
