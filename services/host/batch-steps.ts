import type { Emission } from "../../processors/kit/emission.ts";
import type { Processor } from "../../processors/kit/processor.ts";
import { catalog } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import type { BatchControl } from "../platform/kafka-consumer.ts";
import { Fenced } from "./fenced.ts";
import type { FaultStage } from "../platform/classify.ts";
import { toEmittedEvents } from "./emissions.ts";
import type { FanOutGuard } from "./fan-out-guard.ts";
import type { HostTx, Position } from "./host-store.ts";
import type { Letter, LetterContext } from "./letter.ts";
import { toLetter } from "./letter.ts";
import { cutLoops, toCausesToFollow } from "./loop-guard.ts";
import type { ProjectedRecord, ReadRecord } from "./records.ts";
import { keyOf } from "./records.ts";

/** One slice of a batch on its way through the steps. */
export interface Work {
  readonly processor: Processor;
  readonly position: Position;
  readonly records: readonly ReadRecord[];
  readonly nextOffset: bigint;
  readonly control: BatchControl;
  readonly guard: FanOutGuard;
  readonly letterContext: LetterContext;
  readonly nowMs: number;
  /** Filled in by `claim`. */
  claimed: readonly ProjectedRecord[];
  duplicates: number;
  /** Filled in by `project`. */
  changes: readonly unknown[];
  /** Filled in by whoever sets a record aside. */
  letters: Letter[];
  /** What the host itself says with this slice; filled in before `emit`. */
  notices: readonly Envelope[];
  /** Filled in by `apply`. */
  emissions: readonly Emission[];
  /** Filled in by `emit`. */
  emitted: number;
  held: number;
  holdingBegan: boolean;
}

/**
 * One step of a slice. All steps up to and with `commit` run in one transaction, those after it outside. Tests plant
 * faults by replacing a step or moving it; shipped code runs `liveSteps`.
 */
export interface Step {
  readonly name: FaultStage;
  run(work: Work, tx: HostTx): Promise<void>;
}

/** The inbox first: whoever inserts the row does the work, and a copy that comes at the same moment waits and loses. */
const claim: Step = {
  name: "claim",
  async run(work, tx) {
    for (const read of work.records) {
      if (read.kind === "refused") {
        work.letters.push(toLetter(read.record, null, read.fault, 1, work.letterContext));
      }
    }
    const events = work.records.filter((read) => read.kind === "event");
    const fresh = events.length === 0 ? [] : await tx.claimEvents(events.map(({ eventUuid }) => eventUuid));
    work.claimed = fresh.length === events.length ? events : firstOfEach(events, new Set(fresh));
    work.duplicates = events.length - work.claimed.length;
  },
};

/** The same id twice in one batch: the first one in order is the event, `delete` lets the second one fail. */
export const firstOfEach = <T extends ProjectedRecord>(
  events: readonly T[],
  fresh: Set<string>,
): readonly T[] => events.filter(({ eventUuid }) => fresh.delete(eventUuid));

/**
 * What the claimed events amount to. The processor's pure half ran when they were read; its throws are buried here, and
 * what failed alone.
 * INVARIANT: an event that is buried is claimed too, so that its copy is a duplicate
 * (test/integration/host-faults.test.ts "writes one letter and one notice about an event that is published twice, …").
 */
export const project: Step = {
  name: "project",
  run(work) {
    const changes: unknown[] = [];
    for (const { record, changes: own, thrown } of work.claimed) {
      if (thrown !== null) {
        work.letters.push(toLetter(record, thrown.event, thrown.fault, thrown.attempts, work.letterContext));
      } else for (const change of own) changes.push(change);
    }
    work.changes = changes;
    return Promise.resolve();
  },
};

export const apply: Step = {
  name: "apply",
  async run(work, tx) {
    if (work.changes.length > 0) work.emissions = await work.processor.apply(tx.projection, work.changes);
  },
};

/** Letters, then events, in one append: its locks are taken as late as can be. */
export const emit: Step = {
  name: "emit",
  async run(work, tx) {
    const emitted = toEmittedEvents(work.processor, work.emissions, work.nowMs);
    const follow = toCausesToFollow(emitted);
    const emitters = follow.length === 0 ? undefined : await tx.findEmitters(follow);
    const { kept: events, notices: cut } = cutLoops(emitted, work.nowMs, emitters);
    if (events.length > 0) await tx.noteEmitted(events);
    if (work.letters.length > 0) await tx.bury(work.letters);
    let allowed = events;
    if (events.length > 0) {
      let held = await tx.isHeld();
      if (!held && !work.guard.admits(events.length, work.nowMs)) {
        work.holdingBegan = await tx.startHolding(`more than its limit of emissions per window`);
        held = true;
      }
      if (held) {
        await tx.hold(events);
        work.held = events.length;
        allowed = [];
      } else allowed = await withoutHeld(work, tx, events);
    }
    work.emitted = allowed.length;
    const notices = [
      ...cut,
      ...work.notices,
      ...work.letters.flatMap(({ notice }) => (notice === null ? [] : [notice])),
    ];
    if (allowed.length + notices.length > 0) await tx.append([...notices, ...allowed]);
  },
};

/**
 * What a processor sets off goes on unless its scope is read-only; what it only tells (its class is control: alarms, items
 * of the queue) always does.
 * INVARIANT: test/integration/host-emissions.test.ts "are held back while their goal is read-only …".
 */
async function withoutHeld(
  work: Work,
  tx: HostTx,
  events: readonly Envelope[],
): Promise<readonly Envelope[]> {
  const acting = events.filter((one) => catalog[one.type].class !== "control");
  if (acting.length === 0) return events;
  const found = await tx.findHeld(acting);
  const held = acting.filter((one) => found.has(one.event_id));
  if (held.length === 0) return events;
  await tx.hold(held);
  work.held = held.length;
  return events.filter((one) => !held.includes(one));
}

const watermark: Step = {
  name: "watermark",
  async run(work, tx) {
    if (!(await tx.moveWatermark(work.position, work.nextOffset))) throw new Fenced(keyOf(work.position));
  },
};

/** The boundary: the transaction commits when it is reached. A planted step here fails just before the commit. */
export const commit: Step = { name: "commit", run: () => Promise.resolve() };

/** After the commit: what the group knows may lag behind the database, never run ahead of it. */
const offset: Step = {
  name: "offset",
  async run(work) {
    await work.control.commit(work.nextOffset);
  },
};

/** What the host does with a slice, in this order. */
export const liveSteps: readonly Step[] = [claim, project, apply, emit, watermark, commit, offset];
