-- Months of the ledger, and what was stated of those that a person closed.

CREATE VIEW cost_months WITH (security_invoker = true) AS
  SELECT tenant_id, period, CASE WHEN c.closed_at IS NULL THEN 'open' ELSE 'closed' END AS state,
    coalesce(b.booked_micros, 0)::bigint AS booked_micros, c.amount_micros AS stated_micros, c.carried_micros,
    coalesce(b.booked_micros, 0)::bigint - c.amount_micros AS late_micros, c.calls AS stated_calls,
    c.unpriced_calls AS stated_unpriced_calls, c.closed_at, c.closed_by, c.note
  FROM (SELECT tenant_id, to_char(day, 'YYYY-MM') COLLATE "C" AS period, sum(amount_micros)::bigint AS booked_micros
    FROM cost.usage WHERE is_counted GROUP BY 1, 2) AS b
  FULL JOIN cost.closings AS c USING (tenant_id, period);

COMMENT ON VIEW cost_months IS 'one row per tenant and UTC month: what is booked, and what was stated when a person closed it';
COMMENT ON COLUMN cost_months.tenant_id IS 'tenant that pays';
COMMENT ON COLUMN cost_months.period IS 'a UTC month such as 2026-11';
COMMENT ON COLUMN cost_months.state IS 'open or closed';
COMMENT ON COLUMN cost_months.booked_micros IS 'what the ledger has for the month now, corrections that were recorded in it included';
COMMENT ON COLUMN cost_months.stated_micros IS 'what it had when the month was closed; null: open';
COMMENT ON COLUMN cost_months.carried_micros IS 'late amounts of months closed before, which this month''s statement took over; the sum of stated and carried is what is due';
COMMENT ON COLUMN cost_months.late_micros IS 'booked less stated: came after the closing, and is carried by a later statement';
COMMENT ON COLUMN cost_months.stated_calls IS 'calls that the statement counts';
COMMENT ON COLUMN cost_months.stated_unpriced_calls IS 'calls without a price when the month was closed';
COMMENT ON COLUMN cost_months.closed_at IS 'when it was closed; null: open';
COMMENT ON COLUMN cost_months.closed_by IS 'who closed it';
COMMENT ON COLUMN cost_months.note IS 'what was said to it';
