import { Fault } from "../../schemas/faults.ts";
import type { Common } from "../cli/actions.ts";
import type { Role } from "../platform/auth.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { createLog } from "../platform/log.ts";
import type { Actor } from "../replay/shadow-rows.ts";
import { createLocalAuthenticator } from "./local-authenticator.ts";
import { operatorToken } from "./operator-token.ts";

const roles = ["sre", "admin"] as const satisfies readonly [Role, ...Role[]];
/** Projections hold every tenant's rows: whoever works on them works for the whole installation. */
const tenant = "fabric";

/** Who is at the terminal, by a verified token. Throws ROLE_MISSING for anybody who runs no installation. */
export async function replayActor(
  config: Config,
  common: Common,
  tokenFile: string | undefined,
): Promise<Actor> {
  const token = await operatorToken(config, common, { roles, tokenFile, tenant });
  const authenticator = await createLocalAuthenticator({
    keysFile: config.authKeysFile,
    oidc: config.oidc,
    clock: systemClock,
    log: createLog({ service: "replay", level: "fatal" }),
  });
  const caller = await authenticator.authenticate(token);
  if (caller.tenantId !== tenant || !roles.some((role) => caller.roles.includes(role)))
    throw new Fault(
      "ROLE_MISSING",
      `shadows are for the role sre or admin of the tenant \`${tenant}\`; \`fabric tokens issue --role sre --tenant ${tenant}\` makes such a token`,
    );
  return { person: caller.subject, tenant: caller.tenantId, issuer: caller.issuer };
}
