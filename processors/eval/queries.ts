import type { Transaction } from "../kit/transaction.ts";
import { judgedCallFacts, toEpisodesText } from "./episode-text.ts";
import type { Step } from "./step.ts";
import { toldMost, toSumsText } from "./store.ts";

/** The tables of the processor with the order in which a dump of them is compared. */
export const dumpTables: readonly { readonly table: string; readonly orderBy: string }[] = [
  { table: "facts", orderBy: "event_id" },
  { table: "labels", orderBy: "event_id" },
  { table: "links", orderBy: "episode_id, link" },
  { table: "totals", orderBy: "episode_id" },
  { table: "episodes", orderBy: "episode_id" },
  { table: "erasures", orderBy: "event_id" },
];

/** What a dataset is cut from: facts, links and labels that were recorded up to a moment. */
export interface Cut {
  /** Null: every tenant. */
  readonly tenantId: string | null;
  /** UTC milliseconds, inclusive. */
  readonly untilMs: number;
}

/** What a person says of an episode: each author's last word. */
export interface StoredLabel {
  readonly author: string;
  readonly label: string;
  readonly score: number | null;
  readonly note: string | null;
  readonly labelled_at: string;
}

/** An episode as it was at the cut. */
export interface EpisodeRow {
  readonly episode_id: string;
  readonly tenant_id: string;
  readonly correlation_id: string;
  readonly environment: string;
  readonly runtime_kind: string;
  readonly user_id: string | null;
  readonly session_id: string | null;
  readonly model: string | null;
  readonly working_directory: string | null;
  readonly goal: string | null;
  readonly started_at: Date;
  readonly last_event_at: Date;
  readonly state: "completed" | "failed" | "interrupted" | "open";
  readonly steps: readonly Step[];
  readonly calls: number;
  readonly allowed: number;
  readonly denied: number;
  readonly held: number;
  readonly ungated: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly stumbles: number;
  readonly recoveries: number;
  readonly events: bigint;
  readonly prompts: bigint;
  readonly subagents: bigint;
  readonly model_calls: bigint;
  readonly input_tokens: bigint;
  readonly cached_input_tokens: bigint;
  readonly output_tokens: bigint;
  readonly cost_micros: bigint;
  /** Facts about calls past the first 2,000, which `steps` does not show. */
  readonly call_facts_beyond: bigint;
  readonly labels: readonly StoredLabel[];
}

/** Two episodes that share a link follow each other; `ordinal` is the place of an episode in the cut, from 0. */
export interface LinkedEpisode {
  readonly ordinal: number;
  readonly link: string;
}

const cutValues = (cut: Cut): readonly unknown[] => [cut.tenantId, new Date(cut.untilMs).toISOString()];

/** Episodes of a cut in the order in which they began; ids break ties. $1 tenant, $2 until. */
const orderedText = `
  SELECT tenant_id, episode_id, row_number() OVER (ORDER BY min(recorded_at), episode_id) - 1 AS ordinal
  FROM eval.facts WHERE ($1::text IS NULL OR tenant_id = $1) AND recorded_at <= $2
  GROUP BY tenant_id, episode_id`;

/** How many episodes a cut has. */
export async function countEpisodes(tx: Transaction, cut: Cut): Promise<number> {
  const found = await tx.query<{ count: bigint }>(
    `SELECT count(DISTINCT episode_id) AS count FROM eval.facts
      WHERE ($1::text IS NULL OR tenant_id = $1) AND recorded_at <= $2`,
    cutValues(cut),
  );
  return Number(found.rows[0]?.count ?? 0n);
}

/** Rows that are fetched from a cursor at once. */
const fetchedRows = 5_000;
/** An episode of 2,000 facts is half a megabyte: so many of them at once are still no burden. */
const pageEpisodes = 50;

async function* readCursor<R>(
  tx: Transaction,
  name: string,
  text: string,
  values: readonly unknown[],
  rowsAtOnce: number,
): AsyncGenerator<readonly R[]> {
  await tx.query(`DECLARE ${name} NO SCROLL CURSOR FOR ${text}`, values);
  for (;;) {
    const { rows } = await tx.query<R>(`FETCH ${String(rowsAtOnce)} FROM ${name}`);
    if (rows.length > 0) yield rows;
    if (rows.length < rowsAtOnce) break;
  }
  await tx.query(`CLOSE ${name}`);
}

/**
 * Every link of a cut, sorted, so that related episodes are neighbours. Two episodes of one user with the same first
 * prompt have the same goal, whatever its case and blanks. The transaction has to be one snapshot.
 */
