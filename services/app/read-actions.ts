import type { Actions, Common } from "../cli/actions.ts";
import type { TraceRow } from "../cli/trace-tree.ts";
import { renderTraceTree, toTraceTree } from "../cli/trace-tree.ts";
import { renderSpanTree } from "../cli/span-tree.ts";
import type { Config } from "../platform/config.ts";
import type { Database } from "../platform/postgres.ts";
import type { TraceTree } from "../../processors/trace/queries.ts";
import { toUuid } from "../platform/ids.ts";
import { serviceDatabase } from "./wiring.ts";
import { renderVerify } from "../audit/render-verify.ts";
import { loadWho } from "../../processors/audit/queries.ts";
import { findTraces, loadTraces } from "../../processors/trace/queries.ts";
import { renderWho } from "../../processors/audit/who.ts";
import { verifySnapshot } from "./verify-trail.ts";

/** `fabric trace` and `fabric audit …`: reading what was recorded, as the auditor. */
export function readActions(
  configOf: (common: Common) => Promise<Config>,
): Pick<Actions, "trace" | "auditVerify" | "auditWho"> {
  async function withAuditor<T>(
    common: Common,
    work: (database: Database, config: Config) => Promise<T>,
  ): Promise<T> {
    const config = await configOf(common);
    const database = serviceDatabase(config, "auditor", { maxConnections: 2 });
    try {
      return await work(database, config);
    } finally {
      await database.end();
    }
  }
  return {
    trace: (common, { id }) =>
      withAuditor(common, async (database) => {
        const trees = await loadSpanTrees(database, id);
        if (trees.length > 0) return { json: trees, text: trees.map(renderSpanTree).join("\n\n") };
        // Spans are there once their processor has caught up, for as long as they are kept; the trail always is.
        const rows = await loadTrace(database, id);
        if (rows.length === 0) {
          const text = `nothing is recorded under ${id}; give an event, correlation, session, tool call or decision id`;
          return { json: [], text, exit: 1 };
        }
        const forest = toTraceTree(rows);
        return { json: forest, text: renderTraceTree(forest) };
      }),
    auditVerify: (common, { tenant }) =>
      withAuditor(common, async (database, config) => {
        const report = await verifySnapshot(config, database, tenant);
        return { json: report, text: renderVerify(report), exit: report.exitCode };
      }),
    auditWho: (common, { toolCallId, tenant }) =>
      withAuditor(common, async (database) => {
        const report = await loadWho(database, toolCallId, tenant);
        return { json: report, text: renderWho(report), exit: report.found ? 0 : 1 };
      }),
  };
}

const eventUuid = /^evt_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Correlations of one id that are drawn: runtimes number their calls per session. */
const maxTrees = 20;

async function loadSpanTrees(database: Database, id: string): Promise<readonly TraceTree[]> {
  const fromTrail = await database.query<{ tenant_id: string; correlation_id: string }>(
    `SELECT DISTINCT tenant_id, correlation_id FROM (
      SELECT tenant_id, correlation_id FROM audit.trail WHERE event_id = $2::uuid UNION ALL
      SELECT tenant_id, correlation_id FROM audit.trail WHERE tool_call_id = $1) AS found LIMIT ${String(maxTrees)}`,
    [id, eventUuid.test(id) ? toUuid(id) : null],
  );
  const keys = new Map(
    [
      ...(await findTraces(database, id, maxTrees)),
      ...fromTrail.rows.map((row) => ({ tenantId: row.tenant_id, correlationId: row.correlation_id })),
    ].map((key) => [JSON.stringify(key), key]),
  );
  return loadTraces(database, [...keys.values()].slice(0, maxTrees));
}

/** Every event of the correlations that an id belongs to. */
async function loadTrace(database: Database, id: string): Promise<TraceRow[]> {
  const { rows } = await database.query<{
    event_id: string;
    causation_id: string | null;
    event_type: string;
    recorded_at: Date;
    decision: string | null;
    reason_code: string | null;
    tool: string | null;
    tool_call_id: string | null;
    agent_id: string | null;
  }>(
    `SELECT 'evt_' || event_id AS event_id, causation_id, event_type, recorded_at, decision, reason_code, tool, tool_call_id, agent_id
     FROM audit.trail
     WHERE correlation_id IN (
       SELECT $1 UNION
       SELECT correlation_id FROM audit.trail WHERE event_id = $2::uuid UNION
       SELECT correlation_id FROM audit.trail WHERE tool_call_id = $1 UNION
       SELECT correlation_id FROM audit.trail WHERE session_id = $1 UNION
       SELECT correlation_id FROM audit.trail WHERE decision_id = $1)
     ORDER BY recorded_at, event_id`,
    [id, eventUuid.test(id) ? toUuid(id) : null],
  );
  return rows.map((row) => ({
    eventId: row.event_id,
    causationId: row.causation_id,
    type: row.event_type,
    recordedAtMs: row.recorded_at.getTime(),
    about: [
      row.decision,
      row.reason_code,
      row.tool,
      row.tool_call_id,
      row.agent_id === null ? null : `agent ${row.agent_id}`,
    ]
      .filter((part) => part !== null)
      .join(" "),
  }));
}
