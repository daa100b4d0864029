-- What is reported of a call is compared with what was decided on it: found by the runtime's own name of the call.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE INDEX decisions_of_call ON decisions (session_key, (request ->> 'tool_call_id'));
