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
    const keys = sessions.map(({ session_id: id }) => toSessionKey(origin.tenantId, runtime, id));
    const found = await options.database.query<{ session_key: string; calls: readonly (string | null)[] }>(
      `SELECT session_key, array_agg(request ->> 'tool_call_id') AS calls FROM gate.decisions
       WHERE session_key = ANY ($1::uuid[]) AND tenant_id = $2 GROUP BY session_key`,
      [keys, origin.tenantId],
    );
    const decided = new Map(found.rows.map((row) => [row.session_key, new Set(row.calls)]));
    const compared: ComparedSessions = {
      sessions: sessions.map(({ session_id: id, call_ids: calls }, at) => {
        const known = decided.get(keys[at] ?? "");
        return {
          session_id: id,
          is_known: known !== undefined,
          unknown_call_ids: calls.filter((call) => known?.has(call) !== true),
        };
      }),
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
