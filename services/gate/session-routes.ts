import { draft } from "../../schemas/envelope.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Runtime } from "../../schemas/generated/types.ts";
import type { ComparedSessions } from "../../schemas/session-records.ts";
import { compareSessionsSchema } from "../../schemas/session-records.ts";
import type { AccessTable, HttpRequest, HttpServer, ReceivedBody } from "../platform/http.ts";
import type { Database } from "../platform/postgres.ts";
import { bodyOf, parseInput } from "../platform/route-input.ts";
import { toSessionKey } from "./call-keys.ts";
import type { HookOrigin } from "./hook-translation.ts";
import type { HookOutcome, HookWork } from "./hook-work.ts";

/** Who may compare: whoever may ask for decisions. Only its own tenant's sessions are looked at. */
export const sessionAccess = {
  "POST /v1/sessions/compare": ["runtime"],
} as const satisfies AccessTable;

export interface SessionRouteOptions {
  readonly database: Database;
  /** The runtime as its events name it; null: no adapter has this name. */
  readonly runtimeOf: (runtime: string) => Runtime | null;
  readonly toOrigin: (request: HttpRequest) => HookOrigin;
  readonly record: (work: HookWork) => Promise<HookOutcome>;
}

/**
 * Adds the route by which a machine's own records of sessions are compared with the gate's; give `sessionAccess` to the
 * server. A session in which tools ran that the gate decided nothing on is told once, as an ungated effect.
 */
export function registerSessionRoutes(app: HttpServer, options: SessionRouteOptions): void {
  app.post<{ Body: ReceivedBody }>("/v1/sessions/compare", async (request, reply) => {
    const { runtime, sessions } = parseInput(compareSessionsSchema, bodyOf(request).json, "body");
    const named = options.runtimeOf(runtime);
    if (named === null) throw new Fault("RUNTIME_UNKNOWN");
    const origin = options.toOrigin(request);
    const asked = sessions.map(({ session_id: id, call_ids: calls }) => ({
      id,
      calls,
      key: toSessionKey(origin.tenantId, runtime, id),
    }));
    const { known, decided } = await findDecided(options.database, origin.tenantId, asked);
    const compared: ComparedSessions = {
      sessions: asked.map(({ id, calls, key }) => ({
        session_id: id,
        is_known: known.has(key),
        unknown_call_ids: calls.filter((call) => decided.get(key)?.has(call) !== true),
      })),
    };
    for (const session of compared.sessions) {
      if (session.unknown_call_ids.length === 0) continue;
      const outcome = await options.record(toUngated(named, session, origin));
      if (outcome.kind === "tenant_unknown") throw new Fault("TENANT_UNKNOWN");
      if (outcome.kind === "failed") throw new Fault(outcome.code);
    }
    return reply.send(compared);
  });
}

/** Sessions with any decision, and of the named calls those with one; each found by an index, however long its session is. */
async function findDecided(
  database: Database,
  tenantId: string,
  asked: readonly { readonly key: string; readonly calls: readonly string[] }[],
): Promise<{ readonly known: ReadonlySet<string>; readonly decided: ReadonlyMap<string, Set<string>> }> {
  const pairs = asked.flatMap(({ key, calls }) => calls.map((call) => ({ key, call })));
  const [sessions, calls] = await Promise.all([
    database.query<{ session: string }>(
      `SELECT a.session FROM unnest($1::uuid[]) AS a(session)
       WHERE EXISTS (SELECT FROM gate.decisions AS d WHERE d.session_key = a.session AND d.tenant_id = $2)`,
      [asked.map(({ key }) => key), tenantId],
    ),
    database.query<{ session: string; call: string }>(
      `SELECT a.session, a.call FROM unnest($1::uuid[], $2::text[]) AS a(session, call)
       WHERE EXISTS (SELECT FROM gate.decisions AS d
         WHERE d.session_key = a.session AND d.request ->> 'tool_call_id' = a.call AND d.tenant_id = $3)`,
      [pairs.map(({ key }) => key), pairs.map(({ call }) => call), tenantId],
    ),
  ]);
  const decided = new Map<string, Set<string>>();
  for (const { session, call } of calls.rows)
    decided.set(session, (decided.get(session) ?? new Set()).add(call));
  return { known: new Set(sessions.rows.map(({ session }) => session)), decided };
}

const namedCallsMax = 5;
const detailMaxChars = 512;

/** Nothing is known of what they did but that they ran. Told again it is the same: the note names the session alone. */
function toUngated(
  runtime: Runtime,
  { session_id: sessionId, is_known: isKnown, unknown_call_ids: calls }: ComparedSessions["sessions"][number],
  origin: HookOrigin,
): HookWork {
  const evidence = isKnown ? "result_without_decision" : "session_without_gate";
  const note = JSON.stringify({ runtime: runtime.kind, session_id: sessionId, found: evidence });
  const detail = isKnown
    ? `the client's own record of this session tells of tool calls that the gate was not asked about: ${calls.slice(0, namedCallsMax).join(", ")}`
    : `the client's own record of this session tells of ${String(calls.length)} tool calls, and the gate decided on none`;
  return {
    runtime,
    // A call of its own name: what is told once more is dropped.
    call: { sessionId, toolCallId: evidence, phase: "session_comparison" },
    raw: Buffer.from(note, "utf8"),
    dataClass: "confidential",
    request: null,
    observations: [
      {
        draft: draft(
          "agent.effect.ungated",
          { effect_class: "unknown", evidence, detail: detail.slice(0, detailMaxChars) },
          { execution: { session_id: sessionId, turn_id: null, tool_call_id: null } },
        ),
        causes: [],
      },
    ],
    ...origin,
  };
}
