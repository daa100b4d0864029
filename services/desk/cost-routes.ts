import { z } from "zod";
import type { AccessTable, HttpServer, ReceivedBody } from "../platform/http.ts";
import { callerOf, parseInput } from "../platform/route-input.ts";
import type { LoadBookedMonths } from "./close-month.ts";
import { closeMonth } from "./close-month.ts";
import type { LoadCorrectedCall } from "./correct-cost.ts";
import { correctCost } from "./correct-cost.ts";
import type { DeskDeps } from "./desk-deps.ts";

/** Who may add to the ledger: money is the tenant's own administrator's. */
export const costAccess = {
  "POST /v1/cost/corrections": ["admin"],
  "POST /v1/cost/closings": ["admin"],
} as const satisfies AccessTable;

const correctionSchema = z
  .strictObject({
    correction_id: z
      .string()
      .regex(/^[\x21-\x7e]{1,128}$/, "printable characters without spaces")
      .optional(),
    corrects_event_id: z
      .string()
      .regex(/^evt_[0-9a-f-]{36}$/, "an event id")
      .optional(),
    account: z
      .string()
      .regex(/^spend[\x21-\x7e]{0,500}$/, "an account begins with `spend`")
      .optional(),
    amount_micros: z.number().int().min(Number.MIN_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER),
    cause: z.string().trim().min(1).max(2_000),
  })
  .refine((one) => (one.account === undefined) !== (one.corrects_event_id === undefined), {
    path: ["account"],
    message: "give corrects_event_id or account, and not both",
  });

const closingSchema = z.strictObject({
  period: z.string().regex(/^\d{4}-(0[1-9]|1[0-2])$/, "a month has the form 2026-11"),
  note: z.string().trim().min(1).max(2_000).optional(),
  dry_run: z.boolean().default(false),
});

/** Adds the routes by which people correct the ledger and close its months; give `costAccess` to the server. */
export function registerCostRoutes(
  app: HttpServer,
  deps: DeskDeps & {
    readonly loadCorrectedCall: LoadCorrectedCall;
    readonly loadBookedMonths: LoadBookedMonths;
  },
): void {
  app.post("/v1/cost/closings", async (request, reply) => {
    const caller = callerOf(request);
    const body = (request.body as ReceivedBody | undefined | null)?.json;
    const { period, note, dry_run: isDryRun } = parseInput(closingSchema, body);
    const { isNew, closed_at, ...stated } = await closeMonth(deps, {
      tenantId: caller.tenantId,
      period,
      note: note ?? null,
      by: caller.subject,
      isDryRun,
    });
    return reply.code(isNew && !isDryRun ? 201 : 200).send({
      ...stated,
      // Whole numbers of any size, as the ledger has them.
      amount_micros: stated.amount_micros.toString(),
      carried_micros: stated.carried_micros.toString(),
      calls: stated.calls.toString(),
      unpriced_calls: stated.unpriced_calls.toString(),
      closed_at: closed_at.toISOString(),
      is_new: isNew,
    });
  });

  app.post("/v1/cost/corrections", async (request, reply) => {
    const caller = callerOf(request);
    const body = (request.body as ReceivedBody | undefined | null)?.json;
    const { correction_id, corrects_event_id, account, amount_micros, cause } = parseInput(
      correctionSchema,
      body,
    );
    const done = await correctCost(deps, {
      tenantId: caller.tenantId,
      correctionId: correction_id ?? null,
      about:
        corrects_event_id === undefined ? { account: account ?? "spend" } : { eventId: corrects_event_id },
      amountMicros: BigInt(amount_micros),
      cause,
      by: caller.subject,
    });
    return reply.code(done.isNew ? 201 : 200).send({
      event_id: done.eventId,
      correction_id: done.correctionId,
      account: done.account,
      amount_micros,
      author: done.author,
      is_new: done.isNew,
    });
  });
}
