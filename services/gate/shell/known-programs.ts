import { isAgent } from "./environment-list.ts";
import { toKnownName } from "./full-words.ts";
import { intentRules } from "./intent-rules.ts";
import { hasName } from "./options.ts";
import type { Risk } from "./parsed-command.ts";
import { PROGRAM_TABLE } from "./program-table.ts";

/** What the gate's own tables say of a program by its name; null: nothing. */
export function toOwnRisk(name: string): Risk | null {
  const known = PROGRAM_TABLE.get(toKnownName(name))?.risk;
  const hasIntents = intentRules.some(({ programs }) => hasName(programs, name));
  if (known === undefined) return hasIntents || isAgent(name) ? "unknown" : null;
  return known === "plain" && hasIntents ? "unknown" : known;
}
