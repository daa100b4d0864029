import { randomBytes } from "node:crypto";
import type pg from "pg";
import type { Envelope } from "../../schemas/envelope.ts";
import type { Json } from "../../schemas/gate.ts";
import { newCapabilityKeys } from "../../services/gate/capability/capability-keys.ts";
import type { CapabilityDeps, PolicyOfNow } from "../../services/gate/capability/capability-deps.ts";
import { toClaims, toShownResource } from "../../services/gate/capability/claims.ts";
import { capabilityAccess, registerCapabilityRoutes } from "../../services/gate/capability/routes.ts";
import type { CapabilitySigner } from "../../services/gate/capability/signer.ts";
import { createCapabilitySigner } from "../../services/gate/capability/signer.ts";
import type { Role } from "../../services/platform/auth.ts";
import { createAuthenticator, issueLocalToken, roles } from "../../services/platform/auth.ts";
import { newAuthKeys } from "../../services/platform/auth-keys.ts";
import { canonicalDigest } from "../../services/platform/canonical-json.ts";
import { systemClock } from "../../services/platform/clock.ts";
import type { HttpServer } from "../../services/platform/http.ts";
import { createHttpServer } from "../../services/platform/http.ts";
import { derivedUuid, newUuidV7, toUuid } from "../../services/platform/ids.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TestDatabase } from "./database.ts";
import { createTestDatabase } from "./database.ts";
import { memoryCodec } from "./memory-codec.ts";
import { openSuperuser } from "./superuser.ts";

/** The revision that the rig's gates decide by, and that its rights are issued under. */
export const rigRevision = "policy@2026-11-30.1+000000000000";

export interface IssueOptions {
  readonly tenantId?: string;
  readonly sessionId?: string;
  readonly userId?: string;
  readonly tool?: string;
  readonly resource?: string | null;
  readonly input?: { readonly [key: string]: Json };
  readonly maxCalls?: number;
  readonly lifetimeMs?: number;
  readonly revision?: string;
  /** The decision as it was made; default one that says nothing of its making. */
  readonly decided?: { readonly request: unknown; readonly facts: unknown; readonly planDigest: string };
}
export interface IssuedRight {
  readonly id: string;
  readonly token: string;
  readonly tool: string;
  readonly plan: { readonly [key: string]: Json };
  readonly resource: string | null;
  readonly planDigest: string;
  readonly sessionId: string;
}
export interface Answer {
  readonly status: number;
  readonly json: Record<string, unknown>;
}
export interface CapabilityGate {
  readonly url: string;
  readonly app: HttpServer;
  call(method: "GET" | "POST", path: string, body: unknown, as?: CallerOptions): Promise<Answer>;
}
export interface CallerOptions {
  readonly role?: Role;
  readonly tenantId?: string;
  readonly subject?: string;
}

/** A database with rights, and gates that serve nothing but rights. */
export interface CapabilityRig {
  readonly test: TestDatabase;
  /** As superuser. */
  readonly admin: pg.Pool;
  readonly signer: CapabilitySigner;
  readonly deps: CapabilityDeps;
  gate(options?: {
    database?: Database;
    policy?: PolicyOfNow;
    signer?: CapabilitySigner;
  }): Promise<CapabilityGate>;
  /** A right as the gate issues it: its rows and its token. */
  issue(options?: IssueOptions): Promise<IssuedRight>;
  bearer(as?: CallerOptions): Promise<string>;
  database(url?: string): Database;
  /** All events of a type in the outbox, in order. */
  events(type: string): Promise<Envelope[]>;
  close(): Promise<void>;
}

