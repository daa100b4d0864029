import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Fault } from "../../schemas/faults.ts";
import { toUuid } from "../platform/ids.ts";
import type { Database } from "../platform/postgres.ts";
import type { TenantKeys } from "../platform/vault-seal.ts";
import { openInline, openPayload } from "../platform/vault-seal.ts";
import { requestPlace } from "./prepare-call.ts";
import type { NeutralFacts, RecordedLine } from "./simulate-record.ts";
import { toRecordedLine } from "./simulate-record.ts";

/** Which recorded decisions are wanted. */
export interface RecordedFilter {
  /** UTC milliseconds; null: all there are. */
  readonly sinceMs: number | null;
  readonly tenantId: string | null;
  readonly limit: number | null;
}

/** Where recorded decisions are read. Nothing is written. */
export interface RecordedSource {
  readonly database: Database;
  /** Opens sealed requests; null: they are left out. */
  readonly keys: TenantKeys | null;
  /** For rows of a time when it was not stored. */
  readonly environment: string;
}

/** Rows of one round trip: some hundred kilobytes. */
const batchRows = 200;

interface DecisionColumns {
  readonly decision_id: string;
  readonly tenant_id: string;
  readonly policy_revision: string;
  readonly request: unknown;
  readonly request_sealed: Buffer | null;
  readonly request_ref: string | null;
  readonly facts: unknown;
  readonly answer: Record<string, unknown>;
  readonly decided_at: Date;
}

const columns = `decision_id, tenant_id, policy_revision, request, request_sealed, request_ref, facts, answer, decided_at`;

/**
 * Recorded decisions, the oldest first, in batches: as much is in memory as one batch. Ids are UUIDv7, so the primary key
 * is the order of time.
 */
export async function* readRecordedDecisions(
  source: RecordedSource,
  filter: RecordedFilter,
): AsyncGenerator<RecordedLine> {
  let left = filter.limit ?? Number.POSITIVE_INFINITY;
  let after = filter.sinceMs === null ? firstUuid : uuidFloor(filter.sinceMs);
  while (left > 0) {
    const wanted = Math.min(left, batchRows);
    const found = await source.database.query<DecisionColumns>(
      `SELECT ${columns} FROM gate.decisions
        WHERE decision_id > $1::uuid AND ($2::text IS NULL OR tenant_id = $2) ORDER BY decision_id LIMIT $3`,
      [after, filter.tenantId, wanted],
    );
    for (const row of found.rows) yield await toLine(source, row);
    const last = found.rows.at(-1);
    if (last === undefined || found.rows.length < wanted) return;
    left -= found.rows.length;
    after = last.decision_id;
  }
}

const firstUuid = "00000000-0000-0000-0000-000000000000";

