import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { Kafka, logLevel } from "kafkajs";
import { createBreaker } from "../../processors/breaker/breaker.ts";
import type { Threshold } from "../../processors/breaker/thresholds.ts";
import { takeover } from "../../processors/takeover/takeover.ts";
import type { GateAnswer } from "../../schemas/gate.ts";
import { newCapabilityKeys } from "../../services/gate/capability/capability-keys.ts";
import { createCapabilitySigner } from "../../services/gate/capability/signer.ts";
import { createClassifier } from "../../services/gate/classifier.ts";
import { parsePolicy } from "../../services/gate/policy/parse-policy.ts";
import { readBundleFiles } from "../../services/gate/policy/read-bundle-files.ts";
import { createGate } from "../../services/gate/server.ts";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import { loadSqlParser } from "../../services/gate/sql/load-sql-parser.ts";
import { startHost } from "../../services/host/host.ts";
import { createVaultLetterSealer } from "../../services/host/letter-sealer.ts";
import { incidentAccess, registerIncidentRoutes } from "../../services/incidents/routes.ts";
import { createRelay } from "../../services/outbox/relay.ts";
import type { Role } from "../../services/platform/auth.ts";
import { createAuthenticator, issueLocalToken, roles } from "../../services/platform/auth.ts";
import { newAuthKeys } from "../../services/platform/auth-keys.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createKafkaProducer } from "../../services/platform/kafka-producer.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openMemoryKek, openTenantKeys } from "../../services/platform/vault-seal.ts";
import { eventually } from "./eventually.ts";
import { memoryCodec } from "./memory-codec.ts";

export interface StormOptions {
  readonly brokers: readonly string[];
  /** A migrated database of the storm's own: as superuser, and as a role. */
  readonly databaseUrl: string;
  readonly roleUrl: (role: string) => string;
  readonly projectDir: string;
  readonly thresholds: readonly Threshold[];
  /** Sub-agents that the gate lets a session start; its own counter stops there. */
  readonly spawnLimit: number;
  readonly gates?: number;
}

/** Gates, relay, breaker and takeover on real servers, in this process. */
export interface Storm {
  /** As superuser. */
  readonly sql: Database;
  readonly tenantId: string;
  /** Asks one of the gates. */
  decide(request: object, gate?: number): Promise<GateAnswer>;
  ask(method: "GET" | "POST", path: string, role: Role, body?: unknown, gate?: number): Promise<StormReply>;
  close(): Promise<void>;
}
export interface StormReply {
  readonly status: number;
  readonly json: unknown;
}

const watched = [
  ...["agent.tool.requested", "agent.tool.authorized", "agent.tool.denied", "agent.capability.issued"],
  ...["agent.subagent.started", "agent.tool.completed", "agent.model.completed"],
  ...["fabric.breaker.tripped", "fabric.breaker.reset", "fabric.takeover.opened"],
];
const tenantId = "acme";

/** A call that starts a sub-agent; each has an id of its own. */
export const spawnRequest = (sessionId: string, rest: Record<string, unknown> = {}): object => ({
  runtime: "own",
  session_id: sessionId,
  tool_call_id: `call-${randomBytes(6).toString("hex")}`,
  working_directory: "/work-place",
  tool: "agent.spawn",
  input: { description: "look at one more file", prompt: "look at one more file" },
  ...rest,
});
export const readRequest = (sessionId: string): object => ({
  ...spawnRequest(sessionId),
  tool: "file.read",
  input: { file_path: "/work-place/a.txt" },
});

