import { readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Common } from "../cli/actions.ts";
import type { Role } from "../platform/auth.ts";
import { issueLocalToken } from "../platform/auth.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { requireSetting } from "../platform/config.ts";
import { hasPeopleKey, openPeopleKey } from "./people-key.ts";

/** A token for one command: it is never written down. */
const commandTokenSeconds = 300;

const claimsSchema = z.object({
  tenant: z.string().default(""),
  roles: z.array(z.string()).default([]),
  sub: z.string().default(""),
});

/** What a token says of itself; nobody verified it, it only chooses what to try. */
function claimsOf(token: string): z.output<typeof claimsSchema> {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return claimsSchema.parse(payload);
  } catch {
    return { tenant: "", roles: [], sub: "" };
  }
}

export interface TokenWish {
  /** Any of them will do; the first is asked for. */
  readonly roles: readonly [Role, ...Role[]];
  /** A file that holds the token; undefined: the configured one, when it carries a role. */
  readonly tokenFile: string | undefined;
  /** Default: the tenant of the configured token. */
  readonly tenant?: string;
}

/**
 * A token that carries a role: of the file that was named, else of the configured file, else signed for this command alone
 * with the people's key, whose passphrase is asked for on the terminal.
 */
export async function operatorToken(config: Config, common: Common, wish: TokenWish): Promise<string> {
  if (wish.tokenFile !== undefined) return readToken(wish.tokenFile);
  const configured =
    config.tokenFile === undefined ? null : await readToken(config.tokenFile).catch(() => null);
  const claims = claimsOf(configured ?? "");
  const [role] = wish.roles;
  const fits =
    wish.roles.some((one) => claims.roles.includes(one)) &&
    (wish.tenant === undefined || wish.tenant === claims.tenant);
  // A token of elsewhere may name its claims otherwise: only the gate can tell.
  if (configured !== null && (fits || config.authKeysFile === undefined)) return configured;
  if (config.authKeysFile === undefined || !(await hasPeopleKey(config.authKeysFile))) {
    requireSetting(config.authKeysFile, "FABRIC_TOKEN_FILE", `a token with the role ${role} is needed`);
    throw new Fault(
      "ROLE_MISSING",
      `this needs the role ${role}, and an agent's token never has it; make a key for people once with \`fabric tokens issue --role ${role}\` on a terminal, or give --token-file`,
    );
  }
  const passphrase = await common.askSecret(`passphrase of this machine's people (role ${role})`);
  const tenant = wish.tenant ?? claims.tenant;
  return issueLocalToken({
    tenantId: tenant === "" ? "local" : tenant,
    subject: userInfo().username,
    roles: [role],
    lifetimeSeconds: commandTokenSeconds,
    privateKey: await openPeopleKey(config.authKeysFile, passphrase),
    clock: systemClock,
  });
}

async function readToken(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    throw new Fault("CONFIG_INVALID", `the token file \`${file}\` cannot be read`, { cause: error });
  }
}
