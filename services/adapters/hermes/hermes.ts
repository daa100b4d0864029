import type { Adapter } from "../../../schemas/adapter.ts";
import { toRefusal, toReply } from "./reply.ts";
import { adapterVersion, translate } from "./translate.ts";

/** The adapter of Hermes's plugin and shell hooks. */
export const hermes: Adapter = {
  runtime: "hermes",
  version: adapterVersion,
  translate,
  toReply,
  toRefusal,
};
