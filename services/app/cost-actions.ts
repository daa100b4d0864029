import { toAccount } from "../../processors/cost/account.ts";
import { toDecimal } from "../../processors/cost/money.ts";
import type { BudgetLine } from "../../processors/cost/budget-queries.ts";
import { loadBudgets } from "../../processors/cost/budget-queries.ts";
import type { BookedCall, CostDimension } from "../../processors/cost/queries.ts";
import { costDimensions, loadCostReport } from "../../processors/cost/queries.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import type { Screen } from "../cli/screen.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import type { Database } from "../platform/postgres.ts";
import { toReportPeriod } from "./cost-period.ts";
import { renderCostReport } from "./cost-text.ts";
import { monthActions } from "./cost-month-actions.ts";
import { repriceActions } from "./cost-reprice-actions.ts";
import { callDesk } from "./gate-client.ts";
import { loadCostSettings } from "./load-processors.ts";
import { operatorToken } from "./operator-token.ts";
import type { Place } from "./place.ts";
import { serviceDatabase } from "./wiring.ts";

type CostActions = Pick<
  Actions,
  "costReport" | "costBudgets" | "costCheck" | "costCorrect" | "costReprice" | "costClose" | "costMonths"
>;

const roleHint =
  "this needs the role admin of the tenant, which no agent's token has; `fabric tokens issue --role admin` makes such a token";

async function withAuditor<T>(config: Config, work: (database: Database) => Promise<T>): Promise<T> {
  const database = serviceDatabase(config, "auditor", { maxConnections: 1 });
  try {
    return await work(database);
  } finally {
    await database.end();
  }
}

/** `fabric cost …`: reading as the auditor, correcting over the desk's HTTP API, as a person. */
export function costActions(place: Place, configOf: (common: Common) => Promise<Config>): CostActions {
  return {
    async costReport(common, { by, period, tenant, limit }) {
      if (!isDimension(by))
        throw new Fault("USAGE", `\`${by}\` is no dimension; ${costDimensions.join(", ")} are`);
      const { fromDay, toDay, name } = toReportPeriod(period, systemClock.nowMs());
      const report = await withAuditor(await configOf(common), (database) =>
        loadCostReport(database, { by, fromDay, toDay, tenantId: tenant ?? null, limit }),
      );
      return {
        json: {
          by,
          period: { from: fromDay, to: toDay },
          tenant: tenant ?? null,
          currency: "USD",
          ...report,
        },
        text: renderCostReport(by, name, report, common.screen.columns),
      };
    },
    async costBudgets(common, { tenant }) {
      const day = new Date(systemClock.nowMs()).toISOString().slice(0, 10);
      const config = await configOf(common);
      const { budgets } = await loadCostSettings(config, place);
      const known = await withAuditor(config, (database) =>
        loadBudgets(database, { day, tenantId: tenant ?? null }),
      );
      // By the limits of the file as it is now: a limit that was changed holds before anything is spent again.
      const lines = known.map((line) => {
        const budget = budgets.find((one) => one.id === line.budget_id);
        return budget === undefined
          ? line
          : { ...line, soft_micros: budget.softMicros, hard_micros: budget.hardMicros };
      });
      const isOver = lines.some((one) => one.hard_micros !== null && one.spent_micros >= one.hard_micros);
      return { json: lines, text: renderBudgets(common.screen, lines), exit: isOver ? 1 : 0 };
    },
    async costCheck(common) {
      const { prices, budgets } = await loadCostSettings(await configOf(common), place);
      const counts = { models: prices.models.length, tools: prices.tools.length, budgets: budgets.length };
      return {
        json: counts,
        text: `${String(counts.models)} prices of models, ${String(counts.tools)} of tools, ${String(counts.budgets)} budgets: no fault`,
      };
    },
    async costCorrect(common, { event, account, amount, cause, id, tokenFile }) {
      if (!/^-?\d{1,15}$/.test(amount))
        throw new Fault("USAGE", `\`${amount}\` is no whole number of millionths`);
      if ((event === undefined) === (account === undefined))
        throw new Fault("USAGE", "give --event or --account");
      const config = await configOf(common);
      const token = await operatorToken(config, common, { roles: ["admin"], tokenFile });
      const done = await callDesk(config, {
        method: "POST",
        path: "/v1/cost/corrections",
        token,
        roleHint,
        body: {
          amount_micros: Number(amount),
          cause,
          ...(event === undefined ? { account } : { corrects_event_id: event }),
          ...(id === undefined ? {} : { correction_id: id }),
        },
      });
      return { json: done, text: `booked ${toDecimal(BigInt(amount))} USD; the ledger has it in a moment` };
    },
    ...monthActions(configOf, withAuditor, roleHint),
    ...repriceActions(place, configOf, withAuditor, roleHint),
  };
}

function isDimension(by: string): by is CostDimension {
  return (costDimensions as readonly string[]).includes(by);
}

/** The account of a correction of a call: the same dimensions that the call counts in. */
export function toCorrectionAccount(call: BookedCall): string {
  return toAccount({
    name: `spend:${call.kind}`,
    model: call.model,
    tool: call.tool,
    user: call.user_id,
    agent: call.agent_id,
    runtime: call.runtime_kind,
    environment: call.environment,
  });
}

function renderBudgets(screen: Screen, lines: readonly BudgetLine[]): string {
  if (lines.length === 0) return "nothing was spent in the periods that run";
  const show = (micros: bigint | null): string => (micros === null ? "" : toDecimal(micros));
  return toTable(
    ["BUDGET", "TENANT", "SCOPE", "OF", "PERIOD", "SPENT", "SOFT", "HARD", "STATE"],
    lines.map((one) => [
      one.budget_id,
      one.tenant_id,
      one.scope,
      one.scope_id,
      one.period,
      show(one.spent_micros),
      show(one.soft_micros),
      show(one.hard_micros),
      one.hard_micros !== null && one.spent_micros >= one.hard_micros
        ? "over hard"
        : one.soft_micros !== null && one.spent_micros >= one.soft_micros
          ? "over soft"
          : "",
    ]),
    screen.columns,
  );
}