export async function openStorm(options: StormOptions): Promise<Storm> {
  const { brokers, roleUrl, projectDir } = options;
  const ends: (() => Promise<unknown>)[] = [];
  const prefix = `storm-${randomUUID().slice(0, 8)}.`;
  const admin = new Kafka({
    brokers: [...brokers],
    clientId: "storm",
    logLevel: logLevel.NOTHING,
  }).admin();
  await admin.connect();
  const types = [...new Set<string>([...watched, ...takeover.topics])];
  await admin.createTopics({
    waitForLeaders: true,
    topics: types.map((type) => ({ topic: prefix + type, numPartitions: 1 })),
  });
  ends.push(async () => {
    await admin.deleteTopics({ topics: types.map((type) => prefix + type) });
    await admin.disconnect();
  });
  const open = (role: string, maxConnections: number, searchPath: readonly string[] = []): Database => {
    const database = openDatabase({
      url: role === "" ? options.databaseUrl : roleUrl(role),
      applicationName: "storm",
      maxConnections,
      ...(searchPath.length === 0 ? {} : { searchPath }),
    });
    ends.push(() => database.end());
    return database;
  };
  const sql = open("", 2);
  await sql.query("INSERT INTO access.tenants (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING", [tenantId]);

  const codec = memoryCodec();
  const kek = openMemoryKek("storm", randomBytes(32));
  const log = createLog({ service: "storm", level: "silent" });
  const common = { codec, clock: systemClock, environment: "test", log, metrics: createMetrics() };

  const relayDatabase = open("fabric_relay", 4);
  const stopRelay = new AbortController();
  const relayed = createRelay({
    database: relayDatabase,
    producerFactory: () => createKafkaProducer({ brokers, clientId: "storm", log }),
    log,
    metrics: createMetrics(),
    relayId: randomUUID(),
    topicPrefix: prefix,
  }).run(stopRelay.signal);
  relayed.catch(() => undefined);
  ends.push(() => {
    stopRelay.abort();
    return relayed;
  });

  const hostDatabase = open("fabric_host", 6, ["host"]);
  const breaker = createBreaker({
    thresholds: { usual: options.thresholds, byTenant: new Map() },
    costOf: ({ redacted_summary: { cost_micros } }) => ({
      micros: cost_micros ?? 0n,
      silence: cost_micros === null ? 1 : 0,
    }),
  });
  const host = startHost({
    ...common,
    processors: [breaker, takeover],
    endpoint: { brokers, clientId: "storm" },
    database: hostDatabase,
    sealer: createVaultLetterSealer(openTenantKeys(hostDatabase, kek)),
    topicPrefix: prefix,
    groupPrefix: prefix,
    sessionTimeoutMs: 6_000,
    rebalanceTimeoutMs: 6_000,
    heartbeatIntervalMs: 500,
  });
  ends.push(() => host.stop());

  const [bash, sqlParser, files] = await Promise.all([
    loadBashParser(),
    loadSqlParser(),
    readBundleFiles(join(projectDir, "deploy", "policy", "default")),
  ]);
  // The bundle that ships, with the one limit that the storm runs into. A day's window: no storm runs over its edge.
  const limits = `budgets:
  - { id: budget.spawn, when: { tools: [agent.spawn] }, scope: session, window: 1d, limit: ${String(options.spawnLimit)}, message: no more }
`;
  const parsed = parsePolicy(new Map([...files, ["limits.yaml", limits]]), "storm");
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const authKeys = newAuthKeys();
  const authenticator = createAuthenticator({
    localKeys: authKeys.verification.map(({ jwk }) => ({ jwk, roles })),
    clock: systemClock,
  });
  const signer = createCapabilitySigner(newCapabilityKeys());
  const urls: string[] = [];
  for (let index = 0; index < (options.gates ?? 2); index += 1) {
    const database = open("fabric_gate", 6);
    const gate = createGate({
      ...common,
      metrics: createMetrics(),
      database,
      keys: openTenantKeys(database, kek),
      policy: () => parsed.policy,
      classify: createClassifier({ bash, sql: sqlParser }),
      signer,
      authenticator,
      adapters: new Map(),
      budgetMs: 10_000,
      decideLimitMs: 10_000,
      more: {
        access: incidentAccess,
        register: (app) => registerIncidentRoutes(app, { ...common, database }),
      },
    });
    ends.push(() => gate.close());
    urls.push(await gate.app.listen({ host: "127.0.0.1", port: 0 }));
  }
  const tokens = new Map<Role, string>();
  for (const role of ["runtime", "incident", "resource"] as const) {
    tokens.set(
      role,
      await issueLocalToken({
        tenantId,
        subject: role,
        roles: [role],
        lifetimeSeconds: 3_600,
        privateKey: authKeys.signing,
        clock: systemClock,
      }),
    );
  }
  await eventually(
    () => host.health().get("breaker"),
    (health) => health?.ready === true,
    { deadlineMs: 60_000, what: "a breaker that reads" },
  );

  const ask: Storm["ask"] = async (method, path, role, body, gate = 0) => {
    const response = await fetch(`${urls[gate % urls.length] ?? ""}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${tokens.get(role) ?? ""}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, json: await response.json() };
  };
  return {
    sql,
    tenantId,
    ask,
    async decide(request, gate) {
      return (await ask("POST", "/v1/gate/decide", "runtime", request, gate)).json as GateAnswer;
    },
    async close() {
      for (const end of ends.reverse()) await end().catch(() => undefined);
    },
  };
}
