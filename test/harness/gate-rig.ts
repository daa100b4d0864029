import { randomBytes } from "node:crypto";
import { Writable } from "node:stream";
import type pg from "pg";
import type { Adapter } from "../../schemas/adapter.ts";
import type { AvroSchema } from "../../schemas/avro-json.ts";
import { eventTypes } from "../../schemas/catalog.ts";
import type { Envelope } from "../../schemas/envelope.ts";
import { eventSchemas } from "../../schemas/event-schemas.ts";
import { claudeCode } from "../../services/adapters/claude-code/claude-code.ts";
import { codexAppServer } from "../../services/adapters/codex/app-server/app-server.ts";
import { codex } from "../../services/adapters/codex/codex.ts";
import { hermes } from "../../services/adapters/hermes/hermes.ts";
import { maf } from "../../services/adapters/maf/maf.ts";
import { openclaw } from "../../services/adapters/openclaw/openclaw.ts";
import { opencode } from "../../services/adapters/opencode/opencode.ts";
import { ownHarness } from "../../services/adapters/sdk/own-harness.ts";
import { newCapabilityKeys } from "../../services/gate/capability/capability-keys.ts";
import type { CapabilitySigner } from "../../services/gate/capability/signer.ts";
import { createCapabilitySigner } from "../../services/gate/capability/signer.ts";
import type { Classify } from "../../services/gate/classified.ts";
import { createClassifier } from "../../services/gate/classifier.ts";
import { loadPolicy } from "../../services/gate/policy/load-policy.ts";
import type { Policy } from "../../services/gate/policy/policy.ts";
import type { Gate, GateOptions } from "../../services/gate/server.ts";
import { createGate } from "../../services/gate/server.ts";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import { loadSqlParser } from "../../services/gate/sql/load-sql-parser.ts";
import type { Role } from "../../services/platform/auth.ts";
import { createAuthenticator, issueLocalToken, roles } from "../../services/platform/auth.ts";
import { newAuthKeys } from "../../services/platform/auth-keys.ts";
import { EventCodec } from "../../services/platform/avro.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import type { TenantKeys } from "../../services/platform/vault-seal.ts";
import { openMemoryKek, openTenantKeys } from "../../services/platform/vault-seal.ts";
import type { TestDatabase } from "./database.ts";
import { createTestDatabase } from "./database.ts";
import { projectDir } from "./stack.ts";
import { openSuperuser } from "./superuser.ts";

/** Ids without a registry: a type's place in the catalogue. */
const schemaIds = new Map(eventTypes.map((type, index) => [type as string, index + 1]));

/** Encodes and decodes as the real one does, with schemas from the repository. */
export const testCodec = (): EventCodec =>
  new EventCodec({
    schemaIds,
    source: {
      schemaById(id) {
        const type = eventTypes[id - 1];
        return Promise.resolve(eventSchemas.get(type ?? "agent.turn.started") as AvroSchema);
      },
    },
  });

/** A database with what a gate needs, and gates on it. */
export interface GateRig {
  readonly test: TestDatabase;
  /** As superuser, for looking and for breaking. */
  readonly admin: pg.Pool;
  readonly keys: TenantKeys;
  readonly logLines: string[];
  readonly signer: CapabilitySigner;
  readonly classify: Classify;
  /** The bundle that gates of the rig decide by, unless another one is given. */
  readonly policy: Policy;
  token(options?: {
    tenantId?: string;
    roles?: readonly Role[];
    lifetimeSeconds?: number;
    subject?: string;
  }): Promise<string>;
  /** A database connection as the gate's role. */
  database(url?: string): Database;
  gate(options?: Partial<GateOptions>): Promise<RunningGate>;
  /** All events in the outbox, in order. */
  events(): Promise<Envelope[]>;
  count(table: string): Promise<number>;
  close(): Promise<void>;
}
export interface RunningGate {
  readonly gate: Gate;
  readonly url: string;
  post(path: string, body: unknown, token?: string): Promise<RigReply>;
  get(path: string, token?: string): Promise<RigReply>;
}
export interface RigReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: unknown;
}

/** The tenant that exists in every rig. */
export const rigTenant = "acme";

