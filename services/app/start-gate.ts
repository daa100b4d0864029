import { claudeCode } from "../adapters/claude-code/claude-code.ts";
import { codex } from "../adapters/codex/codex.ts";
import { loadBundle } from "../gate/bundle.ts";
import { createGate } from "../gate/server.ts";
import { createAuthenticator } from "../platform/auth.ts";
import { loadAuthKeysFile } from "../platform/auth-keys.ts";
import { systemClock } from "../platform/clock.ts";
import { requireSetting } from "../platform/config.ts";
import { openTenantKeys } from "../platform/vault-seal.ts";
import { loadKekFile } from "../vault/kek-file.ts";
import type { RunningService, Surroundings } from "./wiring.ts";
import { codecWhenRegistered, registryOf, serviceDatabase } from "./wiring.ts";

/** Adapters that ship, by the name in `/v1/hooks/<runtime>`. */
const adapters = new Map([claudeCode, codex].map((adapter) => [adapter.runtime, adapter]));

/** Two groups on the wire, one for facts, one for evidence that is too large for a group. */
const gateConnections = 6;
/** A decision cannot wait for longer than its budget; a connection that takes more is no use to it. */
const connectTimeoutMs = 1_000;
/** After a fail-over the old connections are silent: each is given up soon, so that the pool is not full of them. */
const silentMs = 2_000;

/** Starts the gate; it listens when policy, keys and schema ids are loaded. */
export async function startGate(around: Surroundings, signal: AbortSignal): Promise<RunningService> {
  const { config, metrics } = around;
  const log = around.log.child({ service: "gate" });
  const bundle = await loadBundle(
    requireSetting(config.gate.policyDir, "FABRIC_POLICY_DIR", "the gate has no policy of its own"),
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
  const localKeys =
    config.authKeysFile === undefined ? [] : (await loadAuthKeysFile(config.authKeysFile)).verification;
  const database = serviceDatabase(config, "gate", {
    maxConnections: gateConnections,
    connectTimeoutMs,
    statementTimeoutMs: silentMs,
    queryTimeoutMs: silentMs,
  });
  const registry = registryOf(config);
  const codec = await codecWhenRegistered(database, registry, log, signal);
  const gate = createGate({
    database,
    codec,
    keys: openTenantKeys(database, kek),
    bundle,
    clock: systemClock,
    environment: config.environment,
    log,
    metrics,
    authenticator: createAuthenticator({
      localKeys,
      ...(config.oidc === undefined ? {} : { oidc: [config.oidc] }),
      clock: systemClock,
    }),
    adapters,
    budgetMs: config.gate.budgetMs,
    bodyLimitBytes: config.gate.bodyLimitBytes,
  });
  const address = await gate.app.listen({ host: config.http.host, port: config.gate.port });
  return {
    name: "gate",
    address,
    probes: {
      gate: async () => {
        await database.query("SELECT 1");
        return { state: "up", detail: bundle.revision };
      },
    },
    async close() {
      await gate.close();
      registry.close();
      await database.end();
    },
  };
}
