import { Fault } from "../../schemas/faults.ts";
import { recordsReader } from "../doctor/records-reader.ts";
import type { RuntimeRoom } from "../platform/runtime-room.ts";
import type { ComparedSession } from "./compare-sessions.ts";
import { compareSessions } from "./compare-sessions.ts";

/** What a client's own records say against the gate's. */
export interface SessionFindings {
  readonly isWell: boolean;
  readonly sessions: readonly ComparedSession[];
  /** For a person, a line each. */
  readonly lines: readonly string[];
}

const shownMax = 20;
const toTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16)}Z`;

/** Looks for sessions in which tools ran and that the gate never heard of, since a time. */
export async function findSessions(
  room: RuntimeRoom,
  where: { readonly home: string; readonly gateUrl: string; readonly token: string },
  sinceMs: number,
  signal: AbortSignal,
): Promise<SessionFindings> {
  const { runtime } = room.adapter;
  const { records } = room;
  if (records === undefined)
    return {
      isWell: true,
      sessions: [],
      lines: [`?        sessions: ${runtime} keeps no record of what its sessions did; nothing to compare`],
    };
  let sessions: readonly ComparedSession[];
  try {
    sessions = await compareSessions({ runtime, records, reader: recordsReader, sinceMs, signal, ...where });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return {
      isWell: false,
      sessions: [],
      lines: [`?        sessions: not compared with the gate's: ${error.message}`],
    };
  }
  const unseen = sessions.filter(({ isKnown }) => !isKnown);
  const partly = sessions.filter(
    ({ isKnown, unknownTools }) => isKnown && Object.keys(unknownTools).length > 0,
  );
  return {
    isWell: unseen.length + partly.length === 0,
    sessions,
    lines: [
      `${unseen.length + partly.length === 0 ? "held    " : "NOT HELD"} sessions: tools ran in ${String(sessions.length)} since ${toTime(sinceMs)} (${records.where}), ${unseen.length + partly.length === 0 ? "the gate decided on each call" : `the gate decided nothing in ${String(unseen.length)}, and not on every call in ${String(partly.length)}`}`,
      ...toShown(
        unseen,
        (one) =>
          `OPEN     session ${one.sessionId}: ${toCalls(one.calls)}, the last at ${toTime(one.lastMs)}: none was asked about; it ran without the hooks`,
      ),
      ...toShown(
        partly,
        (one) =>
          `OPEN     session ${one.sessionId}: of ${toCalls(one.calls)} the gate was not asked about ${toList(one.unknownTools)}`,
      ),
    ],
  };
}

const toCalls = (calls: number): string => `${String(calls)} tool call${calls === 1 ? "" : "s"}`;
const toList = (tools: Readonly<Record<string, number>>): string =>
  Object.entries(tools)
    .map(([tool, times]) => `${tool} (${String(times)})`)
    .join(", ");

function toShown(
  sessions: readonly ComparedSession[],
  toLine: (session: ComparedSession) => string,
): readonly string[] {
  const left = sessions.length - shownMax;
  const lines = sessions.slice(0, shownMax).map(toLine);
  return left > 0 ? [...lines, `         and ${String(left)} more; --json has all`] : lines;
}
