import { z } from "zod";

export const letterStates = ["unsettled", "open", "waiting", "redriven", "archived", "all"] as const;
export type LetterState = (typeof letterStates)[number];

const text = z.string().min(1).max(255);
const spanMs = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

/** Which letters are meant; what is left out is not asked about. */
export const letterFilterFields = {
  kind: z.enum(["quarantine", "dead"]).optional(),
  processor: text.optional(),
  topic: text.optional(),
  code: text.optional(),
  tenant: text.optional(),
  /** Age since the letter was buried. */
  older_than_ms: spanMs.optional(),
  newer_than_ms: spanMs.optional(),
};
export type LetterFilter = z.output<z.ZodObject<typeof letterFilterFields>> & {
  readonly ids?: readonly string[] | undefined;
};

/** Whose letters a person may see: one tenant's, or everybody's. */
export type Scope = string | null;

/** A filter as SQL over `host.letters AS l`, with the values of its parameters. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** Conditions of a filter; parameters begin behind `values`. */
export function toCondition(
  filter: LetterFilter,
  state: LetterState,
  scope: Scope,
  values: readonly unknown[] = [],
): Condition {
  const all = [...values];
  const parts: string[] = [stateSql[state]];
  const add = (sql: (parameter: string) => string, value: unknown): void => {
    if (value === undefined || value === null) return;
    all.push(value);
    parts.push(sql(`$${String(all.length)}`));
  };
  add((at) => `l.tenant_id = ${at}`, scope);
  add((at) => `l.id = ANY (${at}::uuid[])`, filter.ids);
  add((at) => `l.kind = ${at}`, filter.kind);
  add((at) => `l.processor = ${at}`, filter.processor);
  add((at) => `l.topic = ${at}`, filter.topic);
  add((at) => `l.code = ${at}`, filter.code);
  add((at) => `l.tenant_id = ${at}`, filter.tenant);
  const age = (sign: "<" | ">") => (at: string) =>
    `l.buried_at ${sign} clock_timestamp() - ${at} * interval '1 millisecond'`;
  add(age("<"), filter.older_than_ms);
  add(age(">"), filter.newer_than_ms);
  return { sql: parts.join(" AND "), values: all };
}

const unsettled = "l.redriven_at IS NULL AND l.archived_at IS NULL";
const stateSql: Readonly<Record<LetterState, string>> = {
  unsettled,
  open: `${unsettled} AND l.redrive_id IS NULL`,
  waiting: `${unsettled} AND l.redrive_id IS NOT NULL`,
  redriven: "l.redriven_at IS NOT NULL",
  archived: "l.archived_at IS NOT NULL",
  all: "true",
};

/** A filter in words, for the event that says what was asked for. */
export function toWords(filter: LetterFilter): string {
  const { ids, ...rest } = filter;
  const parts = Object.entries(rest).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} ${String(value)}`],
  );
  if (ids !== undefined) parts.push(`${String(ids.length)} named letter${ids.length === 1 ? "" : "s"}`);
  return parts.length === 0 ? "all" : parts.join(", ");
}
