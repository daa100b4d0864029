import { loadBookedMonths } from "../../processors/cost/closings.ts";
import { loadEvidence } from "../../processors/takeover/queries.ts";
import { createDesk } from "../desk/server.ts";
import { systemClock } from "../platform/clock.ts";
import { requireSetting } from "../platform/config.ts";
import { createKafkaOffsets } from "../platform/kafka-offsets.ts";
import { recoveryAccess, registerRecoveryRoutes } from "../recovery/routes.ts";
import { loadCorrectedCall } from "./corrected-call.ts";
import { createLocalAuthenticator } from "./local-authenticator.ts";
import type { RunningService, Surroundings } from "./wiring.ts";
import { codecWhenRegistered, kafkaEndpoint, registryOf, serviceDatabase } from "./wiring.ts";

/** People are few and slow; one more for the watch. */
const deskConnections = 4;
const recoveryConnections = 3;

/** Starts the desk; it listens when schema ids are loaded. */
export async function startDesk(around: Surroundings, signal: AbortSignal): Promise<RunningService> {
  const { config, metrics } = around;
  const log = around.log.child({ service: "desk" });
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
  const database = serviceDatabase(config, "desk", { maxConnections: deskConnections });
  const recovery = serviceDatabase(config, "recovery", { maxConnections: recoveryConnections });
  const offsets = createKafkaOffsets({ endpoint: kafkaEndpoint(config, "fabric-recovery"), log });
  const registry = registryOf(config);
  const codec = await codecWhenRegistered(database, registry, log, signal);
  const probes = {
    desk: async () => {
      await database.query("SELECT 1");
      return { state: "up" as const };
    },
  };
  const desk = createDesk({
    database,
    codec,
    clock: systemClock,
    environment: config.environment,
    log,
    metrics,
    authenticator,
    loadEvidence,
    loadCorrectedCall,
    loadBookedMonths,
    probes,
    mounts: [
      {
        access: recoveryAccess,
        register: (app) =>
          registerRecoveryRoutes(app, {
            database: recovery,
            codec,
            clock: systemClock,
            environment: config.environment,
            offsets,
          }),
      },
    ],
  });
  const address = await desk.app.listen({ host: config.http.host, port: config.desk.port });
  return {
    name: "desk",
    address,
    probes,
    async close() {
      await desk.close();
      registry.close();
      await offsets.close();
      await recovery.end();
      await database.end();
    },
  };
}
