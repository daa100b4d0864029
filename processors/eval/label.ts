import type { Envelope } from "../../schemas/envelope.ts";
import { clean, cut } from "./words.ts";

/** One judgement of a person. Names are those of the columns. */
export interface Label {
  readonly event_id: string;
  readonly tenant_id: string;
  readonly episode_id: string;
  readonly author: string;
  readonly label: string;
  readonly score: number | null;
  readonly note: string | null;
  readonly labelled_at: string;
  readonly recorded_at: string;
}

/** An index row of Postgres holds 2,700 bytes; this fits whatever the script. */
const keyMaxChars = 256;
const noteMaxChars = 2_000;

/** An event as a label; the episode need not be known. */
export function toLabel(event: Envelope<"agent.episode.labelled">): Label {
  const { episode_id, label, score, note, author, labelled_at } = event.redacted_summary;
  return {
    event_id: event.event_id.slice("evt_".length),
    tenant_id: clean(event.tenant_id),
    episode_id: cut(clean(episode_id), keyMaxChars),
    author: cut(clean(author), keyMaxChars),
    label: cut(clean(label), keyMaxChars),
    score,
    note: cut(clean(note), noteMaxChars),
    labelled_at: new Date(labelled_at).toISOString(),
    recorded_at: new Date(event.recorded_at).toISOString(),
  };
}
