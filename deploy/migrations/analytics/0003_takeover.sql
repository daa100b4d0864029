-- The queue of what waits for a person, and what people did with it.

CREATE VIEW takeover_items WITH (security_invoker = true) AS
  SELECT item_id, tenant_id, cause, cause_key, generation, state, title, occurrences, opened_at, last_seen_at, due_at,
    breached_at, closed_at IS NULL AND due_at <= now() AS overdue, assigned_to, lease_ends_at, notes, closed_at,
    closed_by, outcome, proposal, resolution_note,
    (extract(epoch FROM closed_at - opened_at) * 1000)::bigint AS open_ms, correlation_id, first_event_id
  FROM takeover.items;

COMMENT ON VIEW takeover_items IS 'one row per item of the takeover queue: what waits or waited for a person, and what came of it';
COMMENT ON COLUMN takeover_items.item_id IS 'the item, as fabric takeover show takes it';
COMMENT ON COLUMN takeover_items.tenant_id IS 'tenant that the item belongs to';
COMMENT ON COLUMN takeover_items.cause IS 'why it is there: deferred, gate_timeout, effect_unresolved, letter, effect_ungated, approval_expired, breaker, plan_diverged, adapter_unrecognized, gap or budget';
COMMENT ON COLUMN takeover_items.cause_key IS 'what makes two events the same item, such as a plan''s digest or an effect''s id';
COMMENT ON COLUMN takeover_items.generation IS 'from 1; one more each time that the cause came again after the item was closed';
COMMENT ON COLUMN takeover_items.state IS 'open, claimed (by the last event; the lease may be over), resolved by a person, or settled by an event';
COMMENT ON COLUMN takeover_items.title IS 'what it is about, in words';
COMMENT ON COLUMN takeover_items.occurrences IS 'events of this cause while the item was open';
COMMENT ON COLUMN takeover_items.opened_at IS 'when the first of them was recorded';
COMMENT ON COLUMN takeover_items.last_seen_at IS 'when the last of them was recorded';
COMMENT ON COLUMN takeover_items.due_at IS 'when it should be closed at the latest';
COMMENT ON COLUMN takeover_items.breached_at IS 'when it was announced that the item waits for too long; null when it was not';
COMMENT ON COLUMN takeover_items.overdue IS 'whether it waits past its due time right now';
COMMENT ON COLUMN takeover_items.assigned_to IS 'who took it or was given it last';
COMMENT ON COLUMN takeover_items.lease_ends_at IS 'until when the last claim holds; null after it was handed over';
COMMENT ON COLUMN takeover_items.notes IS 'how many notes people wrote';
COMMENT ON COLUMN takeover_items.closed_at IS 'when it was closed; null while it waits';
COMMENT ON COLUMN takeover_items.closed_by IS 'person who resolved it, or type of the event that settled it';
COMMENT ON COLUMN takeover_items.outcome IS 'no_action, approval_proposed, redrive_proposed, incident_proposed or fixed_elsewhere; null when no person resolved it';
COMMENT ON COLUMN takeover_items.proposal IS 'what the person proposed; nothing acts on it by itself';
COMMENT ON COLUMN takeover_items.resolution_note IS 'why, in the person''s words, or what settled it';
COMMENT ON COLUMN takeover_items.open_ms IS 'milliseconds from opened to closed; null while it waits';
COMMENT ON COLUMN takeover_items.correlation_id IS 'goal of the first event; joins with audit_trail';
COMMENT ON COLUMN takeover_items.first_event_id IS 'first event of the cause; joins with audit_trail.event_id';

CREATE VIEW takeover_deeds WITH (security_invoker = true) AS
  SELECT event_id, item_id, tenant_id, kind, recorded_at, person, assigned_to, lease_ends_at, note, outcome, proposal
  FROM takeover.item_events;

COMMENT ON VIEW takeover_deeds IS 'one row per claim, note, hand-over, resolution and breach of an item';
COMMENT ON COLUMN takeover_deeds.event_id IS 'event that tells of it; joins with audit_trail.event_id';
COMMENT ON COLUMN takeover_deeds.item_id IS 'item that it is about';
COMMENT ON COLUMN takeover_deeds.tenant_id IS 'tenant that the item belongs to';
COMMENT ON COLUMN takeover_deeds.kind IS 'claimed, noted, reassigned, resolved or breached';
COMMENT ON COLUMN takeover_deeds.recorded_at IS 'when, by the database''s clock';
COMMENT ON COLUMN takeover_deeds.person IS 'who did it; null for a breach';
COMMENT ON COLUMN takeover_deeds.assigned_to IS 'who had the item from then on, for a claim or a hand-over';
COMMENT ON COLUMN takeover_deeds.lease_ends_at IS 'until when the claim held';
COMMENT ON COLUMN takeover_deeds.note IS 'what was written down';
COMMENT ON COLUMN takeover_deeds.outcome IS 'how it was resolved';
COMMENT ON COLUMN takeover_deeds.proposal IS 'what was proposed';
