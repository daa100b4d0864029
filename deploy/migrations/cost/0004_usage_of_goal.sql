-- A goal that is new to a day is counted from what it spent before: without this, over all that its tenant spent.
CREATE INDEX usage_of_goal ON usage (tenant_id, correlation_id, day);
