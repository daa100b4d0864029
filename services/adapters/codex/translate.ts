import type { Translation } from "../../../schemas/adapter.ts";
import type { HookTable } from "../../platform/hook-table.ts";
import { translateByTable } from "../../platform/hook-table.ts";
import { rules } from "./events.ts";

/** Raised when the same payload gives other events than before. */
export const adapterVersion = "1.0.0";

const table: HookTable = {
  runtime: "codex",
  version: adapterVersion,
  eventNameField: "hook_event_name",
  permissionModeField: "permission_mode",
  idFields: { sessionId: "session_id", turnId: "turn_id", toolCallId: "tool_use_id", agentId: "agent_id" },
  rules,
  endsOnce: true,
};

/** What a hook payload of Codex means. Takes any JSON value, never throws. */
export const translate = (payload: unknown, bodyBytes: number): Translation =>
  translateByTable(table, payload, bodyBytes);
