import type { Adapter } from "../../../schemas/adapter.ts";
import { toRefusal, toReply } from "./reply.ts";
import { adapterVersion, translate } from "./translate.ts";

/** The adapter of OpenClaw's plugin. */
export const openclaw: Adapter = {
  runtime: "openclaw",
  version: adapterVersion,
  translate,
  toReply,
  toRefusal,
};
