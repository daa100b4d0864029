-- question: On whose behalf was most spent, on which model, and how much of the input came from a cache?
-- param since date = '-infinity': first UTC day
-- param until date = 'infinity': day after the last one
-- param tenant text = '': one tenant; empty: every one that you may read
-- param limit bigint = '20': at most so many rows
-- column tenant_id: tenant that pays
-- column user_id: person; null when unknown
-- column model: model; null for tools and corrections
-- column amount: sum in the price list's currency
-- column calls: calls that ran
-- column output_tokens: all output
-- column cached_share: share of the input that was read from a cache
-- column unpriced_calls: calls that had no price when they were booked; what a repricing gave them is in the amount, and analytics.cost_unpriced has those that miss one still
SELECT tenant_id, user_id, model, round(sum(amount_micros) / 1000000.0, 2) AS amount, sum(calls)::bigint AS calls,
  sum(output_tokens)::bigint AS output_tokens,
  round(sum(cached_input_tokens) / nullif(sum(input_tokens), 0), 3) AS cached_share,
  sum(unpriced_calls)::bigint AS unpriced_calls
FROM analytics.cost_by_day
WHERE day >= (:'since')::date AND day < (:'until')::date AND tenant_id = coalesce(nullif(:'tenant', ''), tenant_id)
GROUP BY tenant_id, user_id, model
ORDER BY sum(amount_micros) DESC, calls DESC, tenant_id, user_id, model
LIMIT (:'limit')::bigint
