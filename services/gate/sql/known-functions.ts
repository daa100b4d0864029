const names = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Functions of PostgreSQL that only compute or read rows. A function that no list names may do anything. */
export const harmlessFunctions = names(`
  abs acos acosd acosh age any_value array_agg array_append array_cat array_dims array_fill array_length array_lower
  array_ndims array_position array_positions array_prepend array_remove array_replace array_to_json array_to_string
  array_upper ascii asin asind asinh atan atan2 atan2d atand atanh avg bit_and bit_count bit_length bit_or bit_xor
  bool_and bool_or broadcast btrim cardinality cbrt ceil ceiling char_length character_length chr clock_timestamp
  coalesce col_description concat concat_ws convert convert_from convert_to corr cos cosd cosh cot cotd count
  covar_pop covar_samp cume_dist current_catalog current_database current_date current_query current_role
  current_schema current_schemas current_time current_timestamp current_user date date_add date_bin date_part
  date_subtract date_trunc daterange datetime decode degrees dense_rank div encode ends_with enum_first enum_last
  enum_range erf every exp extract factorial family first_value floor format format_type gcd generate_series
  generate_subscripts gen_random_uuid get_bit get_byte greatest group_concat grouping has_column_privilege
  has_database_privilege has_schema_privilege has_table_privilege host hostmask ifnull iif inet_client_addr
  inet_server_addr inet_server_port initcap instr int4range int8range isempty isfinite json_agg json_array
  json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each
  json_each_text json_extract json_extract_path json_extract_path_text json_object json_object_agg json_object_keys
  json_populate_record json_strip_nulls json_to_record json_to_recordset json_typeof jsonb_agg jsonb_array_elements
  jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
  jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_agg jsonb_object_keys
  jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_pretty
  jsonb_set jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof julianday justify_days justify_hours
  justify_interval lag last_value lcm lead least left length like_escape ln localtime localtimestamp log log10 lower
  lower_inc lower_inf lpad ltrim make_date make_interval make_time make_timestamp make_timestamptz masklen max md5 min
  mod mode multirange netmask network now ntile nth_value nullif num_nonnulls num_nulls numrange obj_description
  octet_length overlaps overlay parse_ident percent_rank percentile_cont percentile_disc pg_backend_pid
  pg_blocking_pids pg_client_encoding pg_column_size pg_conf_load_time pg_database_size pg_encoding_to_char
  pg_get_constraintdef pg_get_expr pg_get_functiondef pg_get_indexdef pg_get_keywords pg_get_ruledef
  pg_get_serial_sequence pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_indexes_size pg_is_in_recovery
  pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_my_temp_schema pg_postmaster_start_time pg_relation_size
  pg_size_bytes pg_size_pretty pg_table_is_visible pg_table_size pg_tablespace_size pg_total_relation_size pg_typeof
  phraseto_tsquery pi plainto_tsquery position pow power quote_ident quote_literal quote_nullable radians random
  range_agg range_merge rank regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace
  regexp_split_to_array regexp_split_to_table regexp_substr regr_count regr_intercept regr_slope repeat replace reverse
  right round row_number row_to_json rpad rtrim scale session_user setseed setweight sha224 sha256 sha384 sha512 sign
  sin sind sinh split_part sqrt starts_with statement_timestamp stddev stddev_pop stddev_samp strftime string_agg
  string_to_array string_to_table strip strpos substr substring sum tan tand tanh text timeofday timezone
  to_ascii to_char to_date to_hex to_json to_jsonb to_number to_regclass to_regnamespace to_regproc to_regtype
  to_timestamp to_tsquery to_tsvector total transaction_timestamp translate trim trim_array trim_scale trunc ts_headline
  ts_rank ts_rank_cd tsrange tstzrange typeof unicode unistr unixepoch unnest upper upper_inc upper_inf user
  var_pop var_samp variance version websearch_to_tsquery width_bucket xmlagg
`);

/** Functions of PostgreSQL that change rows, sessions or the server. */
export const writingFunctions = names(`
  lo_create lo_creat lo_from_bytea lo_import lo_put lo_truncate lo_unlink lo_export lowrite nextval setval pg_notify
  pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_all pg_advisory_xact_lock
  pg_try_advisory_lock pg_try_advisory_xact_lock pg_cancel_backend pg_terminate_backend pg_reload_conf pg_rotate_logfile
  pg_create_restore_point pg_switch_wal pg_backup_start pg_backup_stop pg_promote pg_wal_replay_pause
  pg_wal_replay_resume pg_create_physical_replication_slot pg_create_logical_replication_slot
  pg_drop_replication_slot pg_logical_emit_message pg_stat_reset pg_stat_reset_shared pg_stat_statements_reset
  pg_file_write pg_file_rename pg_file_unlink pg_log_backend_memory_contexts pg_export_snapshot txid_current
  pg_current_xact_id set_config
`);
