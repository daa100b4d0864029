import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Admin } from "kafkajs";
import { Kafka, logLevel } from "kafkajs";
import { inject } from "vitest";
import { eventTypes } from "../../schemas/catalog.ts";
import { newSealKeyPem } from "../../services/audit/seal-key.ts";
import { registerSchemas } from "../../services/contracts/register.ts";
import { createCapabilityKeysFile } from "../../services/gate/capability/capability-keys.ts";
import { createAuthKeysFile, loadAuthKeysFile } from "../../services/platform/auth-keys.ts";
import type { Role } from "../../services/platform/auth.ts";
import { issueLocalToken } from "../../services/platform/auth.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { databaseUsers } from "../../services/platform/config.ts";
import type { Database } from "../../services/platform/postgres.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openRegistry } from "../../services/platform/registry.ts";
import { isFree } from "../../services/stack/ports.ts";
import type { StackEndpoints } from "../../services/stack/stack.ts";
import { createKekFile } from "../../services/vault/kek-file.ts";
import type { TestDatabase } from "./database.ts";
import { createTestDatabase } from "./database.ts";
import { eventually } from "./eventually.ts";
import { projectDir } from "./stack.ts";
import { createTopics } from "./topics.ts";

/**
 * Callers of these services are refused a third of their calls. A breaker that catches up reads refusals before it has read
 * what was allowed beside them, and would hold such an agent: here it watches fan-out alone.
 */
const breakerText = `thresholds:
  - { scope: agent, measure: fan_out, window_seconds: 60, limit: 25, min_count: 1 }
`;
const binary = join(projectDir, "dist", "services", "app", "main.js");
/** Two cores may start a dozen of them at once. */
const startDeadlineMs = 300_000;

const portsTaken = new Set<number>();
/** Below the range of outgoing connections, which would take a port before the service listens; and of those of a stack. */
const takePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(11_000, 20_000);
    if (portsTaken.has(port) || !(await isFree(port))) continue;
    portsTaken.add(port);
    return port;
  }
};

/** How a process ended. */
export interface ServiceEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly tookMs: number;
}

