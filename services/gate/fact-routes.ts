import { z } from "zod";
import type { Json } from "../../schemas/gate.ts";
import type { AccessTable, HttpServer, ReceivedBody } from "../platform/http.ts";
import type { Database } from "../platform/postgres.ts";
import { bodyOf, callerOf, parseInput } from "../platform/route-input.ts";
import { toJsonColumn } from "./store.ts";

/** Who may report what other services computed. */
export const factAccess = {
  "POST /v1/facts": ["reporter"],
} as const satisfies AccessTable;

const valueMaxBytes = 4_096;
/** A fact may be dated ahead by as much as two machines' clocks differ. */
const aheadMaxMs = 60_000;

const factSchema = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_.-]{0,127}$/, "a fact's name has the form `deploy.freeze`"),
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
 * Adds the route by which dated facts come in; give `factAccess` to the server. The newest of a name counts: an older one
 * that comes late changes nothing.
 */
export function registerFactRoutes(app: HttpServer, database: Database): void {
  app.post<{ Body: ReceivedBody }>("/v1/facts", async (request, reply) => {
    const caller = callerOf(request);
    const { name, value, at } = parseInput(factSchema, bodyOf(request).json, "body");
    const written = await database.query({
      name: "gate-report-fact",
      text: `INSERT INTO gate.dated_facts AS f (tenant_id, name, value, at, reported_by)
        SELECT $1, $2, $3::jsonb, $4::timestamptz, $5
        WHERE $4::timestamptz <= clock_timestamp() + $6::integer * interval '1 millisecond'
        ON CONFLICT (tenant_id, name) DO UPDATE
          SET value = excluded.value, at = excluded.at, reported_by = excluded.reported_by
          WHERE f.at <= excluded.at
        RETURNING 1`,
      values: [caller.tenantId, name, toJsonColumn(value as Json), at, caller.subject, aheadMaxMs],
    });
    return reply.code(written.rowCount === 0 ? 200 : 201).send({ name, at, is_newest: written.rowCount > 0 });
  });
}
