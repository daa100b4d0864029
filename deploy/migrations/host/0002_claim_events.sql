-- Claims events for a processor: the ids that nobody had claimed before, or null when all of them were new.
-- Almost always all are new. A plain insert then costs a third less than ON CONFLICT, which inserts each row twice over
-- to be able to take it back. A repeated id, or one that another partition claims in the same moment, ends the plain
-- attempt without a trace, and the careful one decides row by row. In order of ids, so that two that claim the same ones
-- wait for each other in one direction.
CREATE FUNCTION claim_events(for_processor text, ids uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
  fresh uuid[];
BEGIN
  INSERT INTO inbox (event_id, processor) SELECT id, for_processor FROM unnest(ids) AS id ORDER BY id;
  RETURN NULL;
EXCEPTION WHEN unique_violation THEN
  WITH claimed AS (
    INSERT INTO inbox (event_id, processor) SELECT id, for_processor FROM unnest(ids) AS id ORDER BY id
    ON CONFLICT DO NOTHING RETURNING event_id)
  SELECT coalesce(array_agg(event_id), '{}') INTO fresh FROM claimed;
  RETURN fresh;
END $$;
