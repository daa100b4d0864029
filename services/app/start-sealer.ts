import { readFile, stat } from "node:fs/promises";
import { readSealKey } from "../audit/seal-key.ts";
import type { SealKey } from "../audit/seal-key.ts";
import { createSealer } from "../audit/sealer.ts";
import { Fault } from "../../schemas/faults.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";
import type { RunningService, Surroundings } from "./wiring.ts";
import { codecWhenRegistered, registryOf, serviceDatabase } from "./wiring.ts";

/** Starts one member of those that close blocks of the audit trail. */
export async function startSealer(around: Surroundings, signal: AbortSignal): Promise<RunningService> {
  const { config } = around;
  const log = around.log.child({ service: "sealer" });
  const key = await loadSealKey(config);
  const database = serviceDatabase(config, "sealer", { maxConnections: 2 });
  const registry = registryOf(config);
  const encoder = await codecWhenRegistered(database, registry, log, signal);
  const sealer = createSealer({
    database,
    encoder,
    key,
    clock: systemClock,
    environment: config.environment,
    log,
  });
  sealer.start();
  return {
    name: "sealer",
    probes: {
      sealer: async () => {
        await database.query("SELECT 1");
        return { state: "up", detail: key.keyId };
      },
    },
    async close() {
      await sealer.stop();
      registry.close();
      await database.end();
    },
  };
}

/** Others than the owner may do nothing with the file. */
const othersBits = 0o077;

/** The key that signs blocks, from its file. */
async function loadSealKey(config: Config): Promise<SealKey> {
  const file = requireSetting(
    config.sealKeyFile,
    "FABRIC_SEAL_KEY_FILE",
    "blocks of the audit trail are signed with it",
  );
  const pem = await readFile(file, "utf8").catch((error: unknown) => {
    throw new Fault("KEY_UNAVAILABLE", `\`${file}\` cannot be read`, { cause: error });
  });
  const { mode } = await stat(file);
  if ((mode & othersBits) !== 0)
    throw new Fault("KEY_UNAVAILABLE", `others may read \`${file}\`; run chmod 600`);
  return readSealKey(pem);
}
