import { homedir } from "node:os";
import { loadCapabilityKeysFile } from "../gate/capability/capability-keys.ts";
import { createCapabilitySigner } from "../gate/capability/signer.ts";
import { createRightsEnder } from "../gate/revisions/end-denied-rights.ts";
import { loadRevision } from "../gate/revisions/revision-rows.ts";
import { addPolicyRoutes, policyAccess } from "../gate/revisions/routes.ts";
import { watchPolicy } from "../gate/revisions/watch-policy.ts";
import { createGate } from "../gate/server.ts";
import { decide } from "../gate/stages/decide.ts";
import type { ThrottleRule } from "../gate/throttle/throttle-rules.ts";
import { warmUp } from "../gate/warm-up.ts";
import { incidentAccess, registerIncidentRoutes } from "../incidents/routes.ts";
import { startTripTimer } from "../incidents/trip-timer.ts";
import { systemClock } from "../platform/clock.ts";
import { requireSetting } from "../platform/config.ts";
import { openTenantKeys } from "../platform/vault-seal.ts";
import { loadKekFile } from "../vault/kek-file.ts";
import { createLocalAuthenticator } from "./local-authenticator.ts";
import { openPolicyEngine, readBundle } from "./policy-engine.ts";
import { shippedAdapters } from "./shipped-adapters.ts";
import type { RunningService, Surroundings } from "./wiring.ts";
import { codecWhenRegistered, registryOf, serviceDatabase } from "./wiring.ts";

/** Two groups on the wire, one for facts, one for evidence that is too large for a group. */
const gateConnections = 6;
/** A decision cannot wait for longer than its budget; a connection that takes more is no use to it. */
const connectTimeoutMs = 1_000;
/** After a fail-over the old connections are silent: each is given up soon, so that the pool is not full of them. */
const silentMs = 2_000;

/** Starts the gate; it listens when policy, keys and schema ids are loaded. */
export async function startGate(
  around: Surroundings,
  signal: AbortSignal,
  throttle: readonly ThrottleRule[] = [],
): Promise<RunningService> {
  const { config, metrics } = around;
  const log = around.log.child({ service: "gate" });
  const { policyDir } = config.gate;
  const engine = await openPolicyEngine(config.gate.localFiles ? homedir() : undefined);
  const signer = createCapabilitySigner(
    await loadCapabilityKeysFile(
      requireSetting(config.capabilityKeysFile, "FABRIC_CAPABILITY_KEYS_FILE", "rights are signed with them"),
    ),
  );
  const kek = await loadKekFile(
    requireSetting(config.kekFile, "FABRIC_KEK_FILE", "evidence is sealed under the key-encryption key"),
  );
  if (config.authKeysFile === undefined && config.oidc === undefined) {
    requireSetting(
      undefined,
      "FABRIC_AUTH_KEYS_FILE",
      "or FABRIC_OIDC_ISSUER: nobody could prove who they are",
    );
  }
  const authenticator = await createLocalAuthenticator({
    keysFile: config.authKeysFile,
    oidc: config.oidc,
    clock: systemClock,
    log,
  });
  const database = serviceDatabase(config, "gate", {
    // Everything that a call waits for is found by key.
    findsByKey: true,
    maxConnections: gateConnections,
    connectTimeoutMs,
    statementTimeoutMs: silentMs,
    queryTimeoutMs: silentMs,
  });
  const registry = registryOf(config);
  const codec = await codecWhenRegistered(database, registry, log, signal);
  const keys = openTenantKeys(database, kek);
  const records = { database, codec, clock: systemClock, environment: config.environment };
  const rights = createRightsEnder({ ...records, keys, log, judge: engine.judgeRecord });
  const activation = { ...records, judge: engine.judge, rights };
  const watch = await watchPolicy({
    ...activation,
    log,
    metrics,
    loadFolder: policyDir === undefined ? null : () => readBundle(policyDir),
  });
  const gate = createGate({
    database,
    codec,
    keys,
    policy: watch.current,
    policyState: watch.state,
    classify: engine.classify,
    isOnAgentsMachine: config.gate.localFiles,
    throttle,
    ...(config.gate.spoolFile === undefined ? {} : { spoolFile: config.gate.spoolFile }),
    policyOf: async (revision) => {
      const stored = await loadRevision(database, revision);
      return stored === null ? null : engine.judge.load(stored);
    },
    signer,
    clock: systemClock,
    environment: config.environment,
    log,
    metrics,
    more: {
      access: { ...policyAccess, ...incidentAccess },
      register(app) {
        addPolicyRoutes(app, activation, watch);
        registerIncidentRoutes(app, records);
      },
    },
    authenticator,
    adapters: shippedAdapters,
    budgetMs: config.gate.budgetMs,
    bodyLimitBytes: config.gate.bodyLimitBytes,
  });
  const tripTimer = startTripTimer({ ...records, log });
  const warmed = warmUp({
    classify: engine.classify,
    decide,
    policy: watch.current(),
    environment: config.environment,
    monotonicMs: () => performance.now(),
  });
  log.debug({ decisions: warmed }, "the gate is warm");
  const address = await gate.app.listen({ host: config.http.host, port: config.gate.port });
  return {
    name: "gate",
    address,
    probes: {
      gate: async () => {
        await database.query("SELECT 1");
        return watch.state();
      },
    },
    async close() {
      await gate.close();
      await tripTimer.stop();
      await watch.close();
      await rights.close();
      registry.close();
      await database.end();
    },
  };
}
