import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createAuthenticator, issueLocalToken } from "../platform/auth.ts";
import { createAuthKeysFile, loadAuthKeysFile } from "../platform/auth-keys.ts";
import { systemClock } from "../platform/clock.ts";
import { createPeopleKey, openPeopleKey, peopleKeyFile } from "./people-key.ts";

let dir: string;
let keysFile: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "people-key-"));
  keysFile = join(dir, "token-keys.json");
  await createAuthKeysFile(keysFile);
});
afterEach(() => rm(dir, { recursive: true }));

const passphrase = "correct horse battery";

describe("the key of a machine's people", () => {
  it("vouches for an approver once the passphrase opens it, and never for a runtime", async () => {
    await createPeopleKey(keysFile, passphrase);
    const privateKey = await openPeopleKey(keysFile, passphrase);
    const { verification } = await loadAuthKeysFile(keysFile);
    const token = await issueLocalToken({
      tenantId: "local",
      subject: "ann",
      roles: ["approver", "runtime"],
      lifetimeSeconds: 60,
      privateKey,
      clock: systemClock,
    });
    const caller = await createAuthenticator({ localKeys: verification, clock: systemClock }).authenticate(
      token,
    );
    expect(caller).toMatchObject({ subject: "ann", roles: ["approver"] });
  });

  it("is nothing without the passphrase, and readable by its owner alone", async () => {
    await createPeopleKey(keysFile, passphrase);
    await expect(openPeopleKey(keysFile, "correct horse batterx")).rejects.toMatchObject({
      code: "TOKEN_INVALID",
    });
    const text = await readFile(peopleKeyFile(keysFile), "utf8");
    expect(text).not.toContain('"d"');
    for (const file of [keysFile, peopleKeyFile(keysFile)])
      expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it("is made once, and with a passphrase that is worth guessing", async () => {
    await expect(createPeopleKey(keysFile, "short")).rejects.toMatchObject({ code: "USAGE" });
    await createPeopleKey(keysFile, passphrase);
    await expect(createPeopleKey(keysFile, passphrase)).rejects.toMatchObject({ code: "EEXIST" });
  });

  it("leaves the machine's own key with the role runtime and nothing else", async () => {
    await createPeopleKey(keysFile, passphrase);
    const { signing, verification } = await loadAuthKeysFile(keysFile);
    expect(verification.find(({ jwk }) => jwk.kid === signing.kid)?.roles).toEqual(["runtime"]);
  });
});
