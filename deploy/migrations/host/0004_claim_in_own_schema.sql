-- Between claim and commit the search path begins with the processor's schema; the function keeps to its own.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
ALTER FUNCTION claim_events(text, uuid[]) SET search_path FROM CURRENT;
