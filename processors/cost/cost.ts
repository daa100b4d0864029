import type { Envelope } from "../../schemas/envelope.ts";
import { draft } from "../../schemas/envelope.ts";
import type { Cause, Emission } from "../kit/emission.ts";
import { toCause } from "../kit/emission.ts";
import type { Processor } from "../kit/processor.ts";
import { defineProcessor } from "../kit/processor.ts";
import type { Crossing } from "./budget-store.ts";
import { addToBudgets } from "./budget-store.ts";
import type { Budget } from "./budgets.ts";
import { findBudgets } from "./budgets.ts";
import type { Closing } from "./closings.ts";
import { addClosings, toClosing } from "./closings.ts";
import type { PriceList } from "./prices.ts";
import { addCharges } from "./store.ts";
import { costTypes } from "./usage-row.ts";
import type { Charge } from "./words.ts";
import { toCharge } from "./words.ts";

/** What cost is given: people write it, and it is read once. */
export interface CostSettings {
  readonly prices: PriceList;
  readonly budgets: readonly Budget[];
}

interface BookedChange extends Charge {
  readonly kind: "charge";
  readonly from: Cause;
}

type CostChange = BookedChange | { readonly kind: "closing"; readonly closing: Closing };

/** The ledger of what agents use: every call in quantities and money, by every dimension that its event has. */
export function createCost({ prices, budgets }: CostSettings): Processor {
  return defineProcessor({
    name: "cost",
    topics: [...costTypes, "fabric.cost.closed"],
    emits: ["fabric.budget.crossed"],
    project: (event): CostChange[] => {
      if (isClosing(event)) return [{ kind: "closing", closing: toClosing(event) }];
      return [{ kind: "charge", ...toCharge(event, prices), from: toCause(event) }];
    },
    async apply(tx, changes) {
      const booked = changes.flatMap((one) => (one.kind === "charge" ? [one] : []));
      await addClosings(
        tx,
        changes.flatMap((one) => (one.kind === "closing" ? [one.closing] : [])),
      );
      if (booked.length === 0) return [];
      const movements = await addCharges(tx, booked);
      const crossings = await addToBudgets(tx, budgets, movements);
      return crossings.map((crossing) => toEmission(crossing, booked));
    },
  });
}

const isClosing = (event: Envelope): event is Envelope<"fabric.cost.closed"> =>
  event.type === "fabric.cost.closed";

/**
 * Names a passed limit: once per budget, scope, period and limit, whoever finds it first, the ledger by what was spent or the
 * watch by a limit that was lowered. A limit that was raised can be passed again.
 */
export function toCrossingKey(
  budgetId: string,
  scopeId: string,
  period: string,
  { kind, limitMicros }: Pick<Crossing, "kind" | "limitMicros">,
): string {
  return JSON.stringify([budgetId, scopeId, period, kind, limitMicros.toString()]);
}

function toEmission(crossing: Crossing, changes: readonly BookedChange[]): Emission<"fabric.budget.crossed"> {
  const { place, kind, limitMicros, spentMicros } = crossing;
  const { budget, scopeId, period, tenantId } = place;
  const isCause = ({ usage }: BookedChange): boolean =>
    usage.amount_micros !== 0n &&
    findBudgets([budget], usage).some(
      (one) => one.tenantId === tenantId && one.scopeId === scopeId && one.period === period,
    );
  const ofTenant = changes.filter(({ usage }) => usage.tenant_id === tenantId);
  const cause = (ofTenant.findLast(isCause) ?? ofTenant.at(-1))?.from;
  if (cause === undefined) throw new Error("a limit was passed by no event");
  return {
    dedupeKey: toCrossingKey(budget.id, scopeId, period, crossing),
    cause,
    draft: draft("fabric.budget.crossed", {
      budget_id: budget.id,
      scope: budget.scope,
      scope_id: scopeId,
      limit_kind: kind,
      limit_micros: limitMicros,
      spent_micros: spentMicros,
      period,
    }),
  };
}
