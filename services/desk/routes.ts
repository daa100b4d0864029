import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Role } from "../platform/auth.ts";
import type { AccessTable, HttpRequest, HttpServer, ReceivedBody } from "../platform/http.ts";
import { callerOf, parseInput } from "../platform/route-input.ts";
import type { DeskDeps } from "./desk-deps.ts";
import { eraseEpisodes } from "./erase-episodes.ts";
import { claimItem, noteItem, reassignItem, resolveItem } from "./item-commands.ts";
import type { Target } from "./item-commands.ts";
import type { LoadEvidence } from "./item-evidence.ts";
import type { ItemRow } from "./item-row.ts";
import { listItems, loadItem, queueStates } from "./item-row.ts";
import { labelEpisode } from "./label-episode.ts";

const readers = ["approver", "sre", "incident", "analyst", "auditor", "admin"] as const;
const workers = ["approver", "sre"] as const;

/** Who may call what. Whoever works on items is a person: no agent's token carries these roles. */
export const deskAccess = {
  "GET /v1/takeover": readers,
  "GET /v1/takeover/:id": readers,
  "POST /v1/takeover/:id/claim": workers,
  "POST /v1/takeover/:id/note": workers,
  "POST /v1/takeover/:id/reassign": workers,
  "POST /v1/takeover/:id/resolve": workers,
  "POST /v1/episodes/:id/label": ["analyst", "approver", "sre", "admin"],
  "POST /v1/episodes/erasures": ["admin"],
} as const satisfies AccessTable;

/** Who is told where raw payloads lie. Analysts ask about numbers, and get none. */
const referenceRoles: readonly Role[] = ["approver", "sre", "incident", "auditor", "admin"];

const text = (max: number) => z.string().trim().min(1).max(max);
const listSchema = z.strictObject({
  state: z.enum(queueStates).default("waiting"),
  limit: z.coerce.number().int().min(1).max(500).default(50),
});
const claimSchema = z.strictObject({});
const noteSchema = z.strictObject({ note: text(8_000) });
const reassignSchema = z.strictObject({
  to: text(128).regex(/^\P{Cc}+$/u, "a person's name holds no control characters"),
});
const outcomes = [
  "no_action",
  "approval_proposed",
  "redrive_proposed",
  "incident_proposed",
  "fixed_elsewhere",
] as const;
const resolveSchema = z
  .strictObject({
    outcome: z.enum(outcomes),
    note: text(8_000).optional(),
    proposal: text(8_000).optional(),
  })
  .refine((one) => one.outcome.endsWith("_proposed") === (one.proposal !== undefined), {
    path: ["proposal"],
    message: "say what is proposed with a *_proposed outcome, and with no other",
  });
const labelSchema = z.strictObject({
  label: z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/, "a lower case word, such as good, bad, unsafe"),
  score: z.number().int().min(0).max(100).optional(),
  note: text(8_000).optional(),
});
const erasureSchema = z.strictObject({ tenant_id: z.string(), reason: text(2_000) });
const episodeId = z.string().regex(/^[A-Za-z0-9_:.-]{1,128}$/, "an episode id");

