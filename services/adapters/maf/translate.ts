import type { Translation } from "../../../schemas/adapter.ts";
import type { NestedTable } from "../../platform/nested-hook.ts";
import { translateNested } from "../../platform/nested-hook.ts";
import { events } from "./events.ts";

/** Raised when the same payload gives other events than before. */
export const adapterVersion = "1.0.0";

const table: NestedTable = {
  runtime: "maf",
  version: adapterVersion,
  eventNameField: "hook",
  // The framework tells no permission mode.
  permissionModeField: "permission_mode",
  events,
};

/** What the middleware of Microsoft Agent Framework sends means. Takes any JSON value, never throws. */
export const translate = (payload: unknown, bodyBytes: number): Translation =>
  translateNested(table, payload, bodyBytes);
