-- Two reports of one model call, such as one of a plugin and one of a shell hook, count once.
ALTER TABLE facts ADD COLUMN model_call text COLLATE "C";
COMMENT ON COLUMN facts.model_call IS 'facts of one model call of an episode share it; null where the runtime has no id for it';
CREATE INDEX facts_model_calls ON facts (episode_id, model_call) WHERE model_call IS NOT NULL;
