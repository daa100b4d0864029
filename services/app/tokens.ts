import { Fault } from "../../schemas/faults.ts";
import type { Report } from "../cli/report.ts";
import type { Role } from "../platform/auth.ts";
import { issueLocalToken, roles } from "../platform/auth.ts";
import { loadAuthKeysFile } from "../platform/auth-keys.ts";
import { systemClock } from "../platform/clock.ts";

/** Signs a token with the machine's key, for roles that this key may vouch for. */
export async function issueToken(
  keysFile: string,
  options: { role: string; tenant: string; subject: string; ttl: number },
): Promise<Report> {
  const role = roles.find((one) => one === options.role);
  if (role === undefined)
    throw new Fault("USAGE", `\`${options.role}\` is no role; roles are ${roles.join(", ")}`);
  const keys = await loadAuthKeysFile(keysFile);
  const allowed: readonly Role[] =
    keys.verification.find(({ jwk }) => jwk.kid === keys.signing.kid)?.roles ?? [];
  if (!allowed.includes(role)) {
    throw new Fault(
      "ROLE_MISSING",
      `the key of this machine vouches for ${allowed.join(", ")} only: an agent runs as the same user. Tokens with the role ${role} come from an OIDC issuer (FABRIC_OIDC_ISSUER)`,
    );
  }
  const token = await issueLocalToken({
    tenantId: options.tenant,
    subject: options.subject,
    roles: [role],
    lifetimeSeconds: options.ttl,
    privateKey: keys.signing,
    clock: systemClock,
  });
  return { json: { token, role, tenant: options.tenant, expires_in_seconds: options.ttl }, text: token };
}
