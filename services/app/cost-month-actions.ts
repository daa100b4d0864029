import { z } from "zod";
import type { MonthLine } from "../../processors/cost/closings.ts";
import { loadMonths } from "../../processors/cost/closings.ts";
import { toDecimal } from "../../processors/cost/money.ts";
import { Fault } from "../../schemas/faults.ts";
import type { Actions, Common } from "../cli/actions.ts";
import { toTable } from "../cli/report.ts";
import type { Config } from "../platform/config.ts";
import type { Database } from "../platform/postgres.ts";
import { callDesk } from "./gate-client.ts";
import { operatorToken } from "./operator-token.ts";

const closedSchema = z.object({
  period: z.string(),
  amount_micros: z.string(),
  carried_micros: z.string(),
  unpriced_calls: z.string(),
  closed_by: z.string(),
  closed_at: z.string(),
  is_new: z.boolean(),
});

type WithAuditor = <T>(config: Config, work: (database: Database) => Promise<T>) => Promise<T>;

/** `fabric cost months` and `close`. */
export function monthActions(
  configOf: (common: Common) => Promise<Config>,
  withAuditor: WithAuditor,
  roleHint: string,
): Pick<Actions, "costClose" | "costMonths"> {
  return {
    async costClose(common, { period, note, dryRun, tenant, tokenFile }) {
      if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(period))
        throw new Fault("USAGE", `\`${period}\` is no month; give one such as 2026-11`);
      const config = await configOf(common);
      const token = await operatorToken(config, common, {
        roles: ["admin"],
        tokenFile,
        ...(tenant === undefined ? {} : { tenant }),
      });
      const body = { period, dry_run: dryRun, ...(note === undefined ? {} : { note }) };
      const done = closedSchema.parse(
        await callDesk(config, { method: "POST", path: "/v1/cost/closings", token, roleHint, body }),
      );
      return { json: { ...done, dry_run: dryRun }, text: toText(done, dryRun) };
    },
    async costMonths(common, { tenant, limit }) {
      const months = await withAuditor(await configOf(common), (database) =>
        loadMonths(database, { tenantId: tenant ?? null, limit }),
      );
      return { json: months, text: renderMonths(months, common.screen.columns) };
    },
  };
}

function toText(done: z.output<typeof closedSchema>, dryRun: boolean): string {
  const carried = BigInt(done.carried_micros);
  const amount = `${toDecimal(BigInt(done.amount_micros))} USD${carried === 0n ? "" : `, and ${toDecimal(carried)} carried from months before`}`;
  const unpriced =
    done.unpriced_calls === "0" ? "" : `\n${done.unpriced_calls} calls of it have no price and count 0`;
  if (!done.is_new) return `${done.period} was closed by ${done.closed_by} with ${amount}${unpriced}`;
  return dryRun
    ? `${done.period} would be closed with ${amount}${unpriced}`
    : `${done.period} is closed with ${amount}${unpriced}`;
}

function renderMonths(months: readonly MonthLine[], columns?: number): string {
  if (months.length === 0) return "nothing was booked yet";
  const show = (micros: bigint | null): string => (micros === null ? "" : toDecimal(micros));
  return toTable(
    ["MONTH", "TENANT", "BOOKED", "STATED", "CARRIED", "LATE", "CLOSED", "BY"],
    months.map((one) => [
      one.period,
      one.tenant_id,
      show(one.booked_micros),
      show(one.stated_micros),
      one.carried_micros === 0n ? "" : show(one.carried_micros),
      one.late_micros === 0n ? "" : show(one.late_micros),
      one.closed_at?.toISOString().slice(0, 10) ?? "open",
      one.closed_by ?? "",
    ]),
    columns,
  );
}
