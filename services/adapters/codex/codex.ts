import type { Adapter } from "../../../schemas/adapter.ts";
import { toRefusal, toReply } from "./reply.ts";
import { adapterVersion, translate } from "./translate.ts";

/** The adapter of Codex's hooks. */
export const codex: Adapter = { runtime: "codex", version: adapterVersion, translate, toReply, toRefusal };
