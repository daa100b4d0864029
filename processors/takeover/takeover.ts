import type { Envelope } from "../../schemas/envelope.ts";
import { defineProcessor } from "../kit/processor.ts";
import type { EvidenceType } from "./evidence.ts";
import { evidenceTypes, toEvidence } from "./evidence.ts";
import type { ItemEventType } from "./item-event.ts";
import { itemEventTypes, toItemEvent } from "./item-event.ts";
import type { LetterType } from "./letter-event.ts";
import { letterTypes, toLetterEvent } from "./letter-event.ts";
import type { Change } from "./store.ts";
import { applyChanges } from "./store.ts";

const isItemEvent = (event: Envelope): event is Envelope<ItemEventType> =>
  (itemEventTypes as readonly string[]).includes(event.type);

const isLetterEvent = (event: Envelope): event is Envelope<LetterType> =>
  (letterTypes as readonly string[]).includes(event.type);
const isEvidence = (event: Envelope): event is Envelope<EvidenceType> =>
  (evidenceTypes as readonly string[]).includes(event.type);
const topics = [...new Set([...evidenceTypes, ...letterTypes, ...itemEventTypes])];

/**
 * The queue of what waits for a person. It opens items itself, and says so once each: which item an event belongs to
 * depends on when the one before was closed, so whoever opens has to know the queue. It does not read what it says.
 */
export const takeover = defineProcessor({
  name: "takeover",
  topics,
  emits: ["fabric.takeover.opened"],
  project: (event): readonly Change[] => {
    if (isItemEvent(event)) return [{ kind: "deed", row: toItemEvent(event) }];
    const row = isEvidence(event) ? toEvidence(event) : null;
    return [
      ...(row === null ? [] : [{ kind: "evidence", row } as const]),
      ...(isLetterEvent(event) ? [{ kind: "letter", row: toLetterEvent(event) } as const] : []),
    ];
  },
  apply: applyChanges,
});
