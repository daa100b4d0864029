import type { EventType } from "../../schemas/catalog.ts";
import { eventTypes } from "../../schemas/catalog.ts";
import { defineProcessor } from "../kit/processor.ts";
import { appendTrail } from "./store.ts";
import { toAuditRow } from "./words.ts";

/**
 * Everything but the seals of the trail itself, which are made from it: they would be sealed again, for ever. Lifecycle
 * types are in it: who typed the prompt and which hooks were loaded belongs to the answer to "who did this".
 */
export const auditedTypes: readonly Exclude<EventType, "fabric.audit.sealed">[] = eventTypes.filter(
  (type) => type !== "fabric.audit.sealed",
);

/** The append-only trail: who, what, under which policy, by which right, with which outcome. */
export const audit = defineProcessor({
  name: "audit",
  topics: auditedTypes,
  project: (event, source) => [toAuditRow(event, source)],
  apply: appendTrail,
});
