import type { JsonObject } from "../json.ts";
import { isJsonObject } from "../json.ts";
import type { Allowed, GateQuestion } from "./gate-answer.ts";
import { toWire } from "./gate-answer.ts";

/** Tools that the gate lets a harness answer by itself for a short while: without effect, and without a label. */
interface Profile {
  readonly policyRevision: string;
  readonly tools: readonly string[];
  readonly expiresMs: number;
}

export interface LocalProfile {
  /** True when it is time to fetch the next one. */
  isStale(nowMs: number): boolean;
  /** Takes the gate's answer; one that is not understood takes away what was known. */
  take(answer: unknown, nowMs: number): void;
  /** Answers a call, and keeps it for the report; null: ask the gate. */
  answer(question: GateQuestion, runtime: string, nowMs: number): Allowed | null;
  /** Decisions that are to be reported, oldest first, at most as many as one report takes. */
  due(): readonly JsonObject[];
  /** Takes away what was reported: the first `count`, but for those at these places. */
  settle(count: number, failed: readonly number[]): void;
  readonly unreported: number;
}

/** Most decisions of one report. */
const reportMax = 500;
/** So long a gate gives it, by whichever clock. */
const lifeMaxMs = 60_000;
/** Asked for anew so long before it ends. */
const renewBeforeMs = 40_000;

/**
 * What may pass while the gate is away. It needs a place for the report first: a full list answers nothing, so that nothing
 * passes that nobody will hear of.
 */
export function createLocalProfile({ unreportedMax = 2_000 } = {}): LocalProfile {
  let profile: Profile | null = null;
  let waiting: JsonObject[] = [];
  return {
    isStale: (nowMs) => profile === null || profile.expiresMs - nowMs < renewBeforeMs,
    take(answer, nowMs) {
      profile = readProfile(answer, nowMs);
    },
    answer(question, runtime, nowMs) {
      if (profile === null || !(nowMs < profile.expiresMs) || !profile.tools.includes(question.tool))
        return null;
      if (waiting.length >= unreportedMax) return null;
      const { policyRevision } = profile;
      waiting.push({
        policy_revision: policyRevision,
        decided_at: new Date(nowMs).toISOString(),
        request: toWire(question, runtime),
      });
      return {
        decision: "allow",
        reasonCode: "LOCAL_PROFILE",
        message: "a tool without effect, answered by its own runtime",
        decisionId: null,
        policyRevision,
        labels: ["local_profile"],
        constraints: {},
        planDigest: null,
        capability: null,
        modifiedInput: null,
      };
    },
    due: () => waiting.slice(0, reportMax),
    settle(count, failed) {
      waiting = [...waiting.slice(0, count).filter((_, at) => failed.includes(at)), ...waiting.slice(count)];
    },
    get unreported() {
      return waiting.length;
    },
  };
}

function readProfile(answer: unknown, nowMs: number): Profile | null {
  if (!isJsonObject(answer)) return null;
  const { policy_revision: policyRevision, tools, expires_at: expiresAt } = answer;
  if (typeof policyRevision !== "string" || typeof expiresAt !== "string" || !Array.isArray(tools))
    return null;
  const expiresMs = Date.parse(expiresAt);
  if (Number.isNaN(expiresMs)) return null;
  return {
    policyRevision,
    tools: (tools as unknown[]).filter((tool) => typeof tool === "string"),
    // A clock behind the gate's would make it last as much longer.
    expiresMs: Math.min(expiresMs, nowMs + lifeMaxMs),
  };
}
