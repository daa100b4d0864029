-- How agents did: episodes with what people say of them, and their calls one by one.

CREATE VIEW eval_episodes WITH (security_invoker = true) AS
  SELECT e.episode_id, e.tenant_id, e.correlation_id, e.environment, e.runtime_kind, e.user_id, e.session_id, e.model,
    e.working_directory, e.goal, e.started_at, e.last_event_at, e.state, e.calls, e.allowed, e.denied, e.held, e.ungated,
    e.succeeded, e.failed, e.stumbles, e.recoveries, greatest(t.call_facts - 2000, 0) AS call_facts_beyond, t.events,
    t.prompts, t.subagents, t.model_calls, t.input_tokens, t.cached_input_tokens, t.output_tokens, t.cost_micros,
    e.steps
  FROM eval.episodes AS e JOIN eval.totals AS t USING (episode_id);

COMMENT ON VIEW eval_episodes IS 'one row per goal of a user: what was asked, what it came to, how it ended';
COMMENT ON COLUMN eval_episodes.episode_id IS 'epi_ and a UUIDv8 over tenant and correlation; the same in every rebuild';
COMMENT ON COLUMN eval_episodes.tenant_id IS 'tenant that the episode belongs to';
COMMENT ON COLUMN eval_episodes.correlation_id IS 'one goal of a user, across child agents';
COMMENT ON COLUMN eval_episodes.environment IS 'deployment environment of the agent';
COMMENT ON COLUMN eval_episodes.runtime_kind IS 'adapter of the runtime';
COMMENT ON COLUMN eval_episodes.user_id IS 'person who asked; null when unknown';
COMMENT ON COLUMN eval_episodes.session_id IS 'session that the episode began in';
COMMENT ON COLUMN eval_episodes.model IS 'model that the session began with, else of the first model call';
COMMENT ON COLUMN eval_episodes.working_directory IS 'folder that the session began in, else of the first call';
COMMENT ON COLUMN eval_episodes.goal IS 'masked beginning of the first prompt; null when none was seen';
COMMENT ON COLUMN eval_episodes.started_at IS 'when the first event was recorded';
COMMENT ON COLUMN eval_episodes.last_event_at IS 'when the last event was recorded';
COMMENT ON COLUMN eval_episodes.state IS 'completed, failed or interrupted as the last turn ended; open while a prompt has no end';
COMMENT ON COLUMN eval_episodes.calls IS 'calls of tools among the first 2,000 events about calls';
COMMENT ON COLUMN eval_episodes.allowed IS 'of those, let pass by the gate, rewritten ones included';
COMMENT ON COLUMN eval_episodes.denied IS 'of those, refused by the gate';
COMMENT ON COLUMN eval_episodes.held IS 'of those, last seen waiting for a person or a fact';
COMMENT ON COLUMN eval_episodes.ungated IS 'of those, run without a decision';
COMMENT ON COLUMN eval_episodes.succeeded IS 'of those, succeeded';
COMMENT ON COLUMN eval_episodes.failed IS 'of those, failed';
COMMENT ON COLUMN eval_episodes.stumbles IS 'of those, denied, refused at the runtime or failed';
COMMENT ON COLUMN eval_episodes.recoveries IS
  'stumbles that a later call made up for: of the same tool on the same resource, or allowed within the next 10 calls';
COMMENT ON COLUMN eval_episodes.call_facts_beyond IS 'events about calls past the first 2,000, which no call count has';
COMMENT ON COLUMN eval_episodes.events IS 'events of the episode that evaluation reads';
COMMENT ON COLUMN eval_episodes.prompts IS 'prompts handed to the agent';
COMMENT ON COLUMN eval_episodes.subagents IS 'child agents that began';
COMMENT ON COLUMN eval_episodes.model_calls IS 'model calls that ended';
COMMENT ON COLUMN eval_episodes.input_tokens IS 'tokens read, cached ones included';
COMMENT ON COLUMN eval_episodes.cached_input_tokens IS 'part of input_tokens';
COMMENT ON COLUMN eval_episodes.output_tokens IS 'tokens written';
COMMENT ON COLUMN eval_episodes.cost_micros IS 'millionths of the currency that runtimes report in; cost_calls has what was booked';
COMMENT ON COLUMN eval_episodes.steps IS 'the calls in order as JSON; eval_steps has them as rows';

