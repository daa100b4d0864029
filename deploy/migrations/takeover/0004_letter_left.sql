-- When a letter left the item that it was set aside into: kept with the burial, so that an item of very many letters is made
-- again from one scan. The same function of the letter's events whatever came first (store.ts).
ALTER TABLE letter_events ADD COLUMN left_at timestamptz;
UPDATE letter_events AS b SET left_at = least(
  (SELECT min(n.recorded_at) FROM letter_events AS n WHERE n.letter_id = b.letter_id AND n.kind = 'buried'
    AND (n.recorded_at, n.event_id) > (b.recorded_at, b.event_id)),
  (SELECT greatest(min(n.recorded_at), b.recorded_at) FROM letter_events AS n
    WHERE n.letter_id = b.letter_id AND n.kind = 'ended' HAVING count(*) > 0))
WHERE b.kind = 'buried';
