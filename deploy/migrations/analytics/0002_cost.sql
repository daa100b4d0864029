-- What things cost, by any dimension. Amounts are millionths of the price list's currency, days are UTC.

CREATE VIEW cost_calls WITH (security_invoker = true) AS
  SELECT event_id, tenant_id, recorded_at, day, kind, environment, runtime_kind, user_id, agent_id, session_id, turn_id,
    correlation_id, model, tool, outcome, price_state, price_pattern, price_valid_from, amount_micros,
    reported_micros, uncached_input_tokens + cached_input_tokens + cache_write_tokens AS input_tokens,
    uncached_input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, wall_ms,
    output_bytes, calls, fan_out, corrects_event_id, cause, author
  FROM cost.usage WHERE is_counted;

COMMENT ON VIEW cost_calls IS 'one row per call, child agent or correction that counts; two reports of one call are one row';
COMMENT ON COLUMN cost_calls.event_id IS 'event that the row was booked from, with its evt_ prefix';
COMMENT ON COLUMN cost_calls.tenant_id IS 'tenant that pays';
COMMENT ON COLUMN cost_calls.recorded_at IS 'when the fabric recorded it: prices and days go by this one';
COMMENT ON COLUMN cost_calls.day IS 'UTC day of recorded_at';
COMMENT ON COLUMN cost_calls.kind IS 'model, tool, subagent or correction';
COMMENT ON COLUMN cost_calls.environment IS 'deployment environment of the agent';
COMMENT ON COLUMN cost_calls.runtime_kind IS 'adapter of the runtime; fabric for a correction that names none';
COMMENT ON COLUMN cost_calls.user_id IS 'person on whose behalf; null when unknown';
COMMENT ON COLUMN cost_calls.agent_id IS 'agent that used it; null for the main agent of a session';
COMMENT ON COLUMN cost_calls.session_id IS 'session of the runtime';
COMMENT ON COLUMN cost_calls.turn_id IS 'turn within the session';
COMMENT ON COLUMN cost_calls.correlation_id IS 'one goal of a user, across child agents';
COMMENT ON COLUMN cost_calls.model IS 'model that was called; null for other kinds';
COMMENT ON COLUMN cost_calls.tool IS 'tool in the fabric''s words; null for other kinds';
COMMENT ON COLUMN cost_calls.outcome IS 'succeeded, failed, interrupted, blocked or unknown';
COMMENT ON COLUMN cost_calls.price_state IS 'listed: by the price list; reported: the source''s own claim, where the list has no price; unpriced: no price; unmeasured: no tokens told; free; correction';
COMMENT ON COLUMN cost_calls.price_pattern IS 'entry of the price list that was used';
COMMENT ON COLUMN cost_calls.price_valid_from IS 'since when that entry is valid';
COMMENT ON COLUMN cost_calls.amount_micros IS 'what it came to; a correction may be below 0';
COMMENT ON COLUMN cost_calls.reported_micros IS 'what the source said that it cost: compared, not trusted';
COMMENT ON COLUMN cost_calls.input_tokens IS 'all input, once: uncached, cached and cache-written';
COMMENT ON COLUMN cost_calls.uncached_input_tokens IS 'input that was neither read from nor written to a cache';
COMMENT ON COLUMN cost_calls.cached_input_tokens IS 'input read from a cache';
COMMENT ON COLUMN cost_calls.cache_write_tokens IS 'input written to a cache';
COMMENT ON COLUMN cost_calls.output_tokens IS 'all output, reasoning included';
COMMENT ON COLUMN cost_calls.reasoning_tokens IS 'part of output_tokens';
COMMENT ON COLUMN cost_calls.wall_ms IS 'milliseconds that it took';
COMMENT ON COLUMN cost_calls.output_bytes IS 'bytes of a tool''s result';
COMMENT ON COLUMN cost_calls.calls IS '1 for a call that ran';
COMMENT ON COLUMN cost_calls.fan_out IS '1 for a child agent that began';
COMMENT ON COLUMN cost_calls.corrects_event_id IS 'of a correction: the event whose entries it corrects';
COMMENT ON COLUMN cost_calls.cause IS 'of a correction: why';
COMMENT ON COLUMN cost_calls.author IS 'of a correction: who';