export const createGateRig = async (): Promise<GateRig> => {
  const test = await createTestDatabase();
  const admin = openSuperuser(test.url);
  await admin.query("INSERT INTO access.tenants (tenant_id) VALUES ($1), ('other')", [rigTenant]);
  const kek = openMemoryKek("test", randomBytes(32));
  const authKeys = newAuthKeys();
  const logLines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      logLines.push(chunk.toString());
      done();
    },
  });
  const opened: { end(): Promise<void> }[] = [];
  const gates: Gate[] = [];
  const [bash, sql, policy] = await Promise.all([
    loadBashParser(),
    loadSqlParser(),
    loadPolicy(`${projectDir}/deploy/policy/default`),
  ]);
  const classify = createClassifier({ bash, sql });
  const signer = createCapabilitySigner(newCapabilityKeys());
  // Here one key vouches for everybody.
  const verification = authKeys.verification.map(({ jwk }) => ({ jwk, roles }));
  const database: GateRig["database"] = (url = test.roleUrl("fabric_gate")) => {
    const one = openDatabase({
      url,
      applicationName: "gate-test",
      maxConnections: 4,
      queryTimeoutMs: 3_000,
      findsByKey: true,
    });
    opened.push(one);
    return one;
  };
  const keys = openTenantKeys(database(), kek);
  const codec = testCodec();
  const token: GateRig["token"] = (options = {}) =>
    issueLocalToken({
      tenantId: options.tenantId ?? rigTenant,
      subject: options.subject ?? "dev",
      roles: options.roles ?? ["runtime"],
      lifetimeSeconds: options.lifetimeSeconds ?? 600,
      privateKey: authKeys.signing,
      clock: systemClock,
    });
  return {
    test,
    admin,
    keys,
    logLines,
    signer,
    classify,
    policy,
    token,
    database,
    async gate(options = {}) {
      const own = options.database ?? database();
      const gate = createGate({
        database: own,
        codec,
        keys: openTenantKeys(own, kek),
        policy: () => policy,
        classify,
        signer,
        clock: systemClock,
        environment: "test",
        log: createLog({ service: "gate", level: "debug", destination }),
        metrics: createMetrics(),
        authenticator: createAuthenticator({ localKeys: verification, clock: systemClock }),
        adapters: new Map<string, Adapter>(
          [claudeCode, codex, codexAppServer, opencode, openclaw, hermes, maf, ownHarness].map((one) => [
            one.runtime,
            one,
          ]),
        ),
        // Two cores serve several test files at once: the real budget is a matter for the bench.
        budgetMs: 5_000,
        decideLimitMs: 5_000,
        ...options,
      });
      gates.push(gate);
      const url = await gate.app.listen({ host: "127.0.0.1", port: 0 });
      const usual = await token();
      const ask = async (path: string, bearer: string, init: RequestInit): Promise<RigReply> => {
        const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
        const response = await fetch(`${url}${path}`, { ...init, headers });
        const text = await response.text();
        let json: unknown = null;
        try {
          json = JSON.parse(text);
        } catch {
          // Not every answer has a body.
        }
        return { status: response.status, headers: response.headers, text, json };
      };
      return {
        gate,
        url,
        post: (path, body, bearer = usual) =>
          ask(path, bearer, {
            method: "POST",
            body: typeof body === "string" ? body : JSON.stringify(body),
          }),
        get: (path, bearer = usual) => ask(path, bearer, { method: "GET" }),
      };
    },
    async events() {
      const rows = await admin.query<{ payload: Buffer }>("SELECT payload FROM outbox.events ORDER BY seq");
      return Promise.all(rows.rows.map(async ({ payload }) => (await codec.decode(payload)).envelope));
    },
    async count(table) {
      const found = await admin.query<{ n: string }>(`SELECT count(*) AS n FROM ${table}`);
      return Number(found.rows[0]?.n);
    },
    async close() {
      for (const gate of gates) await gate.close();
      for (const one of opened) await one.end();
      await admin.end();
      await test.drop();
    },
  };
};

/** A request of a harness of one's own; each call has its own id unless one is given. */
export const ownRequest = (
  tool: string,
  input: Record<string, unknown>,
  rest: Record<string, unknown> = {},
): object => ({
  runtime: "own",
  session_id: "s-1",
  tool_call_id: `call-${randomBytes(6).toString("hex")}`,
  working_directory: "/work-place",
  tool,
  input,
  ...rest,
});
