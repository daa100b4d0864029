import { Fault } from "../../schemas/faults.ts";
import type { CompareSessions } from "../../schemas/session-records.ts";
import {
  comparedCallsMax,
  comparedSessionsMax,
  comparedSessionsSchema,
} from "../../schemas/session-records.ts";
import type { RecordedCall, RecordsReader, SessionRecords } from "../platform/session-records.ts";

/** A session of this machine, and what the gate knows of it. */
export interface ComparedSession {
  readonly sessionId: string;
  readonly calls: number;
  /** UTC milliseconds of its last call. */
  readonly lastMs: number;
  readonly isKnown: boolean;
  /** Tools of the calls that the gate decided nothing on, each with how often. */
  readonly unknownTools: Readonly<Record<string, number>>;
}

export interface CompareOptions {
  readonly runtime: string;
  readonly records: SessionRecords;
  readonly reader: RecordsReader;
  readonly home: string;
  readonly sinceMs: number;
  readonly gateUrl: string;
  readonly token: string;
  readonly signal: AbortSignal;
}

const askMaxMs = 10_000;
/** Of one question: with the longest ids a third of what the gate takes in. */
const questionCallsMax = 5_000;

/**
 * Compares a client's own records with what the gate decided, the newest session first. Ids alone leave the machine. Throws
 * GATE_UNREACHABLE, or what the gate says.
 */
export async function compareSessions(options: CompareOptions): Promise<readonly ComparedSession[]> {
  const sessions = new Map<string, RecordedCall[]>();
  for await (const call of options.records.read(options.home, options.sinceMs, options.reader)) {
    const calls = sessions.get(call.sessionId);
    if (calls === undefined) sessions.set(call.sessionId, [call]);
    else calls.push(call);
  }
  const unknown = new Map<string, { isKnown: boolean; calls: Set<string> }>();
  for (const question of toQuestions(options.runtime, sessions))
    for (const { session_id: id, is_known: isKnown, unknown_call_ids: ids } of await ask(options, question)) {
      const before = unknown.get(id);
      unknown.set(id, { isKnown, calls: new Set([...(before?.calls ?? []), ...ids]) });
    }
  return [...sessions]
    .map(([sessionId, calls]): ComparedSession => {
      const found = unknown.get(sessionId);
      const unknownTools: Record<string, number> = {};
      for (const { callId, tool } of calls)
        if (found?.calls.has(callId) === true) unknownTools[tool] = (unknownTools[tool] ?? 0) + 1;
      return {
        sessionId,
        calls: calls.length,
        lastMs: calls.reduce((last, { atMs }) => Math.max(last, atMs), 0),
        isKnown: found?.isKnown === true,
        unknownTools,
      };
    })
    .sort((one, other) => other.lastMs - one.lastMs);
}

/** A session of many calls comes in several questions. */
function* toQuestions(
  runtime: string,
  sessions: ReadonlyMap<string, readonly RecordedCall[]>,
): Iterable<CompareSessions> {
  const parts = [...sessions].flatMap(([id, calls]) => {
    const ids = [...new Set(calls.map(({ callId }) => callId))];
    const count = Math.ceil(ids.length / comparedCallsMax);
    return Array.from({ length: count }, (_, at) => ({
      session_id: id,
      call_ids: ids.slice(at * comparedCallsMax, (at + 1) * comparedCallsMax),
    }));
  });
  let question: (typeof parts)[number][] = [];
  let calls = 0;
  for (const part of parts) {
    if (
      question.length >= comparedSessionsMax ||
      (calls > 0 && calls + part.call_ids.length > questionCallsMax)
    ) {
      yield { runtime, sessions: question };
      question = [];
      calls = 0;
    }
    question.push(part);
    calls += part.call_ids.length;
  }
  if (question.length > 0) yield { runtime, sessions: question };
}

async function ask({ gateUrl, token, signal }: CompareOptions, question: CompareSessions) {
  const response = await fetch(`${gateUrl}/v1/sessions/compare`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(question),
    redirect: "error",
    signal: AbortSignal.any([signal, AbortSignal.timeout(askMaxMs)]),
  }).catch((error: unknown) => {
    throw new Fault("GATE_UNREACHABLE", `the gate at ${gateUrl} cannot be asked about sessions`, {
      cause: error,
    });
  });
  const body: unknown = await response.json().catch(() => null);
  const answer = comparedSessionsSchema.safeParse(body);
  if (response.ok && answer.success) return answer.data.sessions;
  const code = (body as { readonly code?: unknown } | null)?.code;
  throw new Fault(
    "GATE_UNREACHABLE",
    `the gate at ${gateUrl} answered ${String(response.status)}${typeof code === "string" ? ` ${code}` : ""} when it was asked about sessions`,
  );
}
