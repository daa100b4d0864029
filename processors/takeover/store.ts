import { draft } from "../../schemas/envelope.ts";
import type { Cause as Trigger, Emission } from "../kit/emission.ts";
import type { Transaction } from "../kit/transaction.ts";
import type { Cause } from "./causes.ts";
import type { Evidence } from "./evidence.ts";
import type { ItemEvent } from "./item-event.ts";
import type { LetterEvent } from "./letter-event.ts";

export type Change =
  | { readonly kind: "evidence"; readonly row: Evidence }
  | { readonly kind: "letter"; readonly row: LetterEvent }
  | { readonly kind: "deed"; readonly row: ItemEvent };

interface OpenedRow {
  readonly item_id: string;
  readonly cause: Cause;
  readonly cause_key: string;
  readonly title: string;
  readonly due_at: Date;
  readonly trigger: Trigger;
}

/**
 * Adds evidence and deeds to their ledgers, and makes the items that they touch anew from the ledgers: what an item says
 * never depends on what came first. New items are announced.
 * INVARIANT: test/integration/takeover.test.ts "gives equal tables whatever the order, with everything twice".
 */
export async function applyChanges(
  tx: Transaction,
  changes: readonly Change[],
): Promise<readonly Emission<"fabric.takeover.opened">[]> {
  const evidence = changes.flatMap((one) => (one.kind === "evidence" ? [one.row] : []));
  const letters = changes.flatMap((one) => (one.kind === "letter" ? [one.row] : []));
  const deeds = changes.flatMap((one) => (one.kind === "deed" ? [one.row] : []));
  if (evidence.length + letters.length + deeds.length === 0) return [];
  const touched = letters.length === 0 ? [] : await addLetters(tx, letters);
  await holdTenants(
    tx,
    [...evidence, ...touched, ...deeds].map(({ tenant_id }) => tenant_id),
  );
  if (evidence.length > 0) {
    await tx.query({
      name: "takeover-add-evidence",
      text: `INSERT INTO evidence SELECT * FROM json_populate_recordset(NULL::evidence, $1::json)
        ON CONFLICT (event_id) DO NOTHING`,
      values: [JSON.stringify(evidence)],
    });
  }
  if (deeds.length > 0) {
    await tx.query({
      name: "takeover-add-deeds",
      text: `INSERT INTO item_events SELECT * FROM json_populate_recordset(NULL::item_events, $1::json)
        ON CONFLICT (event_id) DO NOTHING`,
      values: [JSON.stringify(deeds)],
    });
  }
  const keys = [...evidence, ...touched.map((one) => ({ ...one, cause: "letter" as const }))];
  return (await makeItems(tx, keys, deeds)).map(toOpened);
}

interface LetterKey {
  readonly tenant_id: string;
  readonly cause_key: string;
}

/**
 * Adds what became of letters, and answers the keys of the items that they belong to. A letter may change its tenant and its
 * reason on its way: batches with letters come one after the other, before tenants are held, so that none misses another's.
 */
