import { draft, toEnvelope } from "../../schemas/envelope.ts";
import { newEventId } from "../platform/ids.ts";
import { toTextPreview } from "../platform/masked-preview.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { DeskDeps } from "./desk-deps.ts";
import { deskRuntime } from "./item-events.ts";

const noteMaxChars = 2_000;

/** What a person says of an episode. */
export interface EpisodeLabel {
  readonly tenantId: string;
  readonly episodeId: string;
  readonly label: string;
  /** 0-100. */
  readonly score: number | null;
  readonly note: string | null;
  readonly by: string;
}

/** A label as it was recorded. */
export interface RecordedLabel {
  readonly eventId: string;
  readonly labelledAtMs: number;
}

/**
 * Records a person's judgement of an episode as an event. Whether there is such an episode is for the dataset to say: it
 * may be on its way, and a label that came first counts all the same.
 */
export async function labelEpisode(deps: DeskDeps, one: EpisodeLabel): Promise<RecordedLabel> {
  const eventId = newEventId(deps.clock);
  const labelledAtMs = await deps.database.transaction(async (tx) => {
    const clock = await tx.query<{ now: Date }>("SELECT clock_timestamp() AS now");
    const nowMs = (clock.rows[0]?.now ?? new Date(deps.clock.nowMs())).getTime();
    const event = toEnvelope(
      draft("agent.episode.labelled", {
        episode_id: one.episodeId,
        label: one.label,
        score: one.score,
        note: one.note === null ? null : toTextPreview(one.note, noteMaxChars),
        author: one.by,
        labelled_at: nowMs,
      }),
      {
        eventId,
        recordedAtMs: nowMs,
        tenantId: one.tenantId,
        environment: deps.environment,
        runtime: deskRuntime,
        // Labels of one episode stay in order; the goal that it belongs to is the dataset's to know.
        correlationId: one.episodeId,
        origin: "human",
        userId: one.by,
      },
    );
    await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
    return nowMs;
  });
  notifyOutbox(deps.database);
  return { eventId, labelledAtMs };
}
