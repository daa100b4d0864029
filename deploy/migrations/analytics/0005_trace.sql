-- Where the time went: one row per span of a correlation's tree, and the way of each decision over the bus.

CREATE VIEW trace_goals WITH (security_invoker = true) AS
  SELECT tenant_id, correlation_id, first_at AS started_at, last_at AS last_event_at,
    (extract(epoch FROM last_at - first_at) * 1000)::bigint AS duration_ms, events,
    client_traceparent, cut_depth IS NOT NULL AS truncated
  FROM trace.traces;

COMMENT ON VIEW trace_goals IS 'one row per correlation: the root of its tree';
COMMENT ON COLUMN trace_goals.tenant_id IS 'tenant that the correlation belongs to';
COMMENT ON COLUMN trace_goals.correlation_id IS 'one goal of a user, across child agents and consumers';
COMMENT ON COLUMN trace_goals.started_at IS 'when its first event was recorded';
COMMENT ON COLUMN trace_goals.last_event_at IS 'when its last event was recorded';
COMMENT ON COLUMN trace_goals.duration_ms IS 'milliseconds between the two';
COMMENT ON COLUMN trace_goals.events IS 'events that the tree was made from';
COMMENT ON COLUMN trace_goals.client_traceparent IS 'trace of the client that the tree hangs in, as its earliest event names it; null when none does';
COMMENT ON COLUMN trace_goals.truncated IS 'whether the correlation has more spans than are kept';

CREATE VIEW trace_spans WITH (security_invoker = true) AS
  SELECT tenant_id, correlation_id, span_id, parent_id, topic AS kind, NOT is_real AS synthetic, started_at, ended_at,
    (extract(epoch FROM ended_at - started_at) * 1000)::bigint AS duration_ms, end_rank >= 2 AS ended, status, error_type,
    attributes ->> 'gen_ai.conversation.id' AS session_id,
    attributes ->> 'gen_ai.tool.name' AS tool,
    attributes ->> 'gen_ai.tool.call.id' AS tool_call_id,
    attributes ->> 'gen_ai.request.model' AS model,
    attributes ->> 'fabric.decision' AS decision,
    attributes ->> 'fabric.reason_code' AS reason_code,
    attributes ->> 'fabric.outcome' AS outcome,
    attributes
  FROM trace.spans;

COMMENT ON VIEW trace_spans IS 'one row per span, as the events told it; ends and parents that had to be supplied are so in exports alone';
COMMENT ON COLUMN trace_spans.tenant_id IS 'tenant that the span belongs to';
COMMENT ON COLUMN trace_spans.correlation_id IS 'tree that the span stands in';
COMMENT ON COLUMN trace_spans.span_id IS '16 hex digits, made from what the span is: the same in every rebuild and every export';
COMMENT ON COLUMN trace_spans.parent_id IS 'span above it; null when it hangs on the root';
COMMENT ON COLUMN trace_spans.kind IS 'session, turn, agent, call, model, decision, approval, capability, spend, revocation, effect, reconciliation, ungated, divergence or compaction';
COMMENT ON COLUMN trace_spans.synthetic IS 'true when no event of its own came: others name it';
COMMENT ON COLUMN trace_spans.started_at IS 'by our clock; null when no event told. A decision starts here with its own event: its intent is the call''s start';
COMMENT ON COLUMN trace_spans.ended_at IS 'by our clock; null when no event told';
COMMENT ON COLUMN trace_spans.duration_ms IS 'milliseconds between the two; null while one of them is';
COMMENT ON COLUMN trace_spans.ended IS 'whether its end is final; a refused call may be asked for once more';
COMMENT ON COLUMN trace_spans.status IS 'ok, error or unset; a refusal is no error';
COMMENT ON COLUMN trace_spans.error_type IS 'class of the error, of few values; null where there is none';
COMMENT ON COLUMN trace_spans.session_id IS 'session, for spans that name it';
COMMENT ON COLUMN trace_spans.tool IS 'tool of a call';
COMMENT ON COLUMN trace_spans.tool_call_id IS 'the runtime''s id of a call';
COMMENT ON COLUMN trace_spans.model IS 'model of a model call, or that a session began with';
COMMENT ON COLUMN trace_spans.decision IS 'allow, deny, require_approval, defer or modify, of a decision';
COMMENT ON COLUMN trace_spans.reason_code IS 'upper snake case reason of a decision';
COMMENT ON COLUMN trace_spans.outcome IS 'how a call, turn, agent, effect or approval ended';
COMMENT ON COLUMN trace_spans.attributes IS 'all attributes by their names in the semantic conventions; own ones begin with fabric.';

CREATE VIEW trace_deliveries WITH (security_invoker = true) AS
  SELECT tenant_id, correlation_id, span_id, event_id, event_type, destination AS topic, partition, kafka_offset,
    recorded_at, published_at, projected_at, batch_messages,
    (extract(epoch FROM published_at - recorded_at) * 1000)::bigint AS outbox_ms,
    (extract(epoch FROM projected_at - published_at) * 1000)::bigint AS consume_ms
  FROM trace.deliveries;

COMMENT ON VIEW trace_deliveries IS 'the way of each decision''s event: committed, sent, projected; of the run that projected it';
COMMENT ON COLUMN trace_deliveries.tenant_id IS 'tenant that the event belongs to';
COMMENT ON COLUMN trace_deliveries.correlation_id IS 'tree that the event belongs to';
COMMENT ON COLUMN trace_deliveries.span_id IS 'decision''s span';
COMMENT ON COLUMN trace_deliveries.event_id IS 'identity of the event; evt_ and this on the wire';
COMMENT ON COLUMN trace_deliveries.event_type IS 'type of the event';
COMMENT ON COLUMN trace_deliveries.topic IS 'topic that it was read from, prefix included';
COMMENT ON COLUMN trace_deliveries.partition IS 'partition of the topic';
COMMENT ON COLUMN trace_deliveries.kafka_offset IS 'offset in the partition';
COMMENT ON COLUMN trace_deliveries.recorded_at IS 'when it was committed to the outbox';
COMMENT ON COLUMN trace_deliveries.published_at IS 'when the relay sent it; null when the log did not tell';
COMMENT ON COLUMN trace_deliveries.projected_at IS 'when it was projected, by the database''s clock';
COMMENT ON COLUMN trace_deliveries.batch_messages IS 'messages of the batch that it was projected in';
COMMENT ON COLUMN trace_deliveries.outbox_ms IS 'milliseconds from commit to sending; below zero when two clocks disagree';
COMMENT ON COLUMN trace_deliveries.consume_ms IS 'milliseconds from sending to projection; below zero when two clocks disagree';
