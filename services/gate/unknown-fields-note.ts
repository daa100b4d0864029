import type { Adapter, Translation } from "../../schemas/adapter.ts";
import type { Log } from "../platform/log.ts";
import { maskText } from "../platform/mask.ts";
import type { Metrics } from "../platform/metrics.ts";

/** Past it nothing new is logged: names come from outside. */
const seenMax = 1_000;

/** Makes the note of fields that an adapter has never seen: each is counted, and logged once per process. */
export function createUnknownFieldsNote(
  log: Log,
  metrics: Metrics,
): (adapter: Adapter, translation: Translation) => void {
  const unknownFields = metrics.counter(
    "fabric_gate_unknown_fields_total",
    "metadata fields that an adapter has never seen",
    ["runtime"],
  );
  const seen = new Set<string>();
  return ({ runtime, version }, translation) => {
    if (translation.kind === "unrecognized" || translation.unknownFields.length === 0) return;
    unknownFields.add({ runtime }, translation.unknownFields.length);
    const fresh = translation.unknownFields.map(maskText).filter((field) => !seen.has(`${runtime}${field}`));
    if (fresh.length === 0 || seen.size > seenMax) return;
    for (const field of fresh) seen.add(`${runtime}${field}`);
    log.warn({ runtime, version, fields: fresh }, "fields that the adapter has never seen");
  };
}
