import { stat } from "node:fs/promises";
import type { Authenticator, OidcIssuer } from "../platform/auth.ts";
import { createAuthenticator } from "../platform/auth.ts";
import { loadAuthKeysFile } from "../platform/auth-keys.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";

export interface LocalAuthenticatorOptions {
  readonly keysFile: string | undefined;
  readonly oidc: OidcIssuer | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Between two looks at the file of keys: a person waits for a new key, and a look costs a system call. */
const lookEveryMs = 1_000;

/**
 * The authenticator of configured issuers and of this machine's keys. A key that is added to the file, such as that of
 * its people, counts within a second; a file that does not load leaves the keys of before.
 */
export async function createLocalAuthenticator({
  keysFile,
  oidc,
  clock,
  log,
}: LocalAuthenticatorOptions): Promise<Authenticator> {
  const load = async (): Promise<Authenticator> =>
    createAuthenticator({
      localKeys: keysFile === undefined ? [] : (await loadAuthKeysFile(keysFile)).verification,
      ...(oidc === undefined ? {} : { oidc: [oidc] }),
      clock,
    });
  let current = await load();
  if (keysFile === undefined) return current;
  const markOf = (): Promise<string> =>
    stat(keysFile).then(
      ({ mtimeMs, ino, size }) => `${String(mtimeMs)}/${String(ino)}/${String(size)}`,
      () => "gone",
    );
  let mark = await markOf();
  let lookedMs = clock.nowMs();

  async function refresh(): Promise<void> {
    const found = await markOf();
    if (found === mark) return;
    mark = found;
    try {
      current = await load();
      log.info("the file of token keys was read again");
    } catch (error) {
      log.warn(
        { reason: String(error) },
        "the changed file of token keys does not load; the keys before stay",
      );
    }
  }

  return {
    async authenticate(token) {
      const nowMs = clock.nowMs();
      if (Math.abs(nowMs - lookedMs) >= lookEveryMs) {
        lookedMs = nowMs;
        await refresh();
      }
      return current.authenticate(token);
    },
  };
}
