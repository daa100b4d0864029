import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { Fault } from "../../schemas/faults.ts";
import type { Common } from "../cli/actions.ts";
import type { Report } from "../cli/report.ts";
import type { AuthKeys } from "../platform/auth-keys.ts";
import { loadAuthKeysFile } from "../platform/auth-keys.ts";
import type { Role } from "../platform/auth.ts";
import { issueLocalToken, roles } from "../platform/auth.ts";
import { budgetReporter } from "../platform/budget-reporter.ts";
import { systemClock } from "../platform/clock.ts";
import { writeAtomically } from "../stack/state.ts";
import {
  createPeopleKey,
  hasPeopleKey,
  openPeopleKey,
  passphraseMinChars,
  peopleRoles,
  refuseShort,
} from "./people-key.ts";
import { loadWatchKey } from "./watch-key.ts";

/** Longest life of a token that lets a person act: a working day. */
const peopleTokenMaxSeconds = 8 * 3_600;

/**
 * Signs a token: of the role runtime with the machine's own key, of every other role with the people's key, which a
 * passphrase opens. The first such token makes that key.
 */
export async function issueToken(
  keysFile: string,
  options: {
    role: string;
    tenant: string;
    subject: string | undefined;
    ttl: number;
    out: string | undefined;
  },
  { askSecret, screen }: Pick<Common, "askSecret" | "screen">,
): Promise<Report> {
  const role = roles.find((one) => one === options.role);
  if (role === undefined)
    throw new Fault("USAGE", `\`${options.role}\` is no role; roles are ${roles.join(", ")}`);
  const isWatch = role === "reporter" && options.subject === budgetReporter;
  const isForPeople = peopleRoles.includes(role) && !isWatch;
  if (isForPeople && options.ttl > peopleTokenMaxSeconds) {
    throw new Fault(
      "USAGE",
      `a token of the role ${role} lives ${String(peopleTokenMaxSeconds)} seconds at most; give a shorter --ttl`,
    );
  }
  const privateKey = isWatch
    ? await loadWatchKey(join(dirname(keysFile), "watch-key.json"))
    : isForPeople
      ? await unlockPeopleKey(keysFile, { askSecret, screen })
      : await machineKey(keysFile, role);
  const token = await issueLocalToken({
    tenantId: options.tenant,
    // An approver has to be somebody else than the agent's developer.
    subject: options.subject ?? (isForPeople ? userInfo().username : "developer"),
    roles: [role],
    lifetimeSeconds: options.ttl,
    privateKey,
    clock: systemClock,
  });
  const about = { role, tenant: options.tenant, expires_in_seconds: options.ttl };
  if (options.out === undefined) return { json: { token, ...about }, text: token };
  await writeToken(options.out, token);
  return {
    json: { file: options.out, ...about },
    text: `${options.out} holds a token of the role ${role}; give it with --token-file ${options.out}`,
  };
}

async function writeToken(file: string, token: string): Promise<void> {
  try {
    await writeAtomically(file, `${token}\n`, 0o600);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new Fault("USAGE", `\`${file}\` cannot be written: ${code}`, { cause: error });
  }
}

async function machineKey(keysFile: string, role: Role): Promise<AuthKeys["signing"]> {
  const keys = await loadAuthKeysFile(keysFile);
  const allowed = keys.verification.find(({ jwk }) => jwk.kid === keys.signing.kid)?.roles ?? [];
  if (allowed.includes(role)) return keys.signing;
  throw new Fault("ROLE_MISSING", `the key of this machine vouches for ${allowed.join(", ")} only`);
}

async function unlockPeopleKey(
  keysFile: string,
  { askSecret, screen }: Pick<Common, "askSecret" | "screen">,
): Promise<AuthKeys["signing"]> {
  if (await hasPeopleKey(keysFile)) {
    return openPeopleKey(keysFile, await askSecret("passphrase of this machine's people"));
  }
  screen.progress("this machine has no key for people yet: choose its passphrase, and tell it to no agent");
  const passphrase = await askSecret(`new passphrase, at least ${String(passphraseMinChars)} characters`);
  refuseShort(passphrase);
  if ((await askSecret("the same again")) !== passphrase) {
    throw new Fault("USAGE", "the two passphrases differ; nothing was made");
  }
  await createPeopleKey(keysFile, passphrase);
  return openPeopleKey(keysFile, passphrase);
}
