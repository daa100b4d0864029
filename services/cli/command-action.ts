import { Fault } from "../../schemas/faults.ts";
import type { Common } from "./actions.ts";
import type { Report } from "./report.ts";

/** A command with its arguments, ready to run. */
export type Run = (common: Common) => Promise<Report>;

/** Makes commander's handler of a command: it runs, prints the report and keeps the exit code. */
export type Bind = (run: (...args: never[]) => Run) => (...args: unknown[]) => Promise<void>;

/** An option's whole number above 0. */
export function toCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new Fault("USAGE", `\`${text}\` is not a whole number above 0`);
  return count;
}