CREATE VIEW eval_steps WITH (security_invoker = true) AS
  SELECT e.episode_id, e.tenant_id, s.number, s.at, s.tool, s.action, s.resource, s.effect_class, s.plan_digest, s.input,
    s.agent_id, s.decision, s.reason_code, s.outcome, s.duration_ms, s.refused, s.ungated, s.recovered_by
  FROM eval.episodes AS e CROSS JOIN LATERAL jsonb_to_recordset(e.steps) AS s(
    number integer, at timestamptz, tool text, action text, resource text, effect_class text, plan_digest text,
    input text, agent_id text, decision text, reason_code text, outcome text, duration_ms bigint, refused boolean,
    ungated boolean, recovered_by integer);

COMMENT ON VIEW eval_steps IS 'one row per call of an episode, in order';
COMMENT ON COLUMN eval_steps.episode_id IS 'episode that the call belongs to';
COMMENT ON COLUMN eval_steps.tenant_id IS 'tenant that the episode belongs to';
COMMENT ON COLUMN eval_steps.number IS 'place of the call in the episode, from 1';
COMMENT ON COLUMN eval_steps.at IS 'when the first event about the call was recorded';
COMMENT ON COLUMN eval_steps.tool IS 'tool in the fabric''s words';
COMMENT ON COLUMN eval_steps.action IS 'what the tool was to do';
COMMENT ON COLUMN eval_steps.resource IS 'masked resource that it was to be done to';
COMMENT ON COLUMN eval_steps.effect_class IS 'what the call does to the world: none, read, write, execute, network, spawn';
COMMENT ON COLUMN eval_steps.plan_digest IS 'sha256: and hex over the plan';
COMMENT ON COLUMN eval_steps.input IS 'masked beginning of the input';
COMMENT ON COLUMN eval_steps.agent_id IS 'agent that asked; null for the main agent';
COMMENT ON COLUMN eval_steps.decision IS 'last decision: allow, modify, deny, require_approval or defer; null when none was seen';
COMMENT ON COLUMN eval_steps.reason_code IS 'reason of the decision';
COMMENT ON COLUMN eval_steps.outcome IS 'succeeded, failed, interrupted or blocked; null when none was reported';
COMMENT ON COLUMN eval_steps.duration_ms IS 'how long the call took, where it was reported';
COMMENT ON COLUMN eval_steps.refused IS 'whether the runtime, or a person at it, refused the call';
COMMENT ON COLUMN eval_steps.ungated IS 'whether it ran without a decision';
COMMENT ON COLUMN eval_steps.recovered_by IS 'number of the later call that made up for it; null when none did';

CREATE VIEW eval_labels WITH (security_invoker = true) AS
  SELECT DISTINCT ON (l.tenant_id, l.episode_id, l.author) l.tenant_id, l.episode_id, l.author, l.label, l.score, l.note,
    l.labelled_at, l.recorded_at, EXISTS (
      SELECT 1 FROM eval.episodes AS e WHERE e.episode_id = l.episode_id AND e.tenant_id = l.tenant_id) AS is_attached
  FROM eval.labels AS l
  ORDER BY l.tenant_id, l.episode_id, l.author, l.recorded_at DESC, l.labelled_at DESC, l.event_id DESC;

COMMENT ON VIEW eval_labels IS 'each author''s last word on each episode';
COMMENT ON COLUMN eval_labels.tenant_id IS 'tenant that the label belongs to';
COMMENT ON COLUMN eval_labels.episode_id IS 'episode that was judged';
COMMENT ON COLUMN eval_labels.author IS 'who judged';
COMMENT ON COLUMN eval_labels.label IS 'the judgement, such as good, bad, safe or unsafe';
COMMENT ON COLUMN eval_labels.score IS '0 to 100, where one was given';
COMMENT ON COLUMN eval_labels.note IS 'masked words of the author';
COMMENT ON COLUMN eval_labels.labelled_at IS 'when the author judged';
COMMENT ON COLUMN eval_labels.recorded_at IS 'when the fabric recorded it: the last one counts';
COMMENT ON COLUMN eval_labels.is_attached IS 'whether the episode is known; a label may come before it';