/** Adds the routes of the desk; give `deskAccess` to the server. */
export function registerDeskRoutes(
  app: HttpServer,
  deps: DeskDeps & { readonly loadEvidence: LoadEvidence },
): void {
  app.get("/v1/takeover", async (request, reply) => {
    const wanted = parseInput(listSchema, request.query);
    const rows = await listItems(deps.database, callerOf(request).tenantId, wanted);
    return reply.send({ items: rows.map(toShown) });
  });

  app.get("/v1/takeover/:id", async (request, reply) => {
    const { tenantId, roles } = callerOf(request);
    const item = await loadItem(deps.database, tenantId, itemIdOf(request));
    const evidence = await deps.loadEvidence(deps.database, tenantId, item.itemId);
    const maySee = roles.some((role) => referenceRoles.includes(role));
    return reply.send({
      ...toShown(item),
      evidence: maySee
        ? evidence
        : { ...evidence, payload_refs: [], payload_refs_withheld: evidence.payload_refs.length },
    });
  });

  app.post("/v1/takeover/:id/claim", async (request, reply) => {
    parseInput(claimSchema, bodyOf(request) ?? {});
    return reply.send(toShown(await claimItem(deps, targetOf(request))));
  });
  app.post("/v1/takeover/:id/note", async (request, reply) => {
    const { note } = parseInput(noteSchema, bodyOf(request));
    return reply.send(toShown(await noteItem(deps, targetOf(request), note)));
  });
  app.post("/v1/takeover/:id/reassign", async (request, reply) => {
    const { to } = parseInput(reassignSchema, bodyOf(request));
    return reply.send(toShown(await reassignItem(deps, targetOf(request), to)));
  });
  app.post("/v1/takeover/:id/resolve", async (request, reply) => {
    const { outcome, note, proposal } = parseInput(resolveSchema, bodyOf(request));
    const resolution = { outcome, note: note ?? null, proposal: proposal ?? null };
    const after = await resolveItem(deps, targetOf(request), resolution);
    return reply.send({ ...toShown(after), ...resolution, resolution_note: resolution.note });
  });

  app.post("/v1/episodes/erasures", async (request, reply) => {
    const { tenantId, subject } = callerOf(request);
    const one = parseInput(erasureSchema, bodyOf(request));
    // Named once more by whoever asks: the token alone says it too quietly for what cannot be taken back.
    if (one.tenant_id !== tenantId) {
      throw new Fault(
        "REQUEST_INVALID",
        `the token is of \`${tenantId}\`; that tenant's episodes it can erase`,
      );
    }
    const done = await eraseEpisodes(deps, { tenantId, reason: one.reason, by: subject });
    return reply.code(201).send({
      event_id: done.eventId,
      tenant_id: tenantId,
      erased_until: new Date(done.erasedUntilMs).toISOString(),
      erased_by: subject,
    });
  });

  app.post<{ Params: { id: string } }>("/v1/episodes/:id/label", async (request, reply) => {
    const { tenantId, subject } = callerOf(request);
    const one = parseInput(labelSchema, bodyOf(request));
    const label = {
      tenantId,
      episodeId: parseInput(episodeId, request.params.id),
      label: one.label,
      score: one.score ?? null,
      note: one.note ?? null,
      by: subject,
    };
    const done = await labelEpisode(deps, label);
    return reply.send({
      event_id: done.eventId,
      episode_id: label.episodeId,
      label: label.label,
      score: label.score,
      author: subject,
      labelled_at: new Date(done.labelledAtMs).toISOString(),
    });
  });
}

function toShown(row: ItemRow): object {
  return {
    item_id: row.itemId,
    cause: row.cause,
    cause_key: row.causeKey,
    generation: row.generation,
    title: row.title,
    state: row.state,
    opened_at: row.openedAt.toISOString(),
    last_seen_at: row.lastSeenAt.toISOString(),
    occurrences: Number(row.occurrences),
    due_at: row.dueAt.toISOString(),
    is_overdue: row.isOverdue,
    breached_at: row.breachedAt?.toISOString() ?? null,
    age_ms: (row.closedAt ?? row.readAt).getTime() - row.openedAt.getTime(),
    claimed_by: row.claimedBy,
    lease_ends_at: row.leaseEndsAt?.toISOString() ?? null,
    notes: row.notes,
    closed_at: row.closedAt?.toISOString() ?? null,
    closed_by: row.closedBy,
    outcome: row.outcome,
    proposal: row.proposal,
    resolution_note: row.resolutionNote,
    correlation_id: row.correlationId,
  };
}

function targetOf(request: HttpRequest): Target {
  const { tenantId, subject } = callerOf(request);
  return { tenantId, itemId: itemIdOf(request), by: subject };
}

/** What cannot be an id is no item; it is not looked for. */
function itemIdOf(request: HttpRequest): string {
  const { id } = request.params as { readonly id: string };
  if (!/^tko_[0-9a-f]{32}$/.test(id)) throw new Fault("TAKEOVER_UNKNOWN");
  return id;
}

/** A command may come without a body. */
function bodyOf(request: { readonly body: unknown }): unknown {
  return (request.body as ReceivedBody | undefined | null)?.json;
}
