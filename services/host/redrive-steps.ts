import type { Envelope } from "../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import { derivedUuid } from "../platform/ids.ts";
import type { Step, Work } from "./batch-steps.ts";
import { apply, commit, emit, firstOfEach, project } from "./batch-steps.ts";
import type { HostTx } from "./host-store.ts";
import { hostRuntime, toLetter } from "./letter.ts";
import type { ProjectedRecord } from "./records.ts";
import type { Redrive, RedriveTx, WaitingLetter } from "./redrive-store.ts";

/** What is known of a letter's event once it was read. */
export interface LetterEvent {
  readonly tenantId: string;
  readonly correlationId: string;
  readonly eventId: string;
}

/** What the steps of one batch of letters work with. */
export interface RedriveBatch {
  readonly redrive: Redrive;
  /** By offset: all letters of a batch are of one partition. */
  readonly letters: ReadonlyMap<bigint, WaitingLetter>;
  /** By letter; those that could be read. */
  readonly events: ReadonlyMap<string, LetterEvent>;
  of(tx: HostTx): RedriveTx;
}

/** What became of the letters of one slice. */
interface Fate {
  readonly processed: WaitingLetter[];
  readonly duplicates: WaitingLetter[];
  readonly skipped: WaitingLetter[];
}

/**
 * The live steps without a position: the letters' own marks say which of them still wait, whoever else tries. What the
 * processor does, and what it may emit, is the same.
 */
export function redriveSteps(batch: RedriveBatch): readonly Step[] {
  const fates = new WeakMap<Work, Fate>();
  const letterOf = (offset: bigint): WaitingLetter | undefined => batch.letters.get(offset);
  const tenantOf = (letter: WaitingLetter): string =>
    batch.events.get(letter.id)?.tenantId ?? letter.tenantId;

  const claim: Step = {
    name: "claim",
    async run(work, tx) {
      const redriveTx = batch.of(tx);
      const named = work.records.flatMap(({ record }) => letterOf(record.offset) ?? []);
      const taken = await redriveTx.take(named.map((one) => ({ id: one.id, tenantId: tenantOf(one) })));
      const fate: Fate = { processed: [], duplicates: [], skipped: [] };
      fates.set(work, fate);
      const events: { readonly letter: WaitingLetter; readonly read: ProjectedRecord }[] = [];
      for (const read of work.records) {
        const letter = letterOf(read.record.offset);
        const state = letter === undefined ? undefined : taken.get(letter.id);
        // Somebody else had it, or put it away.
        if (letter === undefined || state === undefined) continue;
        if (!state.isServed) fate.skipped.push(letter);
        else if (state.isRepeat) fate.duplicates.push(letter);
        else if (read.kind === "refused")
          work.letters.push(toLetter(read.record, null, read.fault, 1, work.letterContext));
        else if (read.kind === "skipped") fate.processed.push(letter);
        else events.push({ letter, read });
      }
      if (events.length === 0) return;
      await redriveTx.releaseClaims(events.map(({ letter }) => letter.id));
      const fresh = await tx.claimEvents(events.map(({ read }) => read.eventUuid));
      const claimed = new Set(
        firstOfEach(
          events.map(({ read }) => read),
          new Set(fresh),
        ),
      );
      work.claimed = [...claimed];
      for (const { letter, read } of events) {
        if (!claimed.has(read)) fate.duplicates.push(letter);
        else if (read.thrown === null) fate.processed.push(letter);
      }
      work.duplicates = fate.duplicates.length;
    },
  };

  const settle: Step = {
    name: "watermark",
    async run(work, tx) {
      const redriveTx = batch.of(tx);
      const { processed, duplicates, skipped } = fates.get(work) ?? noFate;
      if (skipped.length > 0) await redriveTx.putBack(skipped.map(({ id }) => id));
      const gone = [...processed, ...duplicates];
      if (gone.length > 0) await redriveTx.settle(gone.map(({ id }) => id));
      await redriveTx.count({
        processed: processed.length,
        duplicates: duplicates.length,
        failed: work.letters.length,
        skipped: skipped.length,
      });
      work.notices = [
        ...processed.map((letter) => toRedriven(batch, work, letter, "processed")),
        ...duplicates.map((letter) => toRedriven(batch, work, letter, "duplicate")),
      ];
    },
  };

  return [claim, project, apply, settle, emit, commit];
}

const noFate: Fate = { processed: [], duplicates: [], skipped: [] };

/** That a letter went through, and who wanted it. */
function toRedriven(
  { redrive, events }: RedriveBatch,
  { letterContext: { processor, source, environment }, nowMs }: Work,
  letter: WaitingLetter,
  outcome: "processed" | "duplicate",
): Envelope {
  const event = events.get(letter.id);
  return toEnvelope(
    draft("fabric.letter.redriven", {
      letter_id: letter.id,
      redrive_id: redrive.id,
      outcome,
      consumer: processor.name,
      consumer_version: processor.version,
      attempts: letter.attempts + 1,
      source_topic: source.topic,
      source_partition: source.partition,
      source_offset: letter.record.offset,
      source_event_id: event?.eventId ?? null,
      redriven_by: redrive.requestedBy,
    }),
    {
      eventId: `evt_${derivedUuid(`letter-redriven/${letter.id}/${String(letter.redrives + 1)}`)}`,
      recordedAtMs: nowMs,
      tenantId: event?.tenantId ?? letter.tenantId,
      environment,
      runtime: hostRuntime,
      correlationId: event?.correlationId ?? `cor_${letter.id}`,
      causationId: event?.eventId ?? null,
      origin: "human",
      userId: redrive.requestedBy,
    },
  );
}
