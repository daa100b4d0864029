import type { Envelope } from "../../schemas/envelope.ts";
import { letterKey, titleMaxChars, toCauseKey } from "./evidence.ts";
import { clean, cut } from "./words.ts";

/** Types that tell what became of a letter. */
export const letterTypes = [
  "fabric.letter.buried",
  "fabric.letter.redriven",
  "fabric.letter.archived",
] as const;
export type LetterType = (typeof letterTypes)[number];

/** A letter was set aside, or its way has ended. Names are those of the columns. */
export interface LetterEvent {
  readonly event_id: string;
  readonly letter_id: string;
  readonly tenant_id: string;
  readonly kind: "buried" | "ended";
  readonly event_type: LetterType;
  /** Of a burial: the key of the item that it belongs to. */
  readonly cause_key: string | null;
  readonly recorded_at: string;
  readonly title: string;
}

/** What an event says of a letter. */
export function toLetterEvent(event: Envelope<LetterType>): LetterEvent {
  const summary = event.redacted_summary;
  return {
    event_id: clean(event.event_id.slice("evt_".length)),
    letter_id: cut(clean(summary.letter_id), letterIdMaxChars),
    tenant_id: clean(event.tenant_id),
    kind: event.type === "fabric.letter.buried" ? "buried" : "ended",
    event_type: event.type,
    cause_key: event.type === "fabric.letter.buried" ? toCauseKey(letterKey(event)) : null,
    recorded_at: new Date(event.recorded_at).toISOString(),
    title: cut(clean(toTitle(event)), titleMaxChars),
  };
}

/** Ids are UUIDs; an index row has a bound. */
const letterIdMaxChars = 200;

function toTitle(event: Envelope<LetterType>): string {
  switch (event.type) {
    case "fabric.letter.buried":
      return `its letters came back as ${event.redacted_summary.code}`;
    case "fabric.letter.redriven":
      return `none of its letters waits: the last went through, as ${event.redacted_summary.redriven_by} asked for`;
    case "fabric.letter.archived":
      return `none of its letters waits: the last was put away by ${event.redacted_summary.archived_by}`;
  }
}
