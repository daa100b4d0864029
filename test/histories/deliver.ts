import type { Envelope } from "../../schemas/envelope.ts";
import { toKey } from "../../schemas/envelope.ts";
import type { Step } from "../../services/host/batch-steps.ts";
import { liveSteps } from "../../services/host/batch-steps.ts";
import { createRandom } from "../../services/seed/random.ts";

/** What happens to the host while one part of the history is read. */
export interface Mishap {
  /** The host dies at this step of its nth slice, whichever processor's that is. */
  readonly step: Step["name"];
  readonly slice: number;
  /** What its successor finds: positions that were set back, or one projection that begins anew. */
  readonly then: "nothing" | "rewind" | "rebuild";
  /** A number that picks the processor. */
  readonly processor: number;
}

/** A part of a history on its way: what is published, and what happens meanwhile. */
export interface Part {
  readonly events: readonly Envelope[];
  readonly mishap: Mishap | null;
  /** A second host joins while this part is read, and leaves after it. */
  readonly hasGuest: boolean;
}

const orderStream = 1_000_002;
const duplicateShare = 0.12;
const parts = 6;

/**
 * The way of a history through the log. Events of one type and key mostly keep their order, as the relay keeps it; everything
 * else is shuffled by up to the whole history, and some events are published again later, in any number of copies.
 */
export function planDelivery(seed: number, events: readonly Envelope[]): readonly Part[] {
  const random = createRandom(seed, orderStream);
  const spread = random.pick([0, 0.05, 1]) * events.length;
  const lateShare = random.pick([0.02, 0.1, 0.4]);
  const shifts = new Map<string, number>();
  const placed = events.flatMap((event, index) => {
    const queue = `${event.type} ${toKey(event)}`;
    const shift = shifts.get(queue) ?? Math.floor(random.unit() * spread);
    shifts.set(queue, shift);
    // Recorded first and committed last: two writers of one key may come to the log in the other order.
    const lateness = random.chance(lateShare) ? random.skewed(events.length / 5, 1) : 0;
    const at = index + shift + lateness;
    const copies: { readonly event: Envelope; readonly at: number }[] = [{ event, at }];
    while (random.chance(duplicateShare))
      copies.push({ event, at: at + random.skewed(random.pick([1, 30, events.length / 2]), 1) });
    return copies;
  });
  // Stable: what has one place stays in order.
  const ordered = placed.sort((a, b) => a.at - b.at).map((one) => one.event);
  // No part is so short that a host could not die in it.
  const cuts = Array.from({ length: parts - 1 }, (_, index) =>
    Math.round(((index + 1 + (random.unit() - 0.5) / 2) * ordered.length) / parts),
  );
  const dead = [random.between(0, 2), random.between(3, parts - 1)];
  const orders = random.pick<readonly Mishap["then"][]>([
    ["rewind", "rebuild"],
    ["rebuild", "nothing"],
    ["nothing", "rewind"],
  ]);
  return [0, ...cuts].map((from, index) => {
    const nth = dead.indexOf(index);
    return {
      events: ordered.slice(from, cuts[index] ?? ordered.length),
      mishap:
        nth < 0
          ? null
          : {
              step: random.pick(stepNames),
              slice: random.between(1, 12),
              then: orders[nth] ?? "nothing",
              processor: random.between(0, 99),
            },
      hasGuest: nth < 0 && random.chance(0.15),
    };
  });
}

const [firstStep, ...otherSteps] = liveSteps.map((step) => step.name);
if (firstStep === undefined) throw new Error("a host has steps");
const stepNames = [firstStep, ...otherSteps] as const;
