import { randomBytes } from "node:crypto";
import { eventTypes } from "../../schemas/catalog.ts";
import { runtimeRooms } from "../../services/app/runtime-rooms.ts";
import { createAuthenticator, issueLocalToken } from "../../services/platform/auth.ts";
import { newAuthKeys } from "../../services/platform/auth-keys.ts";
import { EventCodec } from "../../services/platform/avro.ts";
import { systemClock } from "../../services/platform/clock.ts";
import { createLog } from "../../services/platform/log.ts";
import { createMetrics } from "../../services/platform/metrics.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { openMemoryKek, openTenantKeys } from "../../services/platform/vault-seal.ts";
import { newCapabilityKeys } from "../../services/gate/capability/capability-keys.ts";
import { createCapabilitySigner } from "../../services/gate/capability/signer.ts";
import { createClassifier } from "../../services/gate/classifier.ts";
import { loadPolicy } from "../../services/gate/policy/load-policy.ts";
import { createGate } from "../../services/gate/server.ts";
import { loadBashParser } from "../../services/gate/shell/load-bash-parser.ts";
import { loadSqlParser } from "../../services/gate/sql/load-sql-parser.ts";
import { runAsChild } from "./child-process.ts";

interface Settings {
  readonly databaseUrl: string;
  readonly bundleDir: string;
  readonly tenantId: string;
}

/** Where the gate answers, and the token that it takes. */
export interface GateAddress {
  readonly url: string;
  readonly token: string;
}

const tokenLifetimeSeconds = 3_600;

/** The product's gate with its own defaults and the policy that ships, alone in a process. */
runAsChild<Settings>(async ({ databaseUrl, bundleDir, tenantId }) => {
  const database = openDatabase({
    url: databaseUrl,
    applicationName: "fabric-bench-gate",
    // As the service sets it.
    findsByKey: true,
  });
  const keys = newAuthKeys();
  const [bash, sql, policy] = await Promise.all([loadBashParser(), loadSqlParser(), loadPolicy(bundleDir)]);
  const gate = createGate({
    database,
    // Nothing reads these events back by their schema: any ids do.
    codec: new EventCodec({
      source: { schemaById: () => Promise.reject(new Error("the gate decodes nothing")) },
      schemaIds: new Map(eventTypes.map((type, index) => [type, index + 1])),
    }),
    keys: openTenantKeys(database, openMemoryKek("bench", randomBytes(32))),
    policy: () => policy,
    classify: createClassifier({ bash, sql }),
    signer: createCapabilitySigner(newCapabilityKeys()),
    clock: systemClock,
    environment: "bench",
    log: createLog({ service: "bench-gate", level: "error" }),
    metrics: createMetrics(),
    authenticator: createAuthenticator({ localKeys: keys.verification, clock: systemClock }),
    adapters: new Map([...runtimeRooms].map(([runtime, { adapter }]) => [runtime, adapter])),
  });
  const url = await gate.app.listen({ host: "127.0.0.1", port: 0 });
  const token = await issueLocalToken({
    tenantId,
    subject: "bench",
    roles: ["runtime"],
    lifetimeSeconds: tokenLifetimeSeconds,
    privateKey: keys.signing,
    clock: systemClock,
  });
  return {
    answer: (): GateAddress => ({ url, token }),
    async stop() {
      await gate.close();
      await database.end();
    },
  };
});