export async function* readLinkedEpisodes(
  tx: Transaction,
  cut: Cut,
): AsyncGenerator<readonly LinkedEpisode[]> {
  const text = `
    WITH ordered AS MATERIALIZED (${orderedText}), linked AS (
      SELECT episode_id, tenant_id, link FROM eval.links
      WHERE ($1::text IS NULL OR tenant_id = $1) AND first_seen_at <= $2
      UNION ALL
      SELECT episode_id, tenant_id, concat_ws(E'\\x1f', 'goal', coalesce(user_id, ''),
        encode(sha256(convert_to(lower(btrim(regexp_replace(preview, '\\s+', ' ', 'g'))), 'UTF8')), 'hex'))
      FROM (
        SELECT DISTINCT ON (episode_id) episode_id, tenant_id, user_id, preview FROM eval.facts
        WHERE ($1::text IS NULL OR tenant_id = $1) AND recorded_at <= $2 AND kind = 'prompt'
        ORDER BY episode_id, recorded_at, event_id
      ) AS goals WHERE btrim(preview) <> ''
    )
    SELECT o.ordinal::integer AS ordinal, l.tenant_id || E'\\x1f' || l.link AS link
    FROM linked AS l JOIN ordered AS o USING (episode_id) ORDER BY l.tenant_id, l.link, o.ordinal`;
  yield* readCursor<LinkedEpisode>(tx, "eval_links", text, cutValues(cut), fetchedRows);
}

/** The episodes of a cut in their order, page by page. The transaction has to be one snapshot. */
export async function* readEpisodes(tx: Transaction, cut: Cut): AsyncGenerator<readonly EpisodeRow[]> {
  const text = `SELECT episode_id FROM (${orderedText}) AS o ORDER BY ordinal`;
  const pages = readCursor<{ episode_id: string }>(tx, "eval_episodes", text, cutValues(cut), pageEpisodes);
  for await (const page of pages) {
    const found = await tx.query<EpisodeRow>({
      name: "eval-read-episodes",
      text: episodesOfPageText,
      values: [page.map((one) => one.episode_id), new Date(cut.untilMs).toISOString()],
    });
    yield found.rows;
  }
}

/** $1 ids, $2 until; rows in the order of the ids. */
const episodesOfPageText = `
  SELECT e.*, s.events, s.prompts, s.subagents, s.model_calls, s.input_tokens, s.cached_input_tokens, s.output_tokens,
    s.cost_micros, greatest(s.call_facts - ${judgedCallFacts}, 0) AS call_facts_beyond,
    coalesce(l.labels, '[]') AS labels
  FROM (${toEpisodesText("eval.")}) AS e
  CROSS JOIN LATERAL (
    SELECT ${toSumsText("true", "f.is_counted", "1")} FROM (
      SELECT *, true AS is_counted FROM eval.facts
      WHERE episode_id = e.episode_id AND recorded_at <= $2 AND model_call IS NULL
      UNION ALL
      SELECT *, event_id = first_value(event_id) OVER (PARTITION BY model_call ORDER BY ${toldMost}) FROM eval.facts
      WHERE episode_id = e.episode_id AND recorded_at <= $2 AND model_call IS NOT NULL
    ) AS f
  ) AS s
  CROSS JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_object('author', author, 'label', label, 'score', score, 'note', note, 'labelled_at',
      to_char(labelled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY author) AS labels
    FROM (
      SELECT DISTINCT ON (author) * FROM eval.labels AS x
      WHERE x.tenant_id = e.tenant_id AND x.episode_id = e.episode_id AND x.recorded_at <= $2
      ORDER BY author, recorded_at DESC, labelled_at DESC, event_id DESC
    ) AS latest
  ) AS l
  ORDER BY array_position($1::text[], e.episode_id)`;

/** An episode in a list. */
export interface ListedEpisode {
  readonly episode_id: string;
  readonly tenant_id: string;
  readonly started_at: Date;
  readonly state: string;
  readonly calls: number;
  readonly denied: number;
  readonly failed: number;
  readonly stumbles: number;
  readonly recoveries: number;
  readonly goal: string | null;
  readonly labels: readonly string[];
}

/** The newest episodes; each author's last label, sorted. */
export async function listEpisodes(
  tx: Transaction,
  filter: { readonly tenantId: string | null; readonly state: string | null; readonly limit: number },
): Promise<readonly ListedEpisode[]> {
  const found = await tx.query<ListedEpisode>(
    `SELECT e.episode_id, e.tenant_id, e.started_at, e.state, e.calls, e.denied, e.failed, e.stumbles, e.recoveries,
        e.goal, ARRAY(SELECT latest.label FROM (
          SELECT DISTINCT ON (author) label FROM eval.labels AS x
          WHERE x.tenant_id = e.tenant_id AND x.episode_id = e.episode_id
          ORDER BY author, recorded_at DESC, labelled_at DESC, event_id DESC
        ) AS latest ORDER BY 1) AS labels
      FROM eval.episodes AS e
      WHERE ($1::text IS NULL OR e.tenant_id = $1) AND ($2::text IS NULL OR e.state = $2)
      ORDER BY e.started_at DESC, e.episode_id LIMIT $3`,
    [filter.tenantId, filter.state, filter.limit],
  );
  return found.rows;
}
