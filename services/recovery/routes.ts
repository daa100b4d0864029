import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Caller } from "../platform/auth.ts";
import type { AccessTable, HttpRequest, HttpServer } from "../platform/http.ts";
import { notifyOutbox } from "../platform/outbox.ts";
import { bodyOf, callerOf, parseInput } from "../platform/route-input.ts";
import { archiveLetters } from "./archive-letters.ts";
import { endHolding, listEmissions } from "./emissions.ts";
import { listGaps, resumePartition } from "./gaps.ts";
import type { LetterFilter, Scope } from "./letter-filter.ts";
import { letterFilterFields, letterStates } from "./letter-filter.ts";
import { groupLetters, listLetters, loadLetter } from "./letter-rows.ts";
import { endParking, listParked } from "./publications.ts";
import type { RecoveryDeps } from "./recovery-deps.ts";
import { fabricTenant } from "./recovery-event.ts";
import { loadRedrives, planRedrive, requestRedrive } from "./request-redrive.ts";
import { resumeRedrives, stopRedrives } from "./stop-redrive.ts";

const readers = ["sre", "incident", "auditor", "admin"] as const;
const workers = ["sre", "admin"] as const;

/** Who may call what: no agent's token carries these roles. */
export const recoveryAccess = {
  "GET /v1/letters": readers,
  "GET /v1/letters/:id": readers,
  "POST /v1/letters/redrive": workers,
  "POST /v1/letters/archive": workers,
  "GET /v1/redrives": readers,
  "POST /v1/redrives/stop": workers,
  "POST /v1/redrives/resume": workers,
  "GET /v1/gaps": readers,
  "POST /v1/gaps/resume": workers,
  "GET /v1/emissions": readers,
  "POST /v1/emissions/release": workers,
  "POST /v1/emissions/drop": workers,
  "GET /v1/parked": readers,
  "POST /v1/parked/retry": workers,
  "POST /v1/parked/archive": workers,
} as const satisfies AccessTable;

const idsMax = 1_000;
const letterId = z.uuid();
const eventId = z.string().regex(/^evt_[0-9a-f-]{36}$/, "an event id");
const reason = z.string().trim().min(1).max(2_000);
const name = z.string().min(1).max(255);
const limit = z.coerce.number().int().min(1).max(1_000).default(100);
const flag = z.enum(["true", "false"]).transform((text) => text === "true");

const listSchema = z.strictObject({
  ...letterFilterFields,
  state: z.enum(letterStates).default("unsettled"),
  view: z.enum(["groups", "letters"]).default("groups"),
  limit,
});
const chosenFields = {
  filter: z.strictObject(letterFilterFields).default({}),
  ids: z.array(letterId).min(1).max(idsMax).optional(),
  reason,
};
const redriveSchema = z.strictObject({
  ...chosenFields,
  dry_run: z.boolean(),
  /** A second of it is what one batch takes. */
  per_second: z.number().int().min(1).max(10_000).default(100),
  beyond_limit: z.boolean().default(false),
});
const archiveSchema = z.strictObject({ ...chosenFields, dry_run: z.boolean() });
const redrivesSchema = z.strictObject({
  ids: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(letterId).min(1).max(50))
    .optional(),
  limit,
});
const chosenRedrives = {
  /** Absent: all that are open. */
  ids: z.array(letterId).min(1).max(50).optional(),
  reason,
};
const stopRedrivesSchema = z.strictObject({ ...chosenRedrives, gives_up: z.boolean().default(false) });
const resumeRedrivesSchema = z.strictObject(chosenRedrives);
const resumeSchema = z.strictObject({
  consumer: name,
  topic: name,
  partition: z.number().int().min(0).max(1_000_000),
  from: z.union([
    z.enum(["log_start", "log_end"]),
    z.strictObject({ offset: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER) }),
  ]),
  reason,
});
const emissionsSchema = z.strictObject({ consumer: name, reason });
const parkedSchema = z.strictObject({ archived: flag.default(false), limit });
const endParkingSchema = z.strictObject({ ids: z.array(eventId).min(1).max(idsMax), reason });

/** Adds the routes of the room; give `recoveryAccess` to the server. */
export function registerRecoveryRoutes(app: HttpServer, deps: RecoveryDeps): void {
  registerLetters(app, deps);

  app.get("/v1/gaps", async (request) => {
    operatorOf(request);
    return { gaps: (await listGaps(deps)).map(toWire) };
  });
  app.post("/v1/gaps/resume", async (request) => {
    const { subject } = operatorOf(request);
    const { from, reason: why, ...target } = parseInput(resumeSchema, bodyOf(request).json);
    const choice =
      typeof from === "string"
        ? ({ kind: from } as const)
        : ({ kind: "offset", offset: BigInt(from.offset) } as const);
    return toWire(await resumePartition(deps, target, choice, { by: subject, reason: why }));
  });

  app.get("/v1/emissions", async (request) => {
    operatorOf(request);
    return { emissions: (await listEmissions(deps)).map(toWire) };
  });
  for (const [verb, choice] of [
    ["release", "released"],
    ["drop", "dropped"],
  ] as const) {
    app.post(`/v1/emissions/${verb}`, async (request) => {
      const { subject } = operatorOf(request);
      const asked = parseInput(emissionsSchema, bodyOf(request).json);
      return toWire(await endHolding(deps, asked.consumer, choice, { by: subject, reason: asked.reason }));
    });
  }

  app.get("/v1/parked", async (request) => {
    operatorOf(request);
    return { parked: (await listParked(deps, parseInput(parkedSchema, request.query))).map(toWire) };
  });
  for (const [verb, choice] of [
    ["retry", "retried"],
    ["archive", "archived"],
  ] as const) {
    app.post(`/v1/parked/${verb}`, async (request) => {
      const { subject } = operatorOf(request);
      const asked = parseInput(endParkingSchema, bodyOf(request).json);
      return {
        events: await endParking(deps, asked.ids, choice, { by: subject, reason: asked.reason }),
      };
    });
  }
}