export const createCapabilityRig = async (): Promise<CapabilityRig> => {
  const test = await createTestDatabase();
  const admin = openSuperuser(test.url);
  await admin.query("INSERT INTO access.tenants (tenant_id) VALUES ('acme'), ('other')");
  const authKeys = newAuthKeys();
  const verification = authKeys.verification.map(({ jwk }) => ({ jwk, roles }));
  const signer = createCapabilitySigner(newCapabilityKeys());
  const codec = memoryCodec();
  const opened: Database[] = [];
  const apps: HttpServer[] = [];
  const database: CapabilityRig["database"] = (url = test.roleUrl("fabric_gate")) => {
    const one = openDatabase({
      url,
      applicationName: "capability-test",
      maxConnections: 4,
      queryTimeoutMs: 10_000,
    });
    opened.push(one);
    return one;
  };
  const deps: CapabilityDeps = {
    database: database(),
    codec,
    clock: systemClock,
    environment: "test",
    signer,
    policy: { revision: () => rigRevision, isStillAllowed: () => Promise.resolve(false) },
  };
  const bearer: CapabilityRig["bearer"] = ({
    role = "resource",
    tenantId = "acme",
    subject = "store",
  } = {}) =>
    issueLocalToken({
      tenantId,
      subject,
      roles: [role],
      lifetimeSeconds: 600,
      privateKey: authKeys.signing,
      clock: systemClock,
    });
  return {
    test,
    admin,
    signer,
    deps,
    bearer,
    database,
    async gate(options = {}) {
      const app = createHttpServer({
        log: createLog({ service: "gate", level: "silent" }),
        metrics: createMetrics(),
        authenticator: createAuthenticator({ localKeys: verification, clock: systemClock }),
        access: capabilityAccess,
        probes: {},
      });
      registerCapabilityRoutes(app, { ...deps, database: options.database ?? database(), ...options });
      apps.push(app);
      const url = await app.listen({ host: "127.0.0.1", port: 0 });
      return {
        url,
        app,
        async call(method, path, body, as = {}) {
          const response = await fetch(`${url}${path}`, {
            method,
            headers: {
              authorization: `Bearer ${await bearer(as)}`,
              ...(method === "POST" ? { "content-type": "application/json" } : {}),
            },
            ...(method === "POST" ? { body: JSON.stringify(body) } : {}),
          });
          return { status: response.status, json: (await response.json()) as Record<string, unknown> };
        },
      };
    },
    async issue(options = {}) {
      const {
        tenantId = "acme",
        sessionId = `s-${randomBytes(4).toString("hex")}`,
        tool = "store.put",
        resource = "orders/7",
        input = { amount: 3 },
        maxCalls = 1,
        lifetimeMs = 300_000,
        revision = rigRevision,
      } = options;
      const nowMs = systemClock.nowMs();
      const constraints = { network: "none" } as const;
      const plan = { tool, action: "put", arguments: input, working_directory: null, resource, constraints };
      const planDigest = options.decided?.planDigest ?? canonicalDigest(plan);
      const request = options.decided?.request ?? { tool, input, user_id: options.userId ?? "dev" };
      const answer = { decision: "allow", plan_digest: planDigest };
      const capabilityId = `cap_${newUuidV7(nowMs)}`;
      const decisionId = newUuidV7(nowMs);
      const sessionKey = derivedUuid(`${tenantId}/${sessionId}`);
      // A right whose time is over was issued before.
      const issuedAtMs = lifetimeMs < 0 ? nowMs + lifetimeMs - 1_000 : nowMs;
      const issuedAt = new Date(issuedAtMs).toISOString();
      const expiresAtMs = nowMs + lifetimeMs;
      await admin.query(
        `INSERT INTO gate.sessions (session_key, tenant_id, runtime, session_id, correlation_id, first_seen_at)
         VALUES ($1, $2, 'own', $3, $4, now()) ON CONFLICT DO NOTHING`,
        [sessionKey, tenantId, sessionId, derivedUuid(`c/${sessionId}`)],
      );
      await admin.query(
        `INSERT INTO gate.decisions (decision_id, tenant_id, session_key, correlation_id, requested_event_id, runtime, phase,
           tool, effect_class, decision, reason_code, plan_digest, policy_revision, matched_rules, request, facts, answer,
           decided_at)
         VALUES ($1, $2, $3, $4, $5, 'own', 'before_tool', $6, 'write', 'allow', 'ALLOWED', $7, $8, '{}', $9, $10, $11, $12)`,
        [
          decisionId,
          tenantId,
          sessionKey,
          derivedUuid(`c/${sessionId}`),
          newUuidV7(nowMs),
          tool,
          planDigest,
          revision,
          JSON.stringify(request),
          JSON.stringify(options.decided?.facts ?? {}),
          JSON.stringify(answer),
          issuedAt,
        ],
      );
      await admin.query(
        `INSERT INTO gate.capabilities (capability_id, tenant_id, decision_id, session_key, tool, resource, plan_digest,
           policy_revision, constraints, max_calls, issued_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
        [
          toUuid(capabilityId),
          tenantId,
          decisionId,
          sessionKey,
          tool,
          resource === null ? null : toShownResource(resource),
          planDigest,
          revision,
          JSON.stringify(constraints),
          maxCalls,
          issuedAt,
          new Date(expiresAtMs).toISOString(),
        ],
      );
      const token = signer.sign(
        toClaims({
          capabilityId,
          tenantId,
          runtime: "own",
          sessionId,
          tool,
          resource,
          planDigest,
          constraints,
          maxCalls,
          policyRevision: revision,
          issuedAtMs,
          expiresAtMs,
        }),
      );
      return { id: capabilityId, token, tool, plan, resource, planDigest, sessionId };
    },
    async events(type) {
      const rows = await admin.query<{ payload: Buffer }>(
        "SELECT payload FROM outbox.events WHERE type = $1 ORDER BY seq",
        [type],
      );
      return Promise.all(rows.rows.map(async ({ payload }) => (await codec.decode(payload)).envelope));
    },
    async close() {
      for (const app of apps) await app.close();
      for (const one of opened) await one.end();
      await admin.end();
      await test.drop();
    },
  };
};