CREATE VIEW cost_by_day WITH (security_invoker = true) AS
  SELECT tenant_id, day, kind, environment, runtime_kind, user_id, agent_id, model, tool,
    sum(amount_micros) AS amount_micros,
    sum(reported_micros) AS reported_micros,
    sum(input_tokens) AS input_tokens,
    sum(uncached_input_tokens) AS uncached_input_tokens,
    sum(cached_input_tokens) AS cached_input_tokens,
    sum(cache_write_tokens) AS cache_write_tokens,
    sum(output_tokens) AS output_tokens,
    sum(reasoning_tokens) AS reasoning_tokens,
    sum(wall_ms) AS wall_ms,
    sum(output_bytes) AS output_bytes,
    sum(calls) AS calls,
    sum(fan_out) AS fan_out,
    count(*) FILTER (WHERE price_state = 'unpriced') AS unpriced_calls,
    count(*) FILTER (WHERE price_state = 'unmeasured') AS unmeasured_calls
  FROM analytics.cost_calls
  GROUP BY tenant_id, day, kind, environment, runtime_kind, user_id, agent_id, model, tool;

COMMENT ON VIEW cost_by_day IS 'cost and quantities per day and every dimension that a report is made by: add up the rest';
COMMENT ON COLUMN cost_by_day.tenant_id IS 'tenant that pays';
COMMENT ON COLUMN cost_by_day.day IS 'UTC day of recorded_at';
COMMENT ON COLUMN cost_by_day.kind IS 'model, tool, subagent or correction';
COMMENT ON COLUMN cost_by_day.environment IS 'deployment environment of the agent';
COMMENT ON COLUMN cost_by_day.runtime_kind IS 'adapter of the runtime; fabric for a correction that names none';
COMMENT ON COLUMN cost_by_day.user_id IS 'person on whose behalf; null when unknown';
COMMENT ON COLUMN cost_by_day.agent_id IS 'agent that used it; null for the main agent of a session';
COMMENT ON COLUMN cost_by_day.model IS 'model that was called; null for other kinds';
COMMENT ON COLUMN cost_by_day.tool IS 'tool in the fabric''s words; null for other kinds';
COMMENT ON COLUMN cost_by_day.amount_micros IS 'sum of what it came to, corrections included';
COMMENT ON COLUMN cost_by_day.reported_micros IS 'sum of what the sources said';
COMMENT ON COLUMN cost_by_day.input_tokens IS 'all input, once: uncached, cached and cache-written';
COMMENT ON COLUMN cost_by_day.uncached_input_tokens IS 'input that was neither read from nor written to a cache';
COMMENT ON COLUMN cost_by_day.cached_input_tokens IS 'input read from a cache';
COMMENT ON COLUMN cost_by_day.cache_write_tokens IS 'input written to a cache';
COMMENT ON COLUMN cost_by_day.output_tokens IS 'all output, reasoning included';
COMMENT ON COLUMN cost_by_day.reasoning_tokens IS 'part of output_tokens';
COMMENT ON COLUMN cost_by_day.wall_ms IS 'milliseconds, summed over calls that may have run at once';
COMMENT ON COLUMN cost_by_day.output_bytes IS 'bytes of tools'' results';
COMMENT ON COLUMN cost_by_day.calls IS 'calls that ran';
COMMENT ON COLUMN cost_by_day.fan_out IS 'child agents that began';
COMMENT ON COLUMN cost_by_day.unpriced_calls IS 'calls that the price list had no price for when they were booked';
COMMENT ON COLUMN cost_by_day.unmeasured_calls IS 'calls whose source told no tokens and no cost';

CREATE VIEW cost_entries WITH (security_invoker = true) AS
  SELECT e.event_id || '/' || e.line AS entry_id, e.event_id, e.line, u.tenant_id, u.day, e.account, e.amount_micros,
    u.corrects_event_id
  FROM cost.entries e JOIN cost.usage u ON u.event_id = e.event_id
  WHERE u.is_counted;

COMMENT ON VIEW cost_entries IS 'the double entry: what was spent is above 0, who asks for it is below, and each event adds up to 0';
COMMENT ON COLUMN cost_entries.entry_id IS 'identity of the entry: event and line';
COMMENT ON COLUMN cost_entries.event_id IS 'event that the entry was booked from';
COMMENT ON COLUMN cost_entries.line IS 'a fixed number per account class';
COMMENT ON COLUMN cost_entries.tenant_id IS 'tenant that pays';
COMMENT ON COLUMN cost_entries.day IS 'UTC day on which it was recorded';
COMMENT ON COLUMN cost_entries.account IS 'spend:… for what was spent; provider:…, tool:…, wall_time, network or corrections for the other side';
COMMENT ON COLUMN cost_entries.amount_micros IS 'above 0 a debit, below 0 a credit';
COMMENT ON COLUMN cost_entries.corrects_event_id IS 'of a correction: the event whose entries it corrects';