/** One `fabric serve` as a process of its own. */
export interface ServiceProcess {
  readonly name: string;
  readonly pid: number;
  readonly gateUrl: string;
  readonly deskUrl: string;
  readonly operationsUrl: string;
  readonly isRunning: boolean;
  readonly ended: Promise<ServiceEnd>;
  untilReady(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<ServiceEnd>;
  log(): Promise<string>;
}

/** What all services of one test share: database, topics, schemas, keys. */
export interface ServiceRig {
  readonly database: TestDatabase;
  readonly prefix: string;
  readonly admin: Admin;
  /** As superuser. */
  readonly sql: Database;
  /** Starts `fabric serve <roles>` as built; it is not ready yet. */
  start(roles: readonly string[], settings?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  token(roles?: readonly Role[], tenantId?: string): Promise<string>;
  /** The outbox is empty, and each of the processors has read each of its logs to the end. */
  untilAllIsProjected(processors: readonly string[]): Promise<void>;
  /** Processes that still run. */
  running(): readonly ServiceProcess[];
  close(): Promise<void>;
}

export const serviceTenant = "acme";

/** Prepares what `fabric up` prepares, with one partition a topic. */
export async function openServiceRig(
  options: { readonly stack?: Pick<StackEndpoints, "kafkaBrokers" | "registryUrl" | "postgresUrl"> } = {},
): Promise<ServiceRig> {
  if (!existsSync(binary)) throw new Error("run `make test`: it builds dist/ first");
  const { kafkaBrokers, registryUrl, postgresUrl } = options.stack ?? inject("stack");
  const prefix = `s${randomBytes(5).toString("hex")}.`;
  const dir = await mkdtemp(join(tmpdir(), "fabric-services-"));
  const database = await createTestDatabase({ adminUrl: postgresUrl });
  const sql = openDatabase({ url: database.url, applicationName: "service-rig", maxConnections: 4 });
  const files = {
    kek: join(dir, "kek.json"),
    auth: join(dir, "auth.json"),
    capability: join(dir, "capability.json"),
    seal: join(dir, "seal.pem"),
    breaker: join(dir, "breaker.yaml"),
  };
  await createKekFile(files.kek);
  await createAuthKeysFile(files.auth);
  await createCapabilityKeysFile(files.capability);
  await writeFile(files.seal, newSealKeyPem(), { mode: 0o600 });
  await writeFile(files.breaker, breakerText);
  await sql.query("INSERT INTO access.tenants (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING", [
    serviceTenant,
  ]);
  const kafka = new Kafka({
    clientId: "service-rig",
    brokers: [...kafkaBrokers],
    logLevel: logLevel.NOTHING,
  });
  const admin = kafka.admin();
  await admin.connect();
  const topics = eventTypes.map((type) => prefix + type);
  await createTopics(
    admin,
    topics.map((topic) => ({ topic, numPartitions: 1 })),
  );
  const registry = openRegistry({ url: registryUrl });
  await registerSchemas({ registry, database: sql, topicPrefix: prefix });
  registry.close();
  const shared: Record<string, string> = {
    FABRIC_ENVIRONMENT: "test",
    FABRIC_KAFKA_BROKERS: kafkaBrokers.join(","),
    FABRIC_REGISTRY_URL: registryUrl,
    FABRIC_TOPIC_PREFIX: prefix,
    FABRIC_POLICY_DIR: join(projectDir, "deploy", "policy", "default"),
    FABRIC_KEK_FILE: files.kek,
    FABRIC_AUTH_KEYS_FILE: files.auth,
    FABRIC_CAPABILITY_KEYS_FILE: files.capability,
    FABRIC_SEAL_KEY_FILE: files.seal,
    FABRIC_BREAKER_FILE: files.breaker,
    // The real budget is a matter for the bench; here a dozen processes share two cores.
    FABRIC_GATE_BUDGET_MS: "20000",
    FABRIC_DATABASE_URL_ADMIN: database.url,
    ...Object.fromEntries(
      databaseUsers
        .filter((user) => user !== "admin")
        .map((user) => [`FABRIC_DATABASE_URL_${user.toUpperCase()}`, database.roleUrl(`fabric_${user}`)]),
    ),
  };
  const processes: ServiceProcess[] = [];
  /** Several start at once, and each has a log of its own. */
  let started = 0;

  /** Logs that the processor has not read to the end. */
  async function logsAheadOf(processor: string): Promise<readonly string[]> {
    const marks = await sql.query<{ topic: string; next_offset: bigint }>(
      "SELECT topic, next_offset FROM host.watermarks WHERE processor = $1",
      [processor],
    );
    const behind: string[] = [];
    for (const { topic, next_offset: next } of marks.rows) {
      const [end] = await admin.fetchTopicOffsets(topic);
      if (BigInt(end?.high ?? "0") > next) behind.push(`${topic}: ${String(next)} of ${end?.high ?? "?"}`);
    }
    return marks.rows.length === 0 ? ["no watermark"] : behind;
  }

  return {
    database,
    prefix,
    admin,
    sql,
    async start(roles, settings = {}) {
      const [operations, gate, desk] = [await takePort(), await takePort(), await takePort()];
      started += 1;
      const logFile = join(dir, `${String(started)}.log`);
      const out = await open(logFile, "a");
      const { PATH, HOME, FABRIC_RUN_MARK } = process.env;
      const child = spawn(process.execPath, [binary, "serve", ...roles], {
        cwd: dir,
        stdio: ["ignore", out.fd, out.fd],
        env: {
          PATH,
          HOME,
          FABRIC_RUN_MARK,
          ...shared,
          FABRIC_HTTP_PORT: String(operations),
          FABRIC_GATE_PORT: String(gate),
          FABRIC_DESK_PORT: String(desk),
          ...settings,
        },
      });
      await out.close();
      const one = toServiceProcess(roles.join(" ") || "all", child, logFile, { operations, gate, desk });
      processes.push(one);
      return one;
    },
    async token(roles = ["runtime"], tenantId = serviceTenant) {
      return issueLocalToken({
        tenantId,
        subject: "dev",
        roles,
        lifetimeSeconds: 3_600,
        privateKey: (await loadAuthKeysFile(files.auth)).signing,
        clock: systemClock,
      });
    },
    async untilAllIsProjected(processors) {
      await eventually(
        async () =>
          Number((await sql.query<{ n: bigint }>("SELECT count(*) AS n FROM outbox.events")).rows[0]?.n),
        (n) => n === 0,
        { what: "an empty outbox", deadlineMs: 60_000 },
      );
      for (const name of processors) {
        await eventually(
          () => logsAheadOf(name),
          (behind) => behind.length === 0,
          { what: `${name} at the end of its logs`, deadlineMs: 60_000, pollMs: 200 },
        );
      }
    },
    running: () => processes.filter((one) => one.isRunning),
    async close() {
      await Promise.all(processes.filter((one) => one.isRunning).map((one) => one.end("SIGKILL")));
      await sql.end();
      await admin.deleteTopics({ topics }).catch(() => undefined);
      const { groups } = await admin.listGroups();
      const own = groups.map(({ groupId }) => groupId).filter((id) => id.startsWith(prefix));
      // A member that was killed is missed after its session; a group with one is left to the broker's retention.
      if (own.length > 0) await admin.deleteGroups(own).catch(() => undefined);
      await admin.disconnect();
      await database.drop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function toServiceProcess(
  name: string,
  child: ChildProcess,
  logFile: string,
  ports: { readonly operations: number; readonly gate: number; readonly desk: number },
): ServiceProcess {
  let askedMs = performance.now();
  let isRunning = true;
  const ended = new Promise<ServiceEnd>((resolve) => {
    child.once("exit", (code, signal) => {
      isRunning = false;
      resolve({ code, signal, tookMs: performance.now() - askedMs });
    });
  });
  const operationsUrl = `http://127.0.0.1:${String(ports.operations)}`;
  const log = (): Promise<string> => readFile(logFile, "utf8");
  return {
    name,
    pid: child.pid ?? 0,
    gateUrl: `http://127.0.0.1:${String(ports.gate)}`,
    deskUrl: `http://127.0.0.1:${String(ports.desk)}`,
    operationsUrl,
    get isRunning() {
      return isRunning;
    },
    ended,
    async untilReady() {
      await eventually(
        async () => {
          if (!isRunning) return "ended";
          const answer = await fetch(`${operationsUrl}/readyz`, { signal: AbortSignal.timeout(5_000) });
          return answer.ok ? "ready" : answer.text();
        },
        (state) => state === "ready" || state === "ended",
        { what: `readiness of ${name}`, deadlineMs: startDeadlineMs, pollMs: 250 },
      );
      if (!isRunning) throw new Error(`${name} ended while it started: ${await log()}`);
    },
    signal(signal) {
      askedMs = performance.now();
      child.kill(signal);
    },
    end(signal) {
      askedMs = performance.now();
      child.kill(signal);
      return ended;
    },
    log,
  };
}
