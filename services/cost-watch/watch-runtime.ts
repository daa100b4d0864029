import type { Envelope } from "../../schemas/envelope.ts";

/** What stands in events as their runtime when the watch over spending says them. */
export const watchRuntime: Envelope["runtime"] = {
  kind: "fabric",
  adapter_version: "cost-watch",
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
};
