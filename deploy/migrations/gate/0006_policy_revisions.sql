-- Which policy decided, and since when. A decision names its revision; with the files kept here it can be made again.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE TABLE policy_revisions (
  -- As decisions name it: `policy@<date>.<n>+<first 12 of the digest>`.
  revision   text PRIMARY KEY CHECK (length(revision) BETWEEN 1 AND 200),
  name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
  -- What the bundle calls itself, without the digest. A name that was used once means these files for good.
  stated     text NOT NULL,
  digest     text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
  -- Path → text.
  files      jsonb NOT NULL CHECK (jsonb_typeof(files) = 'object'),
  created_at timestamptz NOT NULL,
  created_by text NOT NULL,
  UNIQUE (name, stated)
);

-- The newest row is the policy of this deployment: one for all tenants, which are data to it.
CREATE TABLE policy_activations (
  activation_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  revision          text NOT NULL REFERENCES policy_revisions,
  kind              text NOT NULL CHECK (kind IN ('bootstrap', 'activate', 'rollback')),
  previous_revision text REFERENCES policy_revisions,
  activated_at      timestamptz NOT NULL,
  activated_by      text NOT NULL,
  note              text CHECK (length(note) <= 1000)
);

-- INVARIANT: what a decision names stays what it was
-- (test/integration/policy-revisions.test.ts "keeps a stored revision from being changed or deleted").
CREATE FUNCTION keep_policy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is written once; store another revision instead', TG_TABLE_NAME;
END
$$;
REVOKE ALL ON FUNCTION keep_policy() FROM PUBLIC;
CREATE TRIGGER keep_revisions BEFORE UPDATE OR DELETE OR TRUNCATE ON policy_revisions
  FOR EACH STATEMENT EXECUTE FUNCTION keep_policy();
CREATE TRIGGER keep_activations BEFORE UPDATE OR DELETE OR TRUNCATE ON policy_activations
  FOR EACH STATEMENT EXECUTE FUNCTION keep_policy();

-- Activations are rare, so a NOTIFY inside the transaction costs nobody anything. Gates poll besides.
CREATE FUNCTION tell_activation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('policy', NEW.revision);
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION tell_activation() FROM PUBLIC;
CREATE TRIGGER tell_activation AFTER INSERT ON policy_activations FOR EACH ROW EXECUTE FUNCTION tell_activation();
