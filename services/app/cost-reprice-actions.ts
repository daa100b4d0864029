import { toDecimal } from "../../processors/cost/money.ts";
import type { ModelPrice } from "../../processors/cost/prices.ts";
import { findPriceInHindsight, isListed } from "../../processors/cost/prices.ts";
import type { BookedCall } from "../../processors/cost/queries.ts";
import { loadUnpricedCalls, loadUnpricedModels } from "../../processors/cost/queries.ts";
import { repricedCause } from "../../processors/cost/usage-row.ts";
import { toTokenAmounts } from "../../processors/cost/words.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import type { Config } from "../platform/config.ts";
import type { Database } from "../platform/postgres.ts";
import { callDesk } from "./gate-client.ts";
import { loadCostSettings } from "./load-processors.ts";
import { operatorToken } from "./operator-token.ts";
import type { Place } from "./place.ts";

type WithAuditor = <T>(config: Config, work: (database: Database) => Promise<T>) => Promise<T>;

/** Calls that are read at once. */
const pageCalls = 1_000;

interface Priced {
  readonly call: BookedCall;
  readonly micros: bigint;
}

/** `fabric cost reprice`: calls of a price that came later, each booked once as a correction. */
export function repriceActions(
  place: Place,
  configOf: (common: Common) => Promise<Config>,
  withAuditor: WithAuditor,
  roleHint: string,
): Pick<Actions, "costReprice"> {
  return {
    async costReprice(common, { tenant, limit, dryRun, tokenFile }) {
      const config = await configOf(common);
      const { prices } = await loadCostSettings(config, place);
      const { priced, waiting } = await withAuditor(config, (database) =>
        findPriced(database, prices.models, { tenantId: tenant ?? null, limit }),
      );
      const tenants = new Set(priced.map(({ call }) => call.tenant_id));
      if (tenants.size > 1)
        throw new Fault("USAGE", `name a tenant with --tenant: ${[...tenants].join(", ")}`);
      const [tenantId] = tenants;
      if (!dryRun && tenantId !== undefined) {
        const token = await operatorToken(config, common, { roles: ["admin"], tokenFile, tenant: tenantId });
        for (const { call, micros } of priced) {
          common.signal.throwIfAborted();
          await callDesk(config, {
            method: "POST",
            path: "/v1/cost/corrections",
            token,
            roleHint,
            body: {
              // Named after the call: a second run, or two at once, book it once.
              correction_id: `reprice:${call.event_id}`,
              corrects_event_id: call.event_id,
              amount_micros: Number(micros),
              cause: repricedCause,
            },
          });
        }
      }
      const total = priced.reduce((sum, one) => sum + one.micros, 0n);
      const word = dryRun ? "would be booked" : "are booked";
      const more =
        priced.length < limit ? "" : `; ${String(limit)} at most are booked at once: run it again for more`;
      return {
        json: { repriced: priced.length, amount_micros: total, unpriced: waiting, dry_run: dryRun },
        text: `${String(priced.length)} calls ${word} with ${toDecimal(total)} USD; ${String(waiting)} are unpriced still${more}`,
      };
    },
  };
}

/**
 * The oldest calls that have a price in hindsight, and how many unpriced calls are left. Calls without one, however many,
 * stand in nobody's way: models that are on no list are not read, and the others are read page by page.
 */
async function findPriced(
  database: Database,
  prices: readonly ModelPrice[],
  question: { readonly tenantId: string | null; readonly limit: number },
): Promise<{ readonly priced: readonly Priced[]; readonly waiting: bigint }> {
  const { tenantId, limit } = question;
  const unpriced = await loadUnpricedModels(database, tenantId);
  const models = unpriced.flatMap(({ model }) => (model !== null && isListed(prices, model) ? [model] : []));
  const priced: Priced[] = [];
  let after: BookedCall | null = null;
  while (models.length > 0 && priced.length < limit) {
    const calls: readonly BookedCall[] = await loadUnpricedCalls(database, {
      tenantId,
      models,
      after,
      limit: pageCalls,
    });
    for (const call of calls) {
      const micros = toHindsight(call, prices);
      if (micros !== null && priced.length < limit) priced.push({ call, micros });
    }
    after = calls.at(-1) ?? null;
    if (calls.length < pageCalls) break;
  }
  const all = unpriced.reduce((sum, { calls }) => sum + calls, 0n);
  return { priced, waiting: all - BigInt(priced.length) };
}

/** What a call costs by the list as it is now; null without a price. */
function toHindsight(call: BookedCall, models: readonly ModelPrice[]): bigint | null {
  const price = findPriceInHindsight(models, call.model ?? "", call.recorded_at.getTime());
  if (price === null) return null;
  const amounts = toTokenAmounts(
    {
      uncached: call.uncached_input_tokens,
      cached: call.cached_input_tokens,
      written: call.cache_write_tokens,
      output: call.output_tokens,
    },
    price,
  );
  return amounts.uncached + amounts.cached + amounts.written + amounts.output;
}
