import type { Translation } from "../../../schemas/adapter.ts";
import type { HookTable } from "../../platform/hook-table.ts";
import { translateByTable } from "../../platform/hook-table.ts";
import { rules } from "./events.ts";

/** Raised when the same event gives other drafts than before. */
export const adapterVersion = "1.0.0";

const table: HookTable = {
  runtime: "own",
  version: adapterVersion,
  eventNameField: "event",
  permissionModeField: "permission_mode",
  idFields: { sessionId: "session_id", turnId: "turn_id", toolCallId: "call_id", agentId: "agent_id" },
  rules,
};

/** What an event of the SDK means. Takes any JSON value, never throws. */
export const translate = (payload: unknown, bodyBytes: number): Translation =>
  translateByTable(table, payload, bodyBytes);