async function addLetters(tx: Transaction, letters: readonly LetterEvent[]): Promise<readonly LetterKey[]> {
  await tx.query("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' letters', 0))");
  await tx.query({
    name: "takeover-add-letters",
    text: `INSERT INTO letter_events SELECT * FROM json_populate_recordset(NULL::letter_events, $1::json)
      ON CONFLICT (event_id) DO NOTHING`,
    values: [JSON.stringify(letters)],
  });
  const letterIds = [...new Set(letters.map((one) => one.letter_id))];
  await tx.query({
    name: "takeover-letters-left",
    // A letter leaves an item when its way has ended, whatever the clocks say of when, or when it comes back: then it waits
    // where that burial belongs.
    text: `UPDATE letter_events AS b SET left_at = g.at
      FROM (SELECT o.event_id, least(
            (SELECT min(n.recorded_at) FROM letter_events AS n WHERE n.letter_id = o.letter_id AND n.kind = 'buried'
              AND (n.recorded_at, n.event_id) > (o.recorded_at, o.event_id)),
            (SELECT greatest(min(n.recorded_at), o.recorded_at) FROM letter_events AS n
              WHERE n.letter_id = o.letter_id AND n.kind = 'ended' HAVING count(*) > 0)) AS at
          FROM letter_events AS o WHERE o.letter_id = ANY ($1::text[]) AND o.kind = 'buried') AS g
      WHERE b.event_id = g.event_id AND b.left_at IS DISTINCT FROM g.at`,
    values: [letterIds],
  });
  const found = await tx.query<LetterKey>({
    name: "takeover-letter-keys",
    text: `SELECT DISTINCT b.tenant_id, b.cause_key FROM letter_events AS b
      WHERE b.letter_id = ANY ($1::text[]) AND b.kind = 'buried' ORDER BY 1, 2`,
    values: [letterIds],
  });
  return found.rows;
}

/** Two slices that touch one item each see what the other wrote: a tenant's queue changes in one transaction at a time. */
async function holdTenants(tx: Transaction, tenantIds: readonly string[]): Promise<void> {
  await tx.query({
    name: "takeover-hold-tenants",
    // 1952541541 = 'take' in ASCII: the class of these locks. In one order, so that two never wait for each other.
    // What follows costs milliseconds; compiling it, as its guessed size suggests, costs a second.
    text: `SELECT set_config('jit', 'off', true), pg_advisory_xact_lock(1952541541, t.h)
      FROM (SELECT DISTINCT hashtext(current_schema() || '/' || id) AS h FROM unnest($1::text[]) AS id ORDER BY 1) AS t`,
    values: [[...new Set(tenantIds)]],
  });
}

/** When the last of an item's letters was gone, of those that were set aside since it was opened. */
const lettersGoneText = `SELECT min(x.at) AS at FROM (
    SELECT p.at, sum(p.n) OVER (ORDER BY p.at) AS waiting
    FROM letter_events AS b CROSS JOIN LATERAL (VALUES (b.recorded_at, 1), (b.left_at, -1)) AS p(at, n)
    WHERE s.cause = 'letter' AND b.kind = 'buried' AND (b.tenant_id, b.cause_key) = (s.tenant_id, s.cause_key)
      AND b.recorded_at >= o.at AND p.at IS NOT NULL) AS x
  WHERE x.waiting = 0`;

/**
 * A span of a key is an item: from the first event after the span before, to the first word that closes it. More evidence
 * only ever adds spans, so no item that was announced goes away; but for letters, where one that comes late may show that
 * an item was not over, and that the one after it is the same.
 */
