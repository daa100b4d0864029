import type { RuntimeReply, Translation } from "../../../schemas/adapter.ts";
import type { GateAnswer } from "../../../schemas/gate.ts";
import { toPluginRefusal, toPluginReply } from "../../platform/plugin-reply.ts";
import { events } from "./events.ts";

const isObserving = (eventName: string | null): boolean =>
  eventName !== null && events.get(eventName)?.rule.gating === false;

/** The blocking form of one event, which the middleware gives as the call's result; an observing event is answered with nothing. */
export const toRefusal = (eventName: string | null, reason: string): RuntimeReply =>
  toPluginRefusal(isObserving(eventName), reason);

/** The reply to any translated payload; a gated one without an answer is refused. */
export const toReply = (translation: Translation, answer: GateAnswer | null): RuntimeReply =>
  toPluginReply(translation, answer, isObserving);
