/** A month of a tenant as the ledger has it now. Amounts are millionths of the price list's currency. */
export interface BookedMonth {
  readonly period: string;
  readonly amount_micros: bigint;
  readonly calls: bigint;
  readonly unpriced_calls: bigint;
}

/** What was stated of a month when it was closed. */
export interface StatedMonth {
  readonly period: string;
  readonly amount_micros: bigint;
  readonly carried_micros: bigint;
}

/** What is stated of a month that is about to be closed. */
export interface MonthStatement extends StatedMonth {
  readonly calls: bigint;
  readonly unpriced_calls: bigint;
}

/**
 * The statement of a month: what is booked in it, and what came late for months that are closed and was carried by no
 * statement yet. So all statements together always come to what the ledger has of the closed months. A month that is older
 * than one that is closed carries nothing: what came late belongs to the newest.
 */
export function toStatement(
  period: string,
  booked: readonly BookedMonth[],
  stated: readonly StatedMonth[],
): MonthStatement {
  const now = new Map(booked.map((one) => [one.period, one]));
  const late = stated.reduce(
    (sum, one) => sum + (now.get(one.period)?.amount_micros ?? 0n) - one.amount_micros,
    0n,
  );
  const carried = stated.reduce((sum, one) => sum + one.carried_micros, 0n);
  const month = now.get(period);
  return {
    period,
    amount_micros: month?.amount_micros ?? 0n,
    carried_micros: isOutOfOrder(period, stated) ? 0n : late - carried,
    calls: month?.calls ?? 0n,
    unpriced_calls: month?.unpriced_calls ?? 0n,
  };
}

/** The oldest month before this one that has something booked and was not closed; null: none. Months are closed in order. */
export function findOpenBefore(
  period: string,
  booked: readonly BookedMonth[],
  stated: readonly StatedMonth[],
): string | null {
  const closed = new Set(stated.map((one) => one.period));
  const open = booked.map((one) => one.period).filter((one) => one < period && !closed.has(one));
  return open.sort()[0] ?? null;
}

/** Whether a newer month is closed. Only one in which something was booked late can still be closed then. */
export function isOutOfOrder(period: string, stated: readonly Pick<StatedMonth, "period">[]): boolean {
  return stated.some((one) => one.period > period);
}
