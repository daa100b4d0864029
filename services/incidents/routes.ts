import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { AccessTable, HttpServer, ReceivedBody } from "../platform/http.ts";
import { bodyOf, callerOf, parseInput } from "../platform/route-input.ts";
import { declareIncident } from "./declare-incident.ts";
import { liftIncident, resetTrip } from "./end-hold.ts";
import { toIncidentId, toTripId } from "./hold-events.ts";
import type { HoldRow } from "./hold-row.ts";
import { incidentScopes, listHolds } from "./hold-row.ts";
import type { IncidentDeps } from "./incident-deps.ts";

const readers = ["incident", "sre", "approver", "auditor", "admin"] as const;

/** Who may call what. Whoever freezes or frees is a person: no agent's token carries these roles. */
export const incidentAccess = {
  "GET /v1/incidents": readers,
  "POST /v1/incidents": ["incident"],
  "POST /v1/incidents/:id/lift": ["incident"],
  "GET /v1/breaker": readers,
  "POST /v1/breaker/:id/reset": ["incident", "sre"],
} as const satisfies AccessTable;

const reason = z.string().trim().min(1).max(2_000);
const declareSchema = z
  .strictObject({
    scope: z.enum(incidentScopes),
    scope_id: z.string().min(1).max(512).optional(),
    kind: z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,62}$/, "a kind is a lower case word")
      .default("freeze"),
    reason,
  })
  .refine(({ scope, scope_id }) => scope_id !== undefined || scope === "all" || scope === "tenant", {
    path: ["scope_id"],
    message: "name what is frozen",
  })
  .refine(({ scope, scope_id }) => scope !== "all" || scope_id === undefined, {
    path: ["scope_id"],
    message: "`all` has no name",
  });
const endSchema = z.strictObject({ reason });
const listSchema = z.object({
  state: z.enum(["open", "all"]).default("open"),
  limit: z.coerce.number().int().min(1).max(500).default(100),
});

/** Adds the routes by which people freeze and free; give `incidentAccess` to the server. */
export function registerIncidentRoutes(app: HttpServer, deps: IncidentDeps): void {
  app.get("/v1/incidents", async (request, reply) => {
    const { state, limit } = parseInput(listSchema, request.query);
    const { tenantId } = callerOf(request);
    const wanted = { source: "incident", onlyOpen: state === "open", limit } as const;
    const holds = await listHolds(deps.database, tenantId, wanted);
    return reply.send({ incidents: holds.map(toShownIncident) });
  });

  app.post<{ Body: ReceivedBody }>("/v1/incidents", async (request, reply) => {
    const body = parseInput(declareSchema, bodyOf(request).json);
    const { tenantId, subject } = callerOf(request);
    const hold = await declareIncident(deps, {
      tenantId,
      scope: body.scope,
      scopeId: body.scope_id ?? null,
      kind: body.kind,
      reason: body.reason,
      by: subject,
    });
    return reply.code(201).send(toShownIncident(hold));
  });

  app.post<{ Params: { id: string }; Body: ReceivedBody }>(
    "/v1/incidents/:id/lift",
    async (request, reply) => {
      const body = parseInput(endSchema, bodyOf(request).json);
      const { tenantId, subject } = callerOf(request);
      const holdId = toHoldId(request.params.id, "inc_");
      if (holdId === null) throw new Fault("INCIDENT_UNKNOWN");
      const hold = await liftIncident(deps, { tenantId, holdId, reason: body.reason, by: subject });
      return reply.send(toShownIncident(hold));
    },
  );

  app.get("/v1/breaker", async (request, reply) => {
    const { state, limit } = parseInput(listSchema, request.query);
    const { tenantId } = callerOf(request);
    const wanted = { source: "breaker", onlyOpen: state === "open", limit } as const;
    const holds = await listHolds(deps.database, tenantId, wanted);
    return reply.send({ trips: holds.map(toShownTrip) });
  });

  app.post<{ Params: { id: string }; Body: ReceivedBody }>(
    "/v1/breaker/:id/reset",
    async (request, reply) => {
      const body = parseInput(endSchema, bodyOf(request).json);
      const { tenantId, subject } = callerOf(request);
      const holdId = toHoldId(request.params.id, "trp_");
      if (holdId === null) throw new Fault("BREAKER_UNKNOWN");
      const hold = await resetTrip(deps, { tenantId, holdId, reason: body.reason, by: subject });
      return reply.send(toShownTrip(hold));
    },
  );
}

function toHoldId(text: string, prefix: string): string | null {
  const id = text.startsWith(prefix) ? text.slice(prefix.length) : "";
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id) ? id : null;
}

function toShownIncident(hold: HoldRow): object {
  return {
    id: toIncidentId(hold.holdId),
    kind: hold.kind,
    ...toShown(hold),
    declared_by: hold.declaredBy,
    declared_at: hold.declaredAt.toISOString(),
    lifted_at: hold.liftedAt?.toISOString() ?? null,
    lifted_by: hold.liftedBy,
    lift_reason: hold.liftReason,
  };
}

function toShownTrip(hold: HoldRow): object {
  return {
    id: toTripId(hold.holdId),
    measure: hold.kind,
    ...toShown(hold),
    evidence: hold.evidence,
    tripped_at: hold.declaredAt.toISOString(),
    resets_at: hold.until?.toISOString() ?? null,
    reset_at: hold.liftedAt?.toISOString() ?? null,
    reset_by: hold.liftedBy,
    reset_reason: hold.liftReason,
  };
}

function toShown({ tenantId, scope, scopeId, mode, reason: why, isOpen }: HoldRow): object {
  return { is_open: isOpen, mode, tenant: tenantId, scope, scope_id: scopeId, reason: why };
}