CREATE VIEW cost_unpriced WITH (security_invoker = true) AS
  SELECT tenant_id, day, model, price_state, count(*) AS calls, sum(input_tokens) AS input_tokens,
    sum(output_tokens) AS output_tokens
  FROM analytics.cost_calls c
  WHERE price_state IN ('unpriced', 'unmeasured') AND NOT EXISTS (
    SELECT FROM cost.usage r WHERE r.corrects_event_id = c.event_id AND r.tenant_id = c.tenant_id AND r.is_counted)
  GROUP BY tenant_id, day, model, price_state;

COMMENT ON VIEW cost_unpriced IS 'calls without a price that no entry has repriced, per model and day';
COMMENT ON COLUMN cost_unpriced.tenant_id IS 'tenant that will pay';
COMMENT ON COLUMN cost_unpriced.day IS 'UTC day';
COMMENT ON COLUMN cost_unpriced.model IS 'model without a price';
COMMENT ON COLUMN cost_unpriced.price_state IS 'unpriced: a price is missing; unmeasured: the tokens are';
COMMENT ON COLUMN cost_unpriced.calls IS 'calls that are booked with 0';
COMMENT ON COLUMN cost_unpriced.input_tokens IS 'all input of them';
COMMENT ON COLUMN cost_unpriced.output_tokens IS 'all output of them';

CREATE VIEW cost_differences WITH (security_invoker = true) AS
  SELECT tenant_id, day, model, count(*) AS calls, sum(amount_micros) AS listed_micros,
    sum(reported_micros) AS reported_micros, sum(reported_micros - amount_micros) AS difference_micros
  FROM analytics.cost_calls
  WHERE price_state = 'listed' AND reported_micros <> amount_micros
  GROUP BY tenant_id, day, model;

COMMENT ON VIEW cost_differences IS 'where the source''s own claim differs from the price list, per model and day';
COMMENT ON COLUMN cost_differences.tenant_id IS 'tenant that pays';
COMMENT ON COLUMN cost_differences.day IS 'UTC day';
COMMENT ON COLUMN cost_differences.model IS 'model that was called';
COMMENT ON COLUMN cost_differences.calls IS 'calls whose claim differs';
COMMENT ON COLUMN cost_differences.listed_micros IS 'by the price list: what counts';
COMMENT ON COLUMN cost_differences.reported_micros IS 'by the source';
COMMENT ON COLUMN cost_differences.difference_micros IS 'reported less listed';

CREATE VIEW cost_budgets WITH (security_invoker = true) AS
  SELECT budget_id, tenant_id, scope, scope_id, period, spent_micros, soft_micros, hard_micros,
    coalesce(spent_micros >= soft_micros, false) AS soft_crossed, coalesce(spent_micros >= hard_micros, false) AS hard_crossed
  FROM cost.budget_state;

COMMENT ON VIEW cost_budgets IS 'what each budget has spent in each period';
COMMENT ON COLUMN cost_budgets.budget_id IS 'budget, as the file of budgets names it';
COMMENT ON COLUMN cost_budgets.tenant_id IS 'tenant that spends';
COMMENT ON COLUMN cost_budgets.scope IS 'tenant, agent, user, model, tool or correlation';
COMMENT ON COLUMN cost_budgets.scope_id IS 'which one of them';
COMMENT ON COLUMN cost_budgets.period IS 'a UTC month such as 2026-11, or a day';
COMMENT ON COLUMN cost_budgets.spent_micros IS 'spent in the period';
COMMENT ON COLUMN cost_budgets.soft_micros IS 'limit that warns; null: none';
COMMENT ON COLUMN cost_budgets.hard_micros IS 'limit that the gate may refuse by; null: none';
COMMENT ON COLUMN cost_budgets.soft_crossed IS 'whether the soft limit is reached';
COMMENT ON COLUMN cost_budgets.hard_crossed IS 'whether the hard limit is reached';
