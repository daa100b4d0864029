import type { Translation } from "../../../schemas/adapter.ts";
import type { NestedTable } from "../../platform/nested-hook.ts";
import { translateNested } from "../../platform/nested-hook.ts";
import { isJsonObject } from "../../platform/payload-fields.ts";
import { events } from "./events.ts";

/** Raised when the same payload gives other events than before. */
export const adapterVersion = "1.0.0";
/** Of payloads of shell hooks, the weaker form: they cannot change a call. */
export const shellVersion = `${adapterVersion}-shell`;

const tableOf = (version: string): NestedTable => ({
  runtime: "hermes",
  version,
  eventNameField: "hook",
  // The client's hooks tell no permission mode.
  permissionModeField: "permission_mode",
  events,
});
const pluginTable = tableOf(adapterVersion);
const shellTable = tableOf(shellVersion);

const own = (fields: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(fields, key) ? fields[key] : undefined;
const orAbsent = (value: unknown): unknown => (value === "" || value === null ? undefined : value);

/** A shell hook's payload in the plugin's form. A call without a session stays without one, and is refused. */
function toPluginForm(payload: Readonly<Record<string, unknown>>): unknown {
  const { hook_event_name: hook, session_id: session, cwd, extra, tool_name, tool_input, ...rest } = payload;
  const told = isJsonObject(extra) ? extra : {};
  const turn = orAbsent(own(told, "turn_id") ?? own(told, "parent_turn_id"));
  // The client's own questions name their turn alone, which begins with its session, or a key of its own.
  const ofTurn = typeof turn === "string" ? turn.split(":")[0] : undefined;
  const place = Object.entries({
    instance: "shell-hook",
    directory: cwd,
    session: orAbsent(session) ?? ofTurn ?? orAbsent(own(told, "session_key")),
    turn,
    call: orAbsent(own(told, "tool_call_id")),
  }).filter(([, value]) => value !== undefined);
  return {
    ...rest,
    hook,
    place: Object.fromEntries(place),
    payload: {
      ...told,
      ...(tool_name === null ? {} : { tool_name }),
      ...(tool_input === null ? {} : { args: tool_input }),
    },
  };
}

/** What the plugin of Hermes sends means, or a shell hook's payload. Takes any JSON value, never throws. */
export const translate = (payload: unknown, bodyBytes: number): Translation =>
  isJsonObject(payload) && Object.hasOwn(payload, "hook_event_name")
    ? translateNested(shellTable, toPluginForm(payload), bodyBytes)
    : translateNested(pluginTable, payload, bodyBytes);
