import type { Transaction } from "../kit/transaction.ts";
import { toEpisodesText } from "./episode-text.ts";
import type { Erasure } from "./erasure.ts";
import { addErasures, blank, holdTenants, isErased, loadErasedUntil } from "./erasure.ts";
import type { Fact } from "./fact.ts";
import type { Label } from "./label.ts";
import type { Link } from "./link.ts";

export type Change =
  | { readonly kind: "fact"; readonly row: Fact; readonly links: readonly Link[] }
  | { readonly kind: "label"; readonly row: Label }
  | { readonly kind: "erasure"; readonly row: Erasure };

/**
 * Adds to the ledgers, and judges the episodes that they touch anew: what a row says never depends on what came first.
 * INVARIANT: test/property/eval.test.ts "has equal tables whatever the order and the batches, with everything twice".
 */
export async function applyChanges(tx: Transaction, changes: readonly Change[]): Promise<void> {
  const told = {
    labels: changes.flatMap((one) => (one.kind === "label" ? [one.row] : [])),
    facts: changes.flatMap((one) => (one.kind === "fact" ? [one.row] : [])),
  };
  const erasures = changes.flatMap((one) => (one.kind === "erasure" ? [one.row] : []));
  const tenantIds = [...new Set([...told.labels, ...told.facts].map((one) => one.tenant_id))];
  if (erasures.length > 0) {
    await holdTenants(
      tx,
      erasures.map((one) => one.tenant_id),
      true,
    );
  }
  if (tenantIds.length > 0) await holdTenants(tx, tenantIds, false);
  const erasedUntil =
    tenantIds.length === 0 ? new Map<string, number>() : await loadErasedUntil(tx, tenantIds);
  const labels = told.labels.map((one) => (isErased(one, erasedUntil) ? { ...one, note: null } : one));
  const facts = told.facts.map((one) => (isErased(one, erasedUntil) ? { ...one, ...blank } : one));
  if (labels.length > 0) {
    await tx.query({
      name: "eval-add-labels",
      text: `INSERT INTO labels SELECT * FROM json_populate_recordset(NULL::labels, $1::json)
        ON CONFLICT (event_id) DO NOTHING`,
      values: [JSON.stringify(labels)],
    });
  }
  const touched = facts.length === 0 ? [] : await addFacts(tx, facts);
  if (touched.length > 0) {
    await addLinks(
      tx,
      changes.flatMap((one) => (one.kind === "fact" ? one.links : [])),
    );
  }
  const blanked = erasures.length === 0 ? [] : await addErasures(tx, erasures);
  const all = [...new Set([...touched, ...blanked])];
  for (let from = 0; from < all.length; from += judgedAtOnce) {
    await judgeEpisodes(tx, all.slice(from, from + judgedAtOnce));
  }
}

/** Episodes of one statement: a batch has fewer, an erasure may touch all that a tenant ever had. */
const judgedAtOnce = 2_000;

/**
 * Facts that are new, and their episodes. Each sum is a row that stays locked to the end of the transaction, taken in one
 * order: two batches of one episode come one after the other, and the second judges what both brought.
 */
async function addFacts(tx: Transaction, facts: readonly Fact[]): Promise<readonly string[]> {
  await holdModelCalls(tx, facts);
  const added = await tx.query<{ episode_id: string }>({
    name: "eval-add-facts",
    text: `WITH fresh AS (
        INSERT INTO facts SELECT * FROM json_populate_recordset(NULL::facts, $1::json)
        ON CONFLICT (event_id) DO NOTHING RETURNING *
      )
, touched AS (
        SELECT DISTINCT episode_id, model_call FROM fresh WHERE model_call IS NOT NULL
      ), known AS (
        -- The ledger as it was before this statement: what it inserts is not seen here.
        SELECT f.* FROM facts AS f JOIN touched USING (episode_id, model_call)
      ), moved AS (
        SELECT *, model_call IS NULL AS is_counted, 1 AS sign FROM fresh
        UNION ALL SELECT * FROM (SELECT DISTINCT ON (episode_id, model_call) *, NULL::boolean, 1
          FROM (SELECT * FROM known UNION ALL SELECT * FROM fresh WHERE model_call IS NOT NULL) AS a
          ORDER BY episode_id, model_call, ${toldMost}) AS later
        UNION ALL SELECT * FROM (SELECT DISTINCT ON (episode_id, model_call) *, NULL::boolean, -1 FROM known
          ORDER BY episode_id, model_call, ${toldMost}) AS earlier
      )
      INSERT INTO totals AS t (episode_id, tenant_id, events, call_facts, prompts, subagents, model_calls, input_tokens,
        cached_input_tokens, output_tokens, cost_micros)
      SELECT * FROM (
        SELECT episode_id, min(tenant_id), ${toSumsText("m.is_counted IS NOT NULL", "m.is_counted IS NOT FALSE", "m.sign")}
        FROM moved AS m GROUP BY episode_id
      ) AS s ORDER BY episode_id
      ON CONFLICT (episode_id) DO UPDATE SET events = t.events + EXCLUDED.events,
        call_facts = t.call_facts + EXCLUDED.call_facts, prompts = t.prompts + EXCLUDED.prompts,
        subagents = t.subagents + EXCLUDED.subagents, model_calls = t.model_calls + EXCLUDED.model_calls,
        input_tokens = t.input_tokens + EXCLUDED.input_tokens,
        cached_input_tokens = t.cached_input_tokens + EXCLUDED.cached_input_tokens,
        output_tokens = t.output_tokens + EXCLUDED.output_tokens, cost_micros = t.cost_micros + EXCLUDED.cost_micros
      RETURNING episode_id`,
    values: [JSON.stringify(facts)],
  });
  return added.rows.map((row) => row.episode_id);
}

