import { z } from "zod";
import type { Json } from "../../schemas/gate.ts";
import type { AccessTable, HttpServer, ReceivedBody } from "../platform/http.ts";
import { Fault } from "../../schemas/faults.ts";
import { budgetFactPrefix, budgetReporter } from "../platform/budget-reporter.ts";
import type { Database, Tx } from "../platform/postgres.ts";
import { bodyOf, callerOf, parseInput } from "../platform/route-input.ts";
import { toScopedName } from "./fact-sets.ts";
import { factScopes } from "./policy/policy.ts";
import { toJsonColumn } from "./store.ts";

/** Who may report what other services computed. */
export const factAccess = {
  "POST /v1/facts": ["reporter"],
  "POST /v1/facts/sets": ["reporter"],
} as const satisfies AccessTable;

const valueMaxBytes = 4_096;
/** A fact may be dated ahead by as much as two machines' clocks differ. */
const aheadMaxMs = 60_000;

/** Scopes that one set names: what a megabyte holds with ids of any length. */
const setMaxValues = 2_000;

const factName = z.string().regex(/^[a-z][a-z0-9_.-]{0,127}$/, "a fact's name has the form `deploy.freeze`");
const plainValue = z.union([z.string().max(256), z.number(), z.boolean()]);
const setSchema = z.strictObject({
  name: factName,
  at: z.iso.datetime({ offset: true }),
  by: z.enum(factScopes),
  otherwise: plainValue,
  values: z
    .array(
      z.strictObject({
        id: z
          .string()
          .min(1)
          .max(256)
          .regex(/^\P{Cc}+$/u, "an id holds no control characters"),
        value: plainValue,
      }),
    )
    .max(setMaxValues),
});
const factSchema = z.strictObject({
  name: factName,
  value: z
    .unknown()
    .refine((value) => value !== undefined, "a value is needed; null is one")
    .refine(
      (value) => JSON.stringify(value ?? null).length <= valueMaxBytes,
      "a value has 4,096 bytes at most",
    ),
  at: z.iso.datetime({ offset: true }),
});

/**
 * Adds the routes by which dated facts come in; give `factAccess` to the server. The newest of a name counts: an older one
 * that comes late changes nothing. A fact that is told by user, agent or tool comes as a whole set, which takes the place
 * of the one before.
 */
export function registerFactRoutes(app: HttpServer, database: Database): void {
  app.post<{ Body: ReceivedBody }>("/v1/facts", async (request, reply) => {
    const caller = callerOf(request);
    const fact = parseInput(factSchema, bodyOf(request).json, "body");
    refuseForeign(fact.name, caller.subject);
    const isNewest = await database.transaction(async (tx) => {
      const isTaken = await saveFact(tx, caller, { ...fact, value: fact.value as Json });
      // Rows of scopes belong to the value that is gone.
      if (isTaken) await deleteScopes(tx, caller.tenantId, fact.name, []);
      return isTaken;
    });
    return reply.code(isNewest ? 201 : 200).send({ name: fact.name, at: fact.at, is_newest: isNewest });
  });

  app.post<{ Body: ReceivedBody }>("/v1/facts/sets", async (request, reply) => {
    const caller = callerOf(request);
    const { name, at, by, otherwise, values } = parseInput(setSchema, bodyOf(request).json, "body");
    refuseForeign(name, caller.subject);
    const isNewest = await database.transaction(async (tx) => {
      // The fact's own row is held to the commit: of two sets of one name the second sees all that the first wrote.
      if (!(await saveFact(tx, caller, { name, at, value: { by, otherwise } }))) return false;
      const byName = new Map(values.map((one) => [toScopedName(name, one.id), one.value]));
      await deleteScopes(tx, caller.tenantId, name, [...byName.keys()]);
      await tx.query({
        name: "gate-report-scopes",
        text: `INSERT INTO gate.dated_facts AS f (tenant_id, name, value, at, reported_by)
          SELECT $1, s.name, s.value::jsonb, $4::timestamptz, $5 FROM unnest($2::text[], $3::text[]) AS s(name, value)
          ON CONFLICT (tenant_id, name) DO UPDATE
            SET value = excluded.value, at = excluded.at, reported_by = excluded.reported_by`,
        values: [
          caller.tenantId,
          [...byName.keys()],
          [...byName.values()].map((value) => JSON.stringify(value)),
          at,
          caller.subject,
        ],
      });
      return true;
    });
    return reply.code(isNewest ? 201 : 200).send({ name, at, is_newest: isNewest, scopes: values.length });
  });
}

/** How budgets stand is told by their watch alone, and the watch tells nothing else. */
function refuseForeign(name: string, subject: string): void {
  if (name.startsWith(budgetFactPrefix) === (subject === budgetReporter)) return;
  throw new Fault(
    "ROLE_MISSING",
    `facts that begin with \`${budgetFactPrefix}\` are told by \`${budgetReporter}\` alone, and it tells no others`,
  );
}

interface ReportedFact {
  readonly name: string;
  readonly value: Json;
  readonly at: string;
}

/** Whether the fact is the newest of its name, and stored now. */
async function saveFact(
  tx: Tx,
  { tenantId, subject }: { readonly tenantId: string; readonly subject: string },
  { name, value, at }: ReportedFact,
): Promise<boolean> {
  const written = await tx.query({
    name: "gate-report-fact",
    text: `INSERT INTO gate.dated_facts AS f (tenant_id, name, value, at, reported_by)
      SELECT $1, $2, $3::jsonb, $4::timestamptz, $5
      WHERE $4::timestamptz <= clock_timestamp() + $6::integer * interval '1 millisecond'
      ON CONFLICT (tenant_id, name) DO UPDATE
        SET value = excluded.value, at = excluded.at, reported_by = excluded.reported_by
        WHERE f.at <= excluded.at
      RETURNING 1`,
    values: [tenantId, name, toJsonColumn(value), at, subject, aheadMaxMs],
  });
  return written.rowCount > 0;
}

async function deleteScopes(tx: Tx, tenantId: string, name: string, kept: readonly string[]): Promise<void> {
  await tx.query({
    name: "gate-forget-scopes",
    text: `DELETE FROM gate.dated_facts WHERE tenant_id = $1 AND starts_with(name, $2) AND NOT name = ANY ($3::text[])`,
    values: [tenantId, toScopedName(name, ""), kept],
  });
}
