import type { Adapter } from "../../../schemas/adapter.ts";
import { toRefusal, toReply } from "./reply.ts";
import { adapterVersion, translate } from "./translate.ts";

/** The adapter of Claude Code's hooks. */
export const claudeCode: Adapter = {
  runtime: "claude-code",
  version: adapterVersion,
  translate,
  toReply,
  toRefusal,
};