const makeItemsText = `
WITH RECURSIVE touched AS (
  SELECT k.tenant_id, k.cause, k.cause_key
  FROM unnest($1::text[], $2::text[], $3::text[]) AS k(tenant_id, cause, cause_key)
  UNION
  SELECT i.tenant_id, i.cause, i.cause_key
  FROM unnest($4::text[], $5::text[]) AS d(item_id, tenant_id) JOIN items AS i USING (item_id, tenant_id)
), spans AS (
  SELECT tenant_id, cause, cause_key, 0 AS generation, NULL::text AS item_id, NULL::timestamptz AS opened_at,
    '-infinity'::timestamptz AS closed_at
  FROM touched
  UNION ALL
  SELECT s.tenant_id, s.cause, s.cause_key, s.generation + 1, n.item_id, o.at,
    CASE WHEN r.at IS NOT NULL OR c.at IS NOT NULL OR l.at IS NOT NULL THEN greatest(o.at, least(r.at, c.at, l.at)) END
  FROM spans AS s
  CROSS JOIN LATERAL (
    SELECT 'tko_' || left(encode(sha256(convert_to(
      concat_ws(E'\\x1f', s.tenant_id, s.cause, s.cause_key, s.generation + 1), 'UTF8')), 'hex'), 32) AS item_id
  ) AS n
  CROSS JOIN LATERAL (
    SELECT min(e.recorded_at) AS at FROM evidence AS e
    WHERE (e.tenant_id, e.cause, e.cause_key, e.role) = (s.tenant_id, s.cause, s.cause_key, 'opens')
      AND e.recorded_at > s.closed_at
  ) AS o
  CROSS JOIN LATERAL (
    SELECT min(v.recorded_at) AS at FROM item_events AS v
    WHERE v.item_id = n.item_id AND v.tenant_id = s.tenant_id AND v.kind = 'resolved'
  ) AS r
  CROSS JOIN LATERAL (
    SELECT min(e.recorded_at) AS at FROM evidence AS e
    WHERE (e.tenant_id, e.cause, e.cause_key, e.role) = (s.tenant_id, s.cause, s.cause_key, 'closes')
      AND e.recorded_at >= o.at
  ) AS c
  CROSS JOIN LATERAL (${lettersGoneText}) AS l
  WHERE s.closed_at IS NOT NULL AND o.at IS NOT NULL
), written AS (
  INSERT INTO items AS i (item_id, tenant_id, cause, cause_key, generation, state, title, first_event_id,
    correlation_id, opened_at, last_seen_at, occurrences, due_at, assigned_to, lease_ends_at, notes, breached_at,
    closed_at, closed_by, outcome, proposal, resolution_note)
  SELECT s.item_id, s.tenant_id, s.cause, s.cause_key, s.generation,
    CASE WHEN r.person IS NOT NULL THEN 'resolved' WHEN s.closed_at IS NOT NULL THEN 'settled'
      WHEN h.assigned_to IS NOT NULL THEN 'claimed' ELSE 'open' END,
    f.title, f.event_id, f.correlation_id, s.opened_at, w.last_seen_at, w.occurrences,
    f.recorded_at + f.due_after_ms * interval '1 millisecond',
    h.assigned_to, h.lease_ends_at, d.notes, d.breached_at,
    s.closed_at, coalesce(r.person, c.event_type, l.event_type), r.outcome, r.proposal,
    coalesce(r.note, c.title, l.title)
  FROM spans AS s
  CROSS JOIN LATERAL (
    SELECT e.title, e.event_id, e.correlation_id, e.recorded_at, e.due_after_ms FROM evidence AS e
    WHERE (e.tenant_id, e.cause, e.cause_key, e.role) = (s.tenant_id, s.cause, s.cause_key, 'opens')
      AND e.recorded_at = s.opened_at
    ORDER BY e.event_id LIMIT 1
  ) AS f
  CROSS JOIN LATERAL (
    SELECT count(*) AS occurrences, max(e.recorded_at) AS last_seen_at FROM evidence AS e
    WHERE (e.tenant_id, e.cause, e.cause_key, e.role) = (s.tenant_id, s.cause, s.cause_key, 'opens')
      AND e.recorded_at >= s.opened_at AND e.recorded_at <= coalesce(s.closed_at, 'infinity')
  ) AS w
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE v.kind = 'noted')::integer AS notes,
      min(v.recorded_at) FILTER (WHERE v.kind = 'breached') AS breached_at
    FROM item_events AS v WHERE v.item_id = s.item_id AND v.tenant_id = s.tenant_id
  ) AS d
  LEFT JOIN LATERAL (
    SELECT v.assigned_to, v.lease_ends_at FROM item_events AS v
    WHERE v.item_id = s.item_id AND v.tenant_id = s.tenant_id AND v.assigned_to IS NOT NULL
    ORDER BY v.recorded_at DESC, v.event_id DESC LIMIT 1
  ) AS h ON true
  LEFT JOIN LATERAL (
    SELECT v.person, v.outcome, v.proposal, v.note FROM item_events AS v
    WHERE v.item_id = s.item_id AND v.tenant_id = s.tenant_id AND v.kind = 'resolved'
    ORDER BY v.recorded_at, v.event_id LIMIT 1
  ) AS r ON true
  LEFT JOIN LATERAL (
    SELECT e.event_type, e.title FROM evidence AS e
    WHERE r.person IS NULL
      AND (e.tenant_id, e.cause, e.cause_key, e.role) = (s.tenant_id, s.cause, s.cause_key, 'closes')
      AND e.recorded_at = s.closed_at
    ORDER BY e.event_id LIMIT 1
  ) AS c ON true
  LEFT JOIN LATERAL (
    SELECT n.event_type, n.title FROM letter_events AS b JOIN letter_events AS n USING (letter_id)
    WHERE r.person IS NULL AND s.cause = 'letter' AND b.kind = 'buried'
      AND (b.tenant_id, b.cause_key) = (s.tenant_id, s.cause_key)
      AND b.recorded_at BETWEEN s.opened_at AND s.closed_at AND n.recorded_at <= s.closed_at
      AND (n.kind = 'ended' OR (n.tenant_id, n.cause_key) <> (s.tenant_id, s.cause_key))
    ORDER BY n.kind = 'ended' DESC, n.recorded_at DESC, n.event_id LIMIT 1
  ) AS l ON true
  WHERE s.generation > 0
  ON CONFLICT (item_id) DO UPDATE SET state = EXCLUDED.state, title = EXCLUDED.title,
    first_event_id = EXCLUDED.first_event_id, correlation_id = EXCLUDED.correlation_id,
    opened_at = EXCLUDED.opened_at, last_seen_at = EXCLUDED.last_seen_at, occurrences = EXCLUDED.occurrences,
    due_at = EXCLUDED.due_at, assigned_to = EXCLUDED.assigned_to, lease_ends_at = EXCLUDED.lease_ends_at,
    notes = EXCLUDED.notes, breached_at = EXCLUDED.breached_at, closed_at = EXCLUDED.closed_at,
    closed_by = EXCLUDED.closed_by, outcome = EXCLUDED.outcome, proposal = EXCLUDED.proposal,
    resolution_note = EXCLUDED.resolution_note
  -- A row that this statement made has no earlier version.
  RETURNING i.item_id, i.cause, i.cause_key, i.title, i.due_at, i.first_event_id, i.xmax = 0 AS is_new
), gone AS (
  DELETE FROM items AS i USING (SELECT tenant_id, cause, cause_key, max(generation) AS last FROM spans GROUP BY 1, 2, 3) AS m
  WHERE (i.tenant_id, i.cause, i.cause_key) = (m.tenant_id, m.cause, m.cause_key) AND i.cause = 'letter'
    AND i.generation > m.last
)
SELECT w.item_id, w.cause, w.cause_key, w.title, w.due_at, e.trigger
FROM written AS w JOIN evidence AS e ON e.event_id = w.first_event_id
WHERE w.is_new ORDER BY w.item_id`;

async function makeItems(
  tx: Transaction,
  keys: readonly Pick<Evidence, "tenant_id" | "cause" | "cause_key">[],
  deeds: readonly ItemEvent[],
): Promise<readonly OpenedRow[]> {
  const found = await tx.query<OpenedRow>({
    name: "takeover-make-items",
    text: makeItemsText,
    values: [
      keys.map((one) => one.tenant_id),
      keys.map((one) => one.cause),
      keys.map((one) => one.cause_key),
      deeds.map((one) => one.item_id),
      deeds.map((one) => one.tenant_id),
    ],
  });
  return found.rows;
}

function toOpened(row: OpenedRow): Emission<"fabric.takeover.opened"> {
  const { item_id, cause, cause_key, title, trigger } = row;
  return {
    dedupeKey: item_id,
    cause: trigger,
    draft: draft("fabric.takeover.opened", {
      item_id,
      cause,
      cause_key,
      title,
      due_at: row.due_at.getTime(),
    }),
  };
}