/** The smallest UUID of a time, UTC milliseconds: rows with a UUIDv7 are read from there on by their key. */
export function uuidFloor(ms: number): string {
  const hex = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-0000-0000-000000000000`;
}

/** How far back a tool call is looked for that the audit trail does not know yet. */
const unsealedMs = 3_600_000;

/** One decision by its id, or the newest of a tool call; null: none is recorded. */
export async function loadRecordedDecision(
  source: RecordedSource,
  id: string,
  nowMs: number,
): Promise<RecordedLine | null> {
  const uuid = /^(?:dec_)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i.exec(id)?.[1] ?? null;
  const found = await source.database.query<DecisionColumns>(
    uuid === null
      ? // Nothing indexes the ids of calls here; the trail does, and what it lacks is recent.
        `SELECT ${columns} FROM gate.decisions AS d
          WHERE d.decision_id = (SELECT replace(t.decision_id, 'dec_', '')::uuid FROM audit.trail AS t
              WHERE t.tool_call_id = $1 AND t.decision_id IS NOT NULL ORDER BY t.recorded_at DESC LIMIT 1)
            OR (d.decision_id > $2::uuid AND d.request ->> 'tool_call_id' = $1)
          ORDER BY d.decision_id DESC LIMIT 1`
      : `SELECT ${columns} FROM gate.decisions WHERE decision_id = $1::uuid AND $2::uuid IS NOT NULL`,
    [uuid ?? id, uuidFloor(nowMs - unsealedMs)],
  );
  const row = found.rows[0];
  return row === undefined ? null : toLine(source, row);
}

/** Decisions by their ids, of those that are recorded. */
export async function loadRecordedDecisions(
  source: RecordedSource,
  decisionIds: readonly string[],
): Promise<ReadonlyMap<string, RecordedLine>> {
  const found = await source.database.query<DecisionColumns>(
    `SELECT ${columns} FROM gate.decisions WHERE decision_id = ANY ($1::uuid[])`,
    [decisionIds.map(toUuid)],
  );
  const lines = new Map<string, RecordedLine>();
  for (const row of found.rows) lines.set(`dec_${row.decision_id}`, await toLine(source, row));
  return lines;
}

async function toLine(source: RecordedSource, row: DecisionColumns): Promise<RecordedLine> {
  const decisionId = `dec_${row.decision_id}`;
  const neutral: NeutralFacts = {
    nowMs: row.decided_at.getTime(),
    tenantId: row.tenant_id,
    environment: source.environment,
  };
  let request: unknown;
  try {
    request = await openRequest(source, row);
  } catch (error) {
    // The key was shredded, or is another machine's: the decision stays, what was asked is gone.
    if (error instanceof Fault && error.kind === "transient") throw error;
    return { kind: "unreadable", decisionId, why: "its sealed request cannot be opened" };
  }
  if (request === null)
    return { kind: "unreadable", decisionId, why: "its request is sealed, and no key was given" };
  const answer = { ...row.answer, policy_revision: row.policy_revision };
  return toRecordedLine({ decisionId, request, facts: row.facts, answer }, neutral);
}

/** The exact request; null: it is sealed and there is no key. */
async function openRequest({ database, keys }: RecordedSource, row: DecisionColumns): Promise<unknown> {
  if (row.request_sealed !== null) {
    if (keys === null) return null;
    const place = requestPlace(`dec_${row.decision_id}`);
    return JSON.parse(
      (await openInline(keys, row.tenant_id, place, row.request_sealed)).toString("utf8"),
    ) as unknown;
  }
  if (row.request_ref !== null) {
    if (keys === null) return null;
    const { bytes } = await openPayload(database, keys, row.request_ref);
    return JSON.parse(bytes.toString("utf8")) as unknown;
  }
  return row.request;
}

/** Longest line of a file: a request and its facts. */
const lineMaxChars = 8 * 1024 * 1024;

/**
 * Decisions of a file of JSON lines, each `{request, facts?, answer?, decision_id?}` or a bare request. What a line leaves
 * out is neutral.
 */
export async function* readRecordedFile(path: string, neutral: NeutralFacts): AsyncGenerator<RecordedLine> {
  let number = 0;
  for await (const text of createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Infinity })) {
    number += 1;
    if (text.trim() === "") continue;
    yield toFileLine(text, `line ${String(number)}`, neutral);
  }
}

function toFileLine(text: string, place: string, neutral: NeutralFacts): RecordedLine {
  let json: unknown;
  try {
    json = text.length > lineMaxChars ? null : (JSON.parse(text) as unknown);
  } catch {
    json = null;
  }
  if (typeof json !== "object" || json === null) {
    return { kind: "unreadable", decisionId: place, why: "its line is no JSON object" };
  }
  const line = json as Record<string, unknown>;
  if (!("request" in line))
    return toRecordedLine({ decisionId: place, request: line, facts: {}, answer: null }, neutral);
  const id = typeof line["decision_id"] === "string" ? line["decision_id"] : place;
  return toRecordedLine(
    {
      decisionId: id,
      request: line["request"],
      facts: line["facts"] ?? {},
      ...(line["operands"] === undefined ? {} : { operands: line["operands"] }),
      answer: line["answer"] ?? null,
    },
    neutral,
  );
}
