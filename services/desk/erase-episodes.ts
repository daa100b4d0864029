import { draft, toEnvelope } from "../../schemas/envelope.ts";
import { derivedUuid, newEventId } from "../platform/ids.ts";
import { toTextPreview } from "../platform/masked-preview.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../platform/outbox.ts";
import type { DeskDeps } from "./desk-deps.ts";
import { deskRuntime } from "./item-events.ts";

const reasonMaxChars = 500;

/** Whose episodes are to be blanked, by whom and why. */
export interface EpisodeErasure {
  readonly tenantId: string;
  readonly reason: string;
  readonly by: string;
}

/** An erasure as it was recorded. */
export interface RecordedErasure {
  readonly eventId: string;
  readonly erasedUntilMs: number;
}

/**
 * Records that what people and tools wrote in a tenant's episodes up to now is to be gone. Episodes follow by the event, and
 * every rebuild of them does; nothing else is erased by it.
 */
export async function eraseEpisodes(deps: DeskDeps, one: EpisodeErasure): Promise<RecordedErasure> {
  const eventId = newEventId(deps.clock);
  const erasedUntilMs = await deps.database.transaction(async (tx) => {
    const clock = await tx.query<{ now: Date }>("SELECT clock_timestamp() AS now");
    const nowMs = (clock.rows[0]?.now ?? new Date(deps.clock.nowMs())).getTime();
    const event = toEnvelope(
      draft("fabric.tenant.erased", {
        erased_until_at: nowMs,
        erased_by: one.by,
        reason: toTextPreview(one.reason, reasonMaxChars),
      }),
      {
        eventId,
        recordedAtMs: nowMs,
        tenantId: one.tenantId,
        environment: deps.environment,
        runtime: deskRuntime,
        correlationId: `cor_${derivedUuid(JSON.stringify(["erasure", eventId]))}`,
        origin: "human",
        userId: one.by,
      },
    );
    await appendOutbox(tx, toOutboxRows(deps.codec, [event]));
    return nowMs;
  });
  notifyOutbox(deps.database);
  return { eventId, erasedUntilMs };
}
