import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { catalog, eventTypes } from "../../schemas/catalog.ts";
import { eventSchema } from "../../schemas/event-schemas.ts";
import { readBundle } from "../../services/app/policy-engine.ts";
import { startGate } from "../../services/app/start-gate.ts";
import type { RunningService } from "../../services/app/wiring.ts";
import { createPeopleKey, openPeopleKey } from "../../services/app/people-key.ts";
import { createCapabilityKeysFile } from "../../services/gate/capability/capability-keys.ts";
import { issueLocalToken } from "../../services/platform/auth.ts";
import { createAuthKeysFile, loadAuthKeysFile } from "../../services/platform/auth-keys.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { loadConfig } from "../../services/platform/config.ts";
import { schemaFingerprint } from "../../services/platform/contract-tables.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { createKekFile } from "../../services/vault/kek-file.ts";
import type { TestDatabase } from "../harness/database.ts";
import { createTestDatabase } from "../harness/database.ts";
import { eventually } from "../harness/eventually.ts";
import { ownRequest } from "../harness/gate-rig.ts";
import { projectDir } from "../harness/stack.ts";
import { openSuperuser } from "../harness/superuser.ts";

/** The gate as `fabric serve gate` starts it, with nothing handed in but the configuration. */

let dir: string;
let test: TestDatabase;
let admin: pg.Pool;
const running: RunningService[] = [];
const keysFile = (): string => join(dir, "token-keys.json");

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "gate-start-"));
  test = await createTestDatabase();
  admin = openSuperuser(test.url, 2);
  await admin.query("INSERT INTO access.tenants (tenant_id) VALUES ('local')");
  for (const [index, type] of eventTypes.entries()) {
    await admin.query(
      "INSERT INTO contracts.schema_ids (event_type, version, subject, schema_id, fingerprint) VALUES ($1, $2, $3, $4, $5)",
      [type, catalog[type].version, `${type}-value`, index + 1, schemaFingerprint(eventSchema(type))],
    );
  }
  await createAuthKeysFile(keysFile());
  await createKekFile(join(dir, "kek.json"));
  await createCapabilityKeysFile(join(dir, "capability-keys.json"));
});
afterAll(async () => {
  for (const one of running) await one.close();
  await admin.end();
  await test.drop();
  await rm(dir, { recursive: true });
});

const start = async (policyDir: string): Promise<string> => {
  const config = loadConfig({
    env: {
      FABRIC_ENVIRONMENT: "test",
      FABRIC_KAFKA_BROKERS: "127.0.0.1:1",
      FABRIC_REGISTRY_URL: "http://127.0.0.1:1",
      FABRIC_GATE_PORT: "0",
      FABRIC_GATE_BUDGET_MS: "5000",
      FABRIC_POLICY_DIR: policyDir,
      FABRIC_KEK_FILE: join(dir, "kek.json"),
      FABRIC_AUTH_KEYS_FILE: keysFile(),
      FABRIC_CAPABILITY_KEYS_FILE: join(dir, "capability-keys.json"),
      FABRIC_DATABASE_URL_GATE: test.roleUrl("fabric_gate"),
    },
  });
  const around = { config, log: createLog({ service: "test", level: "silent" }), metrics: createMetrics() };
  const service = await startGate(around, new AbortController().signal);
  running.push(service);
  if (service.address === undefined) throw new Error("the gate listens somewhere");
  return service.address;
};
const ask = async (url: string, token: string, path: string, body?: unknown) => {
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: (await response.json()) as Record<string, unknown> };
};
const runtimeToken = async (): Promise<string> =>
  issueLocalToken({
    tenantId: "local",
    subject: "developer",
    roles: ["runtime"],
    lifetimeSeconds: 600,
    privateKey: (await loadAuthKeysFile(keysFile())).signing,
    clock: systemClock,
  });

describe("the gate's process", () => {
  it(
    "without a policy that loads listens, denies everything and is not ready",
    { timeout: 60_000 },
    async () => {
      const empty = await mkdtemp(join(dir, "empty-"));
      const url = await start(empty);
      const answer = await ask(
        url,
        await runtimeToken(),
        "/v1/gate/decide",
        ownRequest("shell.run", { command: "ls" }),
      );
      expect(answer.json).toMatchObject({ decision: "deny", reason_code: "POLICY_MISSING" });
      expect((await fetch(`${url}/readyz`)).status).toBe(503);
    },
  );

  it(
    "takes its folder as the first policy, and an activation by a person whose key came later",
    { timeout: 120_000 },
    async () => {
      const url = await start(join(projectDir, "deploy/policy/default"));
      const runtime = await runtimeToken();
      const list = ownRequest("shell.run", { command: "ls" });
      expect((await ask(url, runtime, "/v1/gate/decide", list)).json).toMatchObject({ decision: "allow" });
      const passphrase = "correct horse battery";
      await createPeopleKey(keysFile(), passphrase);
      const person = await issueLocalToken({
        tenantId: "fabric",
        subject: "ann",
        roles: ["admin"],
        lifetimeSeconds: 600,
        privateKey: await openPeopleKey(keysFile(), passphrase),
        clock: systemClock,
      });
      const { files: texts } = await readBundle(join(projectDir, "deploy/policy/strict"));
      const files = Object.fromEntries(texts);
      const activated = await eventually(
        () => ask(url, person, "/v1/policy/activate", { name: "strict", files }),
        ({ status }) => status !== 401,
      );
      expect([activated.status, activated.json]).toMatchObject([201, { name: "strict", changed: true }]);
      expect((await ask(url, runtime, "/v1/policy/activate", { name: "strict", files })).status).toBe(403);
      const sudo = ownRequest("shell.run", { command: "sudo ls" });
      expect((await ask(url, runtime, "/v1/gate/decide", sudo)).json).toMatchObject({ decision: "deny" });
      expect((await ask(url, runtime, "/v1/policy")).json).toMatchObject({
        state: "up",
        activated_by: "ann",
      });
    },
  );
});
