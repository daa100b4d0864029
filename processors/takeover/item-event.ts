import type { Envelope } from "../../schemas/envelope.ts";
import { clean } from "./words.ts";

/** What people, and the watch over due times, do with items. */
export const itemEventTypes = [
  "fabric.takeover.claimed",
  "fabric.takeover.noted",
  "fabric.takeover.reassigned",
  "fabric.takeover.resolved",
  "fabric.takeover.breached",
] as const;
export type ItemEventType = (typeof itemEventTypes)[number];

/** One deed on one item. Names are those of the columns. */
export interface ItemEvent {
  readonly event_id: string;
  readonly item_id: string;
  readonly tenant_id: string;
  readonly kind: "claimed" | "noted" | "reassigned" | "resolved" | "breached";
  readonly recorded_at: string;
  /** Who did it; null for a breach, which the clock did. */
  readonly person: string | null;
  /** Who has the item from here on. */
  readonly assigned_to: string | null;
  readonly lease_ends_at: string | null;
  readonly note: string | null;
  readonly outcome: string | null;
  readonly proposal: string | null;
}

/** An event as a deed on its item. */
export function toItemEvent(event: Envelope<ItemEventType>): ItemEvent {
  const base = {
    event_id: event.event_id.slice("evt_".length),
    item_id: clean(event.redacted_summary.item_id),
    tenant_id: clean(event.tenant_id),
    recorded_at: new Date(event.recorded_at).toISOString(),
    person: null,
    assigned_to: null,
    lease_ends_at: null,
    note: null,
    outcome: null,
    proposal: null,
  };
  switch (event.type) {
    case "fabric.takeover.claimed": {
      const { claimed_by, lease_ends_at } = event.redacted_summary;
      const person = clean(claimed_by);
      return {
        ...base,
        kind: "claimed",
        person,
        assigned_to: person,
        lease_ends_at: new Date(lease_ends_at).toISOString(),
      };
    }
    case "fabric.takeover.noted": {
      const { author, note } = event.redacted_summary;
      return { ...base, kind: "noted", person: clean(author), note: clean(note) };
    }
    case "fabric.takeover.reassigned": {
      const { to_person, reassigned_by } = event.redacted_summary;
      return { ...base, kind: "reassigned", person: clean(reassigned_by), assigned_to: clean(to_person) };
    }
    case "fabric.takeover.resolved": {
      const { resolved_by, outcome, note, proposal } = event.redacted_summary;
      return {
        ...base,
        kind: "resolved",
        person: clean(resolved_by),
        note: clean(note),
        outcome,
        proposal: clean(proposal),
      };
    }
    case "fabric.takeover.breached":
      return { ...base, kind: "breached" };
  }
}
