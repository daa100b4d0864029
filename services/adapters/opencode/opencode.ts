import type { Adapter } from "../../../schemas/adapter.ts";
import { toRefusal, toReply } from "./reply.ts";
import { adapterVersion, translate } from "./translate.ts";

/** The adapter of OpenCode's plugin. */
export const opencode: Adapter = {
  runtime: "opencode",
  version: adapterVersion,
  translate,
  toReply,
  toRefusal,
};
