/**
 * `quantity` units at `rate` per `unit`, in the rate's own smallest unit: exact, then rounded half up. Each entry is
 * rounded by itself and never again, so that a sum of entries is the same in whatever order they are added.
 */
export function toAmount(quantity: bigint, rate: bigint, unit: bigint): bigint {
  return (2n * quantity * rate + unit) / (2n * unit);
}

/** Millionths as a decimal number with six digits behind the point. */
export function toDecimal(micros: bigint): string {
  const sign = micros < 0n ? "-" : "";
  const digits = (micros < 0n ? -micros : micros).toString().padStart(7, "0");
  return `${sign}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}