function registerLetters(app: HttpServer, deps: RecoveryDeps): void {
  const { database } = deps;
  app.get("/v1/letters", async (request) => {
    const scope = scopeOf(callerOf(request));
    const { state, view, limit: most, ...filter } = parseInput(listSchema, request.query);
    return view === "groups"
      ? { groups: (await groupLetters(database, filter, state, scope, most)).map(toWire) }
      : { letters: (await listLetters(database, filter, state, scope, most)).map(toWire) };
  });
  app.get<{ Params: { id: string } }>("/v1/letters/:id", async (request) => {
    const id = letterId.safeParse(request.params.id);
    if (!id.success) throw new Fault("LETTER_UNKNOWN");
    return toWire(await loadLetter(database, id.data, scopeOf(callerOf(request))));
  });

  app.post("/v1/letters/redrive", async (request, reply) => {
    const caller = callerOf(request);
    const asked = parseInput(redriveSchema, bodyOf(request).json);
    const wish = {
      filter: toFilter(asked),
      scope: scopeOf(caller),
      roles: caller.roles,
      beyondLimit: asked.beyond_limit,
    };
    if (asked.dry_run) return { groups: await planRedrive(database, wish), redrives: [] };
    const redrives = await requestRedrive(deps, wish, {
      by: caller.subject,
      reason: asked.reason,
      perSecond: asked.per_second,
    });
    notifyOutbox(database);
    return reply.code(202).send({ groups: [], redrives });
  });
  app.post("/v1/letters/archive", async (request) => {
    const caller = callerOf(request);
    const asked = parseInput(archiveSchema, bodyOf(request).json);
    const filter = toFilter(asked);
    const scope = scopeOf(caller);
    if (asked.dry_run) {
      const groups = await groupLetters(database, filter, "open", scope, idsMax);
      return { groups: groups.map(toWire), archived: 0 };
    }
    const archived = await archiveLetters(
      deps,
      { filter, scope, roles: caller.roles },
      { by: caller.subject, reason: asked.reason },
    );
    notifyOutbox(database);
    return { groups: [], archived };
  });
  app.get("/v1/redrives", async (request) => {
    const { ids, limit: most } = parseInput(redrivesSchema, request.query);
    const scope = scopeOf(callerOf(request));
    const found = await loadRedrives(database, { ...(ids === undefined ? {} : { ids }), scope, limit: most });
    return { redrives: found.map(toWire) };
  });
  app.post("/v1/redrives/stop", async (request) => {
    const caller = callerOf(request);
    const asked = parseInput(stopRedrivesSchema, bodyOf(request).json);
    const choice = { ids: asked.ids ?? null, scope: scopeOf(caller) };
    const how = { by: caller.subject, reason: asked.reason, givesUp: asked.gives_up };
    const redrives = await stopRedrives(deps, choice, how);
    notifyOutbox(database);
    return { redrives };
  });
  app.post("/v1/redrives/resume", async (request) => {
    const caller = callerOf(request);
    const asked = parseInput(resumeRedrivesSchema, bodyOf(request).json);
    const choice = { ids: asked.ids ?? null, scope: scopeOf(caller) };
    const redrives = await resumeRedrives(deps, choice, { by: caller.subject, reason: asked.reason });
    notifyOutbox(database);
    return { redrives };
  });
}

function toFilter(asked: {
  readonly filter: LetterFilter;
  readonly ids?: readonly string[] | undefined;
}): LetterFilter {
  return asked.ids === undefined ? asked.filter : { ...asked.filter, ids: asked.ids };
}

/** Whoever acts for the tenant `fabric` sees all letters, also of records that nobody could read; others see their own. */
function scopeOf({ tenantId }: Pick<Caller, "tenantId">): Scope {
  return tenantId === fabricTenant ? null : tenantId;
}

/** Partitions and the outbox are every tenant's: one of them must not move them for the others. */
function operatorOf(request: Pick<HttpRequest, "caller">): Caller {
  const caller = callerOf(request);
  if (caller.tenantId === fabricTenant) return caller;
  throw new Fault(
    "ROLE_MISSING",
    `it is every tenant's, so only somebody of the tenant \`${fabricTenant}\` may ask for it`,
  );
}

/** Rows as JSON: times as ISO text, offsets and counts as numbers. */
function toWire(row: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([key, value]: [string, unknown]) => [
      key,
      value instanceof Date ? value.toISOString() : typeof value === "bigint" ? Number(value) : value,
    ]),
  );
}
