import { z } from "zod";
import { Fault, faultTable } from "../../../schemas/faults.ts";
import type { AccessTable, HttpReply, HttpRequest, HttpServer, ReceivedBody } from "../../platform/http.ts";
import { bodyOf, callerOf, parseInput } from "../../platform/route-input.ts";
import type { AskedUse, BoundFault } from "./bounds.ts";
import { boundFaults } from "./bounds.ts";
import type { CapabilityDeps } from "./capability-deps.ts";
import { toShownReason } from "./capability-events.ts";
import type { CapabilityState } from "./capability-state.ts";
import { loadCapability } from "./capability-state.ts";
import { capabilityIdPattern, digestPattern } from "./claims.ts";
import { capabilityWords, listCapabilities } from "./list-capabilities.ts";
import type { Revocation } from "./revoke-capabilities.ts";
import { revokeCapabilities } from "./revoke-capabilities.ts";
import { tokenMaxChars } from "./signer.ts";
import { spendCapability } from "./spend-capability.ts";
import type { NamedRight } from "./verify-capability.ts";
import { verifyCapability } from "./verify-capability.ts";

/** Who may call what; part of the gate's access table. */
export const capabilityAccess = {
  "GET /.well-known/jwks.json": "public",
  "GET /v1/capabilities": ["incident", "auditor", "admin"],
  "POST /v1/capabilities/verify": ["resource"],
  "POST /v1/capabilities/spend": ["resource"],
  "POST /v1/capabilities/revoke": ["incident", "admin"],
  "POST /v1/capabilities/:id/revoke": ["incident", "admin"],
} as const satisfies AccessTable;

/** How long a resource may keep the public keys: a new key is published at least that long before it signs. */
const jwksMaxAgeSeconds = 60;
/** How long a plan stays revoked, unless it is said. */
const planDefaultHours = 24;
const planMaxHours = 30 * 24;
/** How far back the list goes: rights end within the hour, and an incident is of today. */
const listDefaultHours = 24;
const listMaxHours = 30 * 24;

const text = z.string().min(1).max(256);
const named = {
  token: z.string().min(1).max(tokenMaxChars).optional(),
  capability_id: z.string().regex(capabilityIdPattern, "an id has the form `cap_<uuid>`").optional(),
};
const bounds = {
  plan_digest: z.string().regex(digestPattern, "a digest has the form `sha256:<hex>`"),
  resource: z.string().max(65_536).nullable().optional(),
  session_id: text.optional(),
};
const hasOneName = (body: { token?: string | undefined; capability_id?: string | undefined }): boolean =>
  (body.token === undefined) !== (body.capability_id === undefined);
const oneName = { message: "either `token` or `capability_id` is needed" };

const verifySchema = z.strictObject({ ...named, ...bounds, tool: text }).refine(hasOneName, oneName);
const spendSchema = z
  .strictObject({
    ...named,
    ...bounds,
    tool: text.optional(),
    calls: z.int().min(1).max(1_000_000).default(1),
    idempotency_key: text,
  })
  .refine(hasOneName, oneName);
const reason = z.string().trim().min(1).max(2_000);
const revokeOneSchema = z.strictObject({ reason });
const revokeManySchema = z
  .strictObject({
    plan_digest: bounds.plan_digest.optional(),
    session_id: text.optional(),
    subject: text.optional(),
    /** Of a plan: how long nobody may carry it out. */
    hours: z.int().min(1).max(planMaxHours).optional(),
    reason,
  })
  .refine(
    ({ plan_digest, session_id, subject }) =>
      [plan_digest, session_id, subject].filter((one) => one !== undefined).length === 1,
    { message: "exactly one of `plan_digest`, `session_id` and `subject` is needed" },
  )
  .refine(({ hours, plan_digest }) => hours === undefined || plan_digest !== undefined, {
    message: "only a plan stays revoked for `hours`",
    path: ["hours"],
  });
const listSchema = z.strictObject({
  state: z.enum(capabilityWords).optional(),
  session: text.optional(),
  /** How far back. */
  hours: z.coerce.number().int().min(1).max(listMaxHours).default(listDefaultHours),
  limit: z.coerce.number().int().min(1).max(500).default(100),
});

