import type { Envelope } from "../../schemas/envelope.ts";
import { defineProcessor } from "../kit/processor.ts";
import { toErasure } from "./erasure.ts";
import { factTypes, toFact } from "./fact.ts";
import { toLabel } from "./label.ts";
import { toLinks } from "./link.ts";
import type { Change } from "./store.ts";
import { applyChanges } from "./store.ts";

const isLabel = (event: Envelope): event is Envelope<"agent.episode.labelled"> =>
  event.type === "agent.episode.labelled";

const isErasure = (event: Envelope): event is Envelope<"fabric.tenant.erased"> =>
  event.type === "fabric.tenant.erased";

/** Episodes for evaluation: what was asked, which calls it came to, what was decided, how it ended, what people say of it. */
export const evaluation = defineProcessor({
  name: "eval",
  topics: [...factTypes, "agent.episode.labelled", "fabric.tenant.erased"],
  project: (event): readonly Change[] => {
    if (isLabel(event)) return [{ kind: "label", row: toLabel(event) }];
    if (isErasure(event)) return [{ kind: "erasure", row: toErasure(event) }];
    return [{ kind: "fact", row: toFact(event), links: toLinks(event) }];
  },
  apply: applyChanges,
});
