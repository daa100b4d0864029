import type { Adapter } from "../../../schemas/adapter.ts";
import { toRefusal, toReply } from "./reply.ts";
import { adapterVersion, translate } from "./translate.ts";

/** The adapter of Microsoft Agent Framework's middleware (Python). */
export const maf: Adapter = {
  runtime: "maf",
  version: adapterVersion,
  translate,
  toReply,
  toRefusal,
};
