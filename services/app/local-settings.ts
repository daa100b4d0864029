import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { DatabaseUser } from "../platform/config.ts";
import type { StackEndpoints } from "../stack/stack.ts";
import { freePort, isFree } from "../stack/ports.ts";
import { writeAtomically } from "../stack/state.ts";
import type { LocalFiles } from "./place.ts";

/** Addresses of a local stack, when they are free: the ones in the documentation. */
const usualGatePort = 7411;
const usualDeskPort = 7412;

const passwordsSchema = z.record(z.string(), z.string().min(16));

/** A password per Postgres role, made once and kept with mode 0600. */
export async function loadOrMakePasswords(files: LocalFiles): Promise<Record<string, string>> {
  await mkdir(files.dir, { recursive: true, mode: 0o700 });
  const roles = z
    .record(z.string(), z.string())
    .parse(JSON.parse(await readFile(`${files.migrationsDir}/roles.json`, "utf8")));
  const known: Record<string, string> = await readFile(files.passwordsFile, "utf8").then(
    (text) => passwordsSchema.parse(JSON.parse(text)),
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return {};
      throw new Fault("CONFIG_INVALID", `\`${files.passwordsFile}\` cannot be read`, { cause: error });
    },
  );
  const all = { ...known };
  for (const role of Object.keys(roles)) all[role] ??= randomBytes(24).toString("base64url");
  await writeAtomically(files.passwordsFile, `${JSON.stringify(all, null, 2)}\n`, 0o600);
  return all;
}

/** Writes the settings of a local stack as an env file with mode 0600; gate and desk keep their ports. */
export async function writeLocalSettings(
  files: LocalFiles,
  endpoints: StackEndpoints,
  passwords: Readonly<Record<string, string>>,
): Promise<void> {
  const gatePort = await keepPort(files, "FABRIC_GATE_PORT", usualGatePort);
  const deskPort = await keepPort(files, "FABRIC_DESK_PORT", usualDeskPort);
  const lines: [string, string][] = [
    ["FABRIC_ENVIRONMENT", "local"],
    ["FABRIC_KAFKA_BROKERS", endpoints.kafkaBrokers.join(",")],
    ["FABRIC_REGISTRY_URL", endpoints.registryUrl],
    ["FABRIC_GATE_PORT", String(gatePort)],
    ["FABRIC_GATE_URL", `http://127.0.0.1:${String(gatePort)}`],
    ["FABRIC_DESK_PORT", String(deskPort)],
    ["FABRIC_DESK_URL", `http://127.0.0.1:${String(deskPort)}`],
    ["FABRIC_POLICY_DIR", files.policyDir],
    // The agents of a local stack work on this machine.
    ["FABRIC_GATE_LOCAL_FILES", "true"],
    ["FABRIC_GATE_SPOOL_FILE", join(files.dir, "gate-spool.jsonl")],
    ["FABRIC_KEK_FILE", files.kekFile],
    ["FABRIC_AUTH_KEYS_FILE", files.authKeysFile],
    ["FABRIC_CAPABILITY_KEYS_FILE", files.capabilityKeysFile],
    ["FABRIC_SEAL_KEY_FILE", files.sealKeyFile],
    ["FABRIC_SEAL_PUBLIC_KEYS_DIR", files.sealPublicKeysDir],
    ["FABRIC_TOKEN_FILE", files.tokenFile],
    ["FABRIC_REPORTER_TOKENS_DIR", files.reporterTokensDir],
    ["FABRIC_DATABASE_URL_ADMIN", endpoints.postgresUrl],
  ];
  for (const [role, password] of Object.entries(passwords)) {
    const user = role.replace(/^fabric_/, "") as DatabaseUser;
    lines.push([`FABRIC_DATABASE_URL_${user.toUpperCase()}`, roleUrl(endpoints.postgresUrl, role, password)]);
  }
  const text = [
    "# Settings of the local stack, written by `fabric up`.",
    ...lines.map(([k, v]) => `${k}=${v}`),
    "",
  ];
  await writeAtomically(files.envFile, text.join("\n"), 0o600);
}

function roleUrl(adminUrl: string, role: string, password: string): string {
  const address = new URL(adminUrl);
  address.username = role;
  address.password = password;
  return address.href;
}

async function keepPort(files: LocalFiles, name: string, usual: number): Promise<number> {
  const kept = await readSetting(files, name);
  // A service that runs already holds its port: it stays the stack's port.
  if (kept !== null) return Number(kept);
  return (await isFree(usual)) ? usual : freePort();
}

/** Writes a secret once, mode 0600; what is there stays. */
export async function writeSecretOnce(path: string, make: () => string | Promise<string>): Promise<void> {
  try {
    await writeFile(path, await make(), { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    await chmod(path, 0o600);
  }
}

/** One setting of a local stack; null before its first start. */
export async function readSetting(files: LocalFiles, name: string): Promise<string | null> {
  const text = await readFile(files.envFile, "utf8").catch(() => "");
  return new RegExp(`^${name}=(.*)$`, "m").exec(text)?.[1] ?? null;
}
