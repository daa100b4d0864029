CREATE OR REPLACE VIEW trace_deliveries WITH (security_invoker = true) AS
  SELECT tenant_id, correlation_id, span_id, event_id, event_type, destination AS topic, partition, kafka_offset,
    recorded_at, published_at, projected_at, batch_messages,
    (extract(epoch FROM published_at - recorded_at) * 1000)::bigint AS outbox_ms,
    (extract(epoch FROM projected_at - published_at) * 1000)::bigint AS consume_ms,
    received_at,
    (extract(epoch FROM received_at - published_at) * 1000)::bigint AS broker_ms
  FROM trace.deliveries;

COMMENT ON COLUMN trace_deliveries.received_at IS 'when the host took the record up; null when it did not tell';
COMMENT ON COLUMN trace_deliveries.broker_ms IS 'milliseconds from sending to being taken up; the rest of consume_ms is the consumer''s own';