/** Adds the routes of rights to the gate's server; `capabilityAccess` has to be in its access table. */
export function registerCapabilityRoutes(app: HttpServer, deps: CapabilityDeps): void {
  app.get("/.well-known/jwks.json", (_request, reply) =>
    reply.header("cache-control", `public, max-age=${String(jwksMaxAgeSeconds)}`).send(deps.signer.jwks()),
  );

  app.post<{ Body: ReceivedBody }>("/v1/capabilities/verify", async (request, reply) => {
    const body = parseInput(verifySchema, bodyOf(request).json);
    const found = await verifyCapability(deps, callerOf(request).tenantId, toNamed(body), toAsked(body));
    return reply.send(
      found.kind === "bad"
        ? { valid: false, differs: found.fault, message: boundFaults[found.fault] }
        : { valid: true, capability: toShown(found.state) },
    );
  });

  app.post<{ Body: ReceivedBody }>("/v1/capabilities/spend", async (request, reply) => {
    const body = parseInput(spendSchema, bodyOf(request).json);
    const { tenantId, subject } = callerOf(request);
    const outcome = await spendCapability(deps, tenantId, toNamed(body), {
      ...toAsked(body),
      calls: body.calls,
      idempotencyKey: body.idempotency_key,
      spentBy: subject,
    });
    if (outcome.kind === "refused") return sendRefusal(request, reply, outcome.fault);
    const { use, state, repeated } = outcome;
    return reply.send({
      spent: true,
      repeated,
      usage_id: use.usageId,
      calls: use.calls,
      calls_used: use.callsUsed,
      capability: toShown(state),
    });
  });

  app.post<{ Params: { id: string }; Body: ReceivedBody }>(
    "/v1/capabilities/:id/revoke",
    async (request, reply) => {
      const { reason: why } = parseInput(revokeOneSchema, bodyOf(request).json);
      const { tenantId, subject } = callerOf(request);
      const capabilityId = request.params.id;
      if (!capabilityIdPattern.test(capabilityId)) throw new Fault("CAPABILITY_UNKNOWN");
      const cut = { reason: toShownReason(why), revokedBy: subject };
      const revoked = await revokeCapabilities(deps, tenantId, { kind: "capability", capabilityId }, cut);
      if (revoked === 0 && (await loadCapability(deps.database, tenantId, capabilityId)) === null)
        throw new Fault("CAPABILITY_UNKNOWN");
      return reply.send({ revoked });
    },
  );

  app.post<{ Body: ReceivedBody }>("/v1/capabilities/revoke", async (request, reply) => {
    const body = parseInput(revokeManySchema, bodyOf(request).json);
    const { tenantId, subject } = callerOf(request);
    const cut = { reason: toShownReason(body.reason), revokedBy: subject };
    return reply.send({ revoked: await revokeCapabilities(deps, tenantId, toRevocation(body), cut) });
  });

  app.get("/v1/capabilities", async (request, reply) => {
    const wanted = parseInput(listSchema, request.query);
    const listed = await listCapabilities(deps.database, callerOf(request).tenantId, {
      word: wanted.state ?? null,
      sessionId: wanted.session ?? null,
      hours: wanted.hours,
      limit: wanted.limit,
    });
    return reply.send({ capabilities: listed.map((one) => ({ ...toShown(one), state: one.word })) });
  });
}

function toRevocation(body: z.output<typeof revokeManySchema>): Revocation {
  if (body.plan_digest !== undefined) {
    const forMs = (body.hours ?? planDefaultHours) * 3_600_000;
    return { kind: "plan", planDigest: body.plan_digest, forMs };
  }
  if (body.session_id !== undefined) return { kind: "session", sessionId: body.session_id };
  return { kind: "subject", subject: body.subject ?? "" };
}

function toNamed(body: { token?: string | undefined; capability_id?: string | undefined }): NamedRight {
  return body.token === undefined ? { capabilityId: body.capability_id ?? "" } : { token: body.token };
}

function toAsked(body: {
  plan_digest: string;
  tool?: string | undefined;
  resource?: string | null | undefined;
  session_id?: string | undefined;
}): AskedUse {
  return {
    planDigest: body.plan_digest,
    tool: body.tool,
    resource: body.resource,
    sessionId: body.session_id,
  };
}

function toShown(state: CapabilityState): object {
  return {
    id: state.capabilityId,
    decision_id: state.decisionId,
    runtime: state.runtime,
    session_id: state.sessionId,
    tool: state.tool,
    resource: state.resource,
    plan_digest: state.planDigest,
    policy_revision: state.policyRevision,
    constraints: state.constraints,
    max_calls: state.maxCalls,
    calls_used: state.callsUsed,
    issued_at: new Date(state.issuedAtMs).toISOString(),
    expires_at: new Date(state.expiresAtMs).toISOString(),
  };
}

/** A use that is refused is an error to every client, also to one that reads no body. `differs` names the bound. */
function sendRefusal(request: HttpRequest, reply: HttpReply, fault: BoundFault): HttpReply {
  const code = "CAPABILITY_REFUSED";
  const { status, text: title } = faultTable[code];
  return reply
    .code(status)
    .header("content-type", "application/problem+json; charset=utf-8")
    .send(
      JSON.stringify({
        type: `urn:fabric:problem:${code}`,
        title,
        status,
        detail: boundFaults[fault],
        code,
        differs: fault,
        instance: request.id,
      }),
    );
}
