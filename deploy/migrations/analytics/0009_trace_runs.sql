COMMENT ON COLUMN trace_spans.kind IS 'session, turn, agent, call, model, decision, approval, run, capability, spend, revocation, effect, reconciliation, ungated, divergence or compaction';
COMMENT ON COLUMN trace_spans.tool IS 'tool of a call, and of its run';
