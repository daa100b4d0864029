import type { Translation } from "../../schemas/adapter.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Place } from "./adapter-kit.ts";
import type { HookRule, HookTable } from "./hook-table.ts";
import { translateByTable } from "./hook-table.ts";
import { isJsonObject } from "./payload-fields.ts";

/** One event of a runtime whose payloads hold their fields inside containers. */
export interface NestedEvent {
  /** Its fields are named by their path, such as `event/toolName`. */
  readonly rule: HookRule;
  /** Containers that are opened, outer ones first; each holds fields that are read or dropped by name. */
  readonly open: readonly string[];
  /** Where the payload carries each id. */
  readonly ids: { readonly [K in keyof Place]?: string };
}

/** A runtime's nested hooks. */
export interface NestedTable extends Pick<
  HookTable,
  "runtime" | "version" | "eventNameField" | "permissionModeField"
> {
  readonly events: ReadonlyMap<string, NestedEvent>;
}

const escapeKey = (key: string): string => key.replaceAll("~", "~0").replaceAll("/", "~1");
/** A field's path is one key to the reader of fields, which escapes its slashes. */
const toRealPointer = (pointer: string): string => pointer.replaceAll("~1", "/").replaceAll("~0", "~");

/** The payload with the fields of the opened containers beside its own, each named by its path. Pure. */
export function openContainers(
  payload: Readonly<Record<string, unknown>>,
  open: readonly string[],
): Readonly<Record<string, unknown>> {
  const flat = new Map<string, unknown>();
  for (const [key, value] of Object.entries(payload)) flat.set(escapeKey(key), value);
  for (const path of open) {
    const container = flat.get(path);
    // One of another type stays as it is, so that what is missing in it is missed.
    if (!isJsonObject(container)) continue;
    flat.delete(path);
    for (const [key, value] of Object.entries(container)) flat.set(`${path}/${escapeKey(key)}`, value);
  }
  // No literal: a key may be `__proto__`.
  return Object.fromEntries(flat);
}

/** Translates any JSON value by a table of nested events. Never throws. */
export function translateNested(table: NestedTable, payload: unknown, bodyBytes: number): Translation {
  const name = isJsonObject(payload) ? payload[table.eventNameField] : undefined;
  const event = typeof name === "string" ? table.events.get(name) : undefined;
  const { sessionId, turnId, toolCallId, agentId } = event?.ids ?? {};
  const flat = isJsonObject(payload) && event !== undefined ? openContainers(payload, event.open) : payload;
  return withRealPointers(
    translateByTable(
      {
        runtime: table.runtime,
        version: table.version,
        eventNameField: table.eventNameField,
        permissionModeField: table.permissionModeField,
        idFields: {
          sessionId: sessionId ?? nowhere,
          turnId: turnId ?? nowhere,
          toolCallId: toolCallId ?? nowhere,
          agentId: agentId ?? nowhere,
        },
        rules:
          event === undefined || typeof name !== "string"
            ? new Map<string, HookRule>()
            : new Map([[name, event.rule]]),
      },
      flat,
      bodyBytes,
    ),
  );
}

/** No payload has this key: an opened one's keys are escaped, and a whole one is never read for ids. */
const nowhere = "~";

function withRealPointers(translation: Translation): Translation {
  if (translation.kind !== "unrecognized")
    return {
      ...translation,
      dropped: translation.dropped.map(toRealPointer),
      unknownFields: translation.unknownFields.map(toRealPointer),
    };
  const { draft: made } = translation;
  const { field } = made.redacted_summary;
  if (field === null) return translation;
  const { redacted_summary: summary, type, ...rest } = made;
  return {
    ...translation,
    draft: draft(type, { ...summary, field: toRealPointer(field) }, rest),
  };
}
