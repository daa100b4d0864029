import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { analystGroup } from "../analytics/analysts.ts";
import { systemClock } from "../platform/clock.ts";
import { createAuthKeysFile, loadAuthKeysFile } from "../platform/auth-keys.ts";
import { createCapabilityKeysFile } from "../gate/capability/capability-keys.ts";
import { issueLocalToken } from "../platform/auth.ts";
import { budgetReporter } from "../platform/budget-reporter.ts";
import type { Config } from "../platform/config.ts";
import { loadConfig } from "../platform/config.ts";
import { migrate } from "../platform/migrate.ts";
import { writeAtomically } from "../stack/state.ts";
import type { StackEndpoints } from "../stack/stack.ts";
import { createKekFile } from "../vault/kek-file.ts";
import { applyAll, registerAll } from "./contract-actions.ts";
import { loadOrMakePasswords, writeLocalSettings, writeSecretOnce } from "./local-settings.ts";
import type { LocalFiles } from "./place.ts";
import { newSealKeyPem, readPublicKey, toPublicPem } from "../audit/seal-key.ts";
import { createWatchKey, loadWatchKey } from "./watch-key.ts";
import { serviceDatabase } from "./wiring.ts";

/** The one tenant of a local stack. */
export const localTenant = "local";
/** A workbench token; `fabric up` makes a new one each time. */
const tokenLifetimeSeconds = 7 * 24 * 3600;

/**
 * Makes a fresh stack ready for the services: keys, settings, migrations, the local tenant, schemas, topics. Each step
 * is safe to repeat, so that a start that was killed halfway is simply started again.
 */
export async function prepareLocal(
  files: LocalFiles,
  endpoints: StackEndpoints,
  progress: (text: string) => void,
): Promise<Config> {
  const passwords = await loadOrMakePasswords(files);
  await createKekFile(files.kekFile);
  await createAuthKeysFile(files.authKeysFile);
  await createWatchKey(files.watchKeyFile, files.authKeysFile);
  await createCapabilityKeysFile(files.capabilityKeysFile);
  await writeSecretOnce(files.sealKeyFile, newSealKeyPem);
  await publishSealKey(files);
  await writeLocalSettings(files, endpoints, passwords);
  const config = loadConfig({ envFile: files.envFile });
  const { applied } = await migrate({
    adminUrl: endpoints.postgresUrl,
    migrationsDir: files.migrationsDir,
    rolePasswords: passwords,
  });
  progress(
    applied.length === 0 ? "migrations: nothing new" : `migrations: ${String(applied.length)} applied`,
  );
  await addTenant(config);
  await issueRuntimeToken(files);
  await issueWatchToken(files);
  const { registrations } = await registerAll(config);
  const fresh = registrations.filter((one) => one.state === "new").length;
  progress(`schemas: ${String(registrations.length)} registered (${String(fresh)} new), FULL_TRANSITIVE`);
  const topics = await applyAll(config);
  progress(`topics: ${topics.text.split("\n").length > 3 ? "created" : topics.text}`);
  return config;
}

/** The public half under its own name, so that blocks of an earlier key still verify after a rotation. */
async function publishSealKey(files: LocalFiles): Promise<void> {
  const pem = toPublicPem(await readFile(files.sealKeyFile, "utf8"));
  const { keyId } = readPublicKey(pem);
  await mkdir(files.sealPublicKeysDir, { recursive: true });
  await writeFile(join(files.sealPublicKeysDir, `${keyId.replace(":", "-")}.pem`), pem);
}

async function addTenant(config: Config): Promise<void> {
  const database = serviceDatabase(config, "admin");
  try {
    await database.query("INSERT INTO access.tenants (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING", [
      localTenant,
    ]);
    // Who has the settings of this machine's stack reads its tenant; logins of other people are granted by name.
    await database.query(
      "INSERT INTO access.analyst_tenants (role_name, tenant_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
      [analystGroup, localTenant],
    );
  } finally {
    await database.end();
  }
}

async function issueRuntimeToken(files: LocalFiles): Promise<void> {
  const keys = await loadAuthKeysFile(files.authKeysFile);
  const token = await issueLocalToken({
    tenantId: localTenant,
    subject: "developer",
    roles: ["runtime"],
    lifetimeSeconds: tokenLifetimeSeconds,
    privateKey: keys.signing,
    clock: systemClock,
  });
  await rm(files.tokenFile, { force: true });
  await writeFile(files.tokenFile, `${token}\n`, { mode: 0o600 });
}

async function issueWatchToken(files: LocalFiles): Promise<void> {
  const token = await issueLocalToken({
    tenantId: localTenant,
    subject: budgetReporter,
    roles: ["reporter"],
    lifetimeSeconds: tokenLifetimeSeconds,
    privateKey: await loadWatchKey(files.watchKeyFile),
    clock: systemClock,
  });
  await mkdir(files.reporterTokensDir, { recursive: true, mode: 0o700 });
  await writeAtomically(join(files.reporterTokensDir, `${localTenant}.token`), `${token}\n`, 0o600);
}
