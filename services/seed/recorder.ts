import type { EventType } from "../../schemas/catalog.ts";
import type { Draft, Envelope, EnvelopeContext } from "../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import type { Summaries } from "../../schemas/generated/types.ts";
import type { Random } from "./random.ts";

/** Fields of an event beside its summary. */
export type Rest<T extends EventType> = Omit<Draft<T>, "type" | "redacted_summary">;

/** Collects the events of one session while its clock goes on. */
export interface Recorder {
  readonly events: readonly Envelope[];
  nowMs(): number;
  /** Lets time pass. */
  wait(ms: number): void;
  /** Records an event now; returns its id. */
  record<T extends EventType>(
    type: T,
    summary: Summaries[T],
    rest?: Partial<Rest<T>>,
    context?: Partial<EnvelopeContext>,
  ): string;
}

/** Starts at `startMs`; `skewMs` is how far the client's clock is off. */
export function createRecorder(
  random: Random,
  startMs: number,
  base: Omit<EnvelopeContext, "eventId" | "recordedAtMs">,
  skewMs: number,
): Recorder {
  const events: Envelope[] = [];
  let nowMs = startMs;
  return {
    events,
    nowMs: () => nowMs,
    wait(ms) {
      nowMs += Math.max(0, Math.round(ms));
    },
    record(type, summary, rest = {}, context = {}) {
      const eventId = `evt_${random.uuidV7(nowMs)}`;
      const one = { occurred_at: nowMs + skewMs, ...draft(type, summary, rest as Rest<typeof type>) };
      events.push(toEnvelope(one as Draft, { ...base, ...context, eventId, recordedAtMs: nowMs }));
      return eventId;
    },
  };
}
