import type { Observation } from "../../../schemas/adapter.ts";
import type { LifecycleSignal } from "../../../schemas/generated/types.ts";
import type { HookRule, Scene } from "../../platform/hook-table.ts";
import { hookRule, observe, toObservation } from "../../platform/hook-table.ts";
import { toTextPreview } from "../../platform/masked-preview.ts";
import { sortNested } from "../../platform/payload-fields.ts";
import * as fields from "./payloads.ts";

const detailMaxChars = 256;
const pathMaxChars = 4096;

const toSignal = (
  signal: LifecycleSignal,
  detail: string | null,
  path: string | null,
  scene: Scene,
): Observation =>
  toObservation(
    "agent.lifecycle.observed",
    { signal, detail: detail === null ? null : toTextPreview(detail, detailMaxChars), path },
    scene,
  );
export const compaction = hookRule(
  "before_compaction",
  false,
  fields.compactionFields,
  ({ metadata }, scene) => observe(toSignal("compaction_requested", metadata.trigger ?? null, null, scene)),
);
export const toolBatch = hookRule(
  "after_tool_batch",
  false,
  fields.toolBatchFields,
  ({ metadata }, scene) => {
    const calls = metadata.tool_calls ?? [];
    const names = calls.flatMap((call) => (typeof call["tool_name"] === "string" ? [call["tool_name"]] : []));
    return observe(
      toSignal("tool_batch_completed", names.length === 0 ? null : names.join(", "), null, scene),
      [sortNested("/tool_calls", calls, ["tool_name"], ["tool_input", "tool_use_id", "tool_response"])],
    );
  },
);

/** A signal whose detail is some of its fields, joined by `separator`. */
export const signal = (
  phase: string,
  kind: LifecycleSignal,
  detail: readonly string[],
  path: string | null,
  dropped: readonly string[],
  separator = ": ",
): HookRule =>
  hookRule(phase, false, fields.signalFields(detail, path, dropped), ({ metadata }, scene) => {
    const parts = detail.flatMap((key) => metadata[key] ?? []);
    const where = path === null ? undefined : metadata[path];
    return observe(
      toSignal(
        kind,
        parts.length === 0 ? null : parts.join(separator),
        where === undefined ? null : toTextPreview(where, pathMaxChars),
        scene,
      ),
    );
  });
