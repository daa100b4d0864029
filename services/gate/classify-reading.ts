import type { TouchedPath } from "./classified.ts";
import type { Climb, ParsedCommand } from "./shell/parsed-command.ts";

/** What of a call touches the world. */
export type Reading = {
  readonly named: readonly string[];
  readonly touched: readonly TouchedPath[];
  readonly command: ParsedCommand | null;
  readonly operandPaths: readonly string[];
  readonly signals: readonly string[];
  readonly excess: string | null;
  /** Touched paths that are spelled with a way up behind a name. */
  readonly climbs?: readonly Climb[];
};
/** A call that names nothing. */
export const nothingRead: Reading = {
  named: [],
  touched: [],
  command: null,
  operandPaths: [],
  signals: [],
  excess: null,
};

/** Each path once for each mode. */
export function toDistinct(touched: readonly TouchedPath[]): TouchedPath[] {
  return [...new Map(touched.map((one) => [`${one.mode} ${one.path}`, one])).values()];
}
