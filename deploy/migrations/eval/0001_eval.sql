-- Episodes of agents, for evaluation: one row per goal of a user. Facts and labels are ledgers that only grow; everything
-- else is made from them and can be thrown away and made again, in whatever order the ledgers were filled.

-- One row per event. Columns in the order in which the processor names them.
CREATE TABLE facts (
  event_id            uuid        PRIMARY KEY,
  episode_id          text        COLLATE "C" NOT NULL,
  tenant_id           text        COLLATE "C" NOT NULL,
  correlation_id      text        NOT NULL,
  kind                text        COLLATE "C" NOT NULL,
  recorded_at         timestamptz NOT NULL,
  environment         text        NOT NULL,
  runtime_kind        text        NOT NULL,
  user_id             text,
  agent_id            text,
  session_id          text,
  -- Facts of one call share it; null where the event is about no call.
  call_key            text        COLLATE "C",
  tool                text,
  action              text,
  resource            text,
  effect_class        text,
  plan_digest         text,
  decision            text,
  reason_code         text,
  outcome             text,
  duration_ms         bigint,
  -- Masked beginning of a prompt or of a call's input.
  preview             text,
  working_directory   text,
  model               text,
  input_tokens        bigint,
  cached_input_tokens bigint,
  output_tokens       bigint,
  cost_micros         bigint
);
-- The first or the last fact of a kind is one look at this index, however long the episode is.
CREATE INDEX facts_episode ON facts (episode_id, kind, recorded_at, event_id);
CREATE INDEX facts_calls ON facts (episode_id, recorded_at, event_id) WHERE call_key IS NOT NULL;

-- What people said of episodes; also of such as are not there (yet).
CREATE TABLE labels (
  event_id    uuid        PRIMARY KEY,
  tenant_id   text        COLLATE "C" NOT NULL,
  episode_id  text        COLLATE "C" NOT NULL,
  author      text        COLLATE "C" NOT NULL,
  label       text        NOT NULL,
  score       integer,
  note        text,
  labelled_at timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL
);
CREATE INDEX labels_episode ON labels (tenant_id, episode_id, author, recorded_at);

-- What makes episodes related: two that have a link in common must not be on both sides of a split.
CREATE TABLE links (
  tenant_id     text        COLLATE "C" NOT NULL,
  episode_id    text        COLLATE "C" NOT NULL,
  link          text        COLLATE "C" NOT NULL,
  -- When the link was first seen, for cuts in time.
  first_seen_at timestamptz NOT NULL,
  PRIMARY KEY (episode_id, link)
);

-- Sums over all facts of an episode. Each fact is added when it comes into the ledger, and never again.
CREATE TABLE totals (
  episode_id          text   COLLATE "C" PRIMARY KEY,
  tenant_id           text   COLLATE "C" NOT NULL,
  events              bigint NOT NULL,
  call_facts          bigint NOT NULL,
  prompts             bigint NOT NULL,
  subagents           bigint NOT NULL,
  model_calls         bigint NOT NULL,
  input_tokens        bigint NOT NULL,
  cached_input_tokens bigint NOT NULL,
  output_tokens       bigint NOT NULL,
  cost_micros         bigint NOT NULL
);

-- What was judged from the ledger. Calls are read from the first 2,000 facts about calls, so that an episode of a million
-- events costs no more to judge than one of thousands; `totals.call_facts` says how many there are.
CREATE TABLE episodes (
  -- `epi_` and a UUIDv8 over tenant and correlation.
  episode_id        text        COLLATE "C" PRIMARY KEY,
  tenant_id         text        COLLATE "C" NOT NULL,
  correlation_id    text        NOT NULL,
  environment       text        NOT NULL,
  runtime_kind      text        NOT NULL,
  user_id           text,
  session_id        text,
  model             text,
  working_directory text,
  goal              text,
  started_at        timestamptz NOT NULL,
  last_event_at     timestamptz NOT NULL,
  state             text        NOT NULL CHECK (state IN ('completed', 'failed', 'interrupted', 'open')),
  steps             jsonb       NOT NULL,
  calls             integer     NOT NULL,
  allowed           integer     NOT NULL,
  denied            integer     NOT NULL,
  held              integer     NOT NULL,
  ungated           integer     NOT NULL,
  succeeded         integer     NOT NULL,
  failed            integer     NOT NULL,
  stumbles          integer     NOT NULL,
  recoveries        integer     NOT NULL
);
CREATE INDEX episodes_recent ON episodes (tenant_id, started_at);