/** Which report of a model call counts depends on all of them: batches of one episode that bring some see each other's. */
async function holdModelCalls(tx: Transaction, facts: readonly Fact[]): Promise<void> {
  const episodes = new Set(facts.flatMap((one) => (one.model_call === null ? [] : [one.episode_id])));
  if (episodes.size === 0) return;
  await tx.query({
    name: "eval-hold-model-calls",
    // 1702256993 names the class of these locks. In one order, so that two never wait for each other.
    text: `SELECT pg_advisory_xact_lock(1702256993, k.h)
      FROM (SELECT DISTINCT hashtext(current_schema() || '/' || id) AS h FROM unnest($1::text[]) AS id ORDER BY 1) AS k`,
    values: [[...episodes]],
  });
}

/** Of two reports of one model call the one that tells more counts, then the first. */
export const toldMost = `(coalesce(input_tokens, output_tokens) IS NULL), (cost_micros IS NULL), recorded_at, event_id`;

/**
 * Sums over facts, in the order of the columns of `totals`: all that `isFact` holds for, and of model calls those that
 * count.
 */
export function toSumsText(isFact: string, isCounted: string, sign: string): string {
  const sum = (column: string): string =>
    `coalesce(sum(${sign} * ${column}) FILTER (WHERE ${isCounted}), 0)::bigint AS ${column}`;
  return `count(*) FILTER (WHERE ${isFact}) AS events, count(call_key) FILTER (WHERE ${isFact}) AS call_facts,
  count(*) FILTER (WHERE ${isFact} AND kind = 'prompt') AS prompts,
  count(*) FILTER (WHERE ${isFact} AND kind = 'subagent') AS subagents,
  coalesce(sum(${sign}) FILTER (WHERE kind = 'model' AND ${isCounted}), 0)::bigint AS model_calls,
  ${["input_tokens", "cached_input_tokens", "output_tokens", "cost_micros"].map(sum).join(", ")}`;
}

async function addLinks(tx: Transaction, links: readonly Link[]): Promise<void> {
  if (links.length === 0) return;
  await tx.query({
    name: "eval-add-links",
    text: `INSERT INTO links AS l
      SELECT min(tenant_id), episode_id, link, min(first_seen_at)
      FROM json_populate_recordset(NULL::links, $1::json) GROUP BY episode_id, link ORDER BY episode_id, link
      ON CONFLICT (episode_id, link) DO UPDATE SET first_seen_at = EXCLUDED.first_seen_at
      WHERE EXCLUDED.first_seen_at < l.first_seen_at`,
    values: [JSON.stringify(links)],
  });
}

const judgedColumns = [
  ...["tenant_id", "correlation_id", "environment", "runtime_kind", "user_id", "session_id", "model"],
  ...[
    "working_directory",
    "goal",
    "started_at",
    "last_event_at",
    "state",
    "steps",
    "calls",
    "allowed",
    "denied",
  ],
  ...["held", "ungated", "succeeded", "failed", "stumbles", "recoveries"],
];

async function judgeEpisodes(tx: Transaction, episodeIds: readonly string[]): Promise<void> {
  await tx.query({
    name: "eval-judge-episodes",
    // What came out the same is not written again: the calls of a long episode are no small row.
    text: `INSERT INTO episodes AS e (episode_id, ${judgedColumns.join(", ")}) ${toEpisodesText("")}
      ON CONFLICT (episode_id) DO UPDATE SET ${judgedColumns.map((name) => `${name} = EXCLUDED.${name}`).join(", ")}
      WHERE (${judgedColumns.map((name) => `e.${name}`).join(", ")})
        IS DISTINCT FROM (${judgedColumns.map((name) => `EXCLUDED.${name}`).join(", ")})`,
    values: [episodeIds, "infinity"],
  });
}
