-- A trip that ended by its time and made room for the next one (`hold_trip`) has no reason until its reset was told: the
-- timer finds it by that, and must not read all that ever was for it.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE INDEX holds_untold ON holds (hold_id) WHERE source = 'breaker' AND lifted_by = 'time' AND lift_reason IS NULL;
