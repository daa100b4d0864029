-- Reading the guard and acting on it is one thing to a release: whoever has read it shares a lock up to the commit, and a
-- release takes the lock alone. Otherwise a batch that has read "held" would hold its events back after the release, and
-- nobody would ask for them again. A statement sees what was committed when it began, so the lock comes in one before.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Whether a processor's emissions are held back; true or false up to the end of the transaction.
CREATE FUNCTION emissions_held(for_processor text) RETURNS boolean
  LANGUAGE plpgsql SET search_path FROM CURRENT
  AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(current_schema() || ' emissions ' || for_processor, 0));
  RETURN EXISTS (SELECT FROM emission_guards WHERE processor = for_processor);
END $$;

-- Takes the guard of a processor away, and what was held back under it, oldest first.
CREATE FUNCTION take_held_emissions(for_processor text) RETURNS SETOF held_emissions
  LANGUAGE plpgsql SET search_path FROM CURRENT
  AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' emissions ' || for_processor, 0));
  DELETE FROM emission_guards WHERE processor = for_processor;
  RETURN QUERY WITH gone AS (DELETE FROM held_emissions WHERE processor = for_processor RETURNING *)
    SELECT * FROM gone ORDER BY id;
END $$;
