import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { issueLocalToken } from "../platform/auth.ts";
import { createAuthKeysFile } from "../platform/auth-keys.ts";
import { createLog } from "../platform/log.ts";
import { createLocalAuthenticator } from "./local-authenticator.ts";
import { createPeopleKey, openPeopleKey } from "./people-key.ts";

let dir: string;
let keysFile: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "local-authenticator-"));
  keysFile = join(dir, "token-keys.json");
  await createAuthKeysFile(keysFile);
});
afterEach(() => rm(dir, { recursive: true }));

it("takes a key that was added while it runs, and keeps its keys when the file is broken", async () => {
  let nowMs = Date.now();
  const clock = { nowMs: () => nowMs };
  const log = createLog({ service: "gate", level: "silent" });
  const authenticator = await createLocalAuthenticator({ keysFile, oidc: undefined, clock, log });
  await createPeopleKey(keysFile, "correct horse battery");
  const token = await issueLocalToken({
    tenantId: "local",
    subject: "ann",
    roles: ["approver"],
    lifetimeSeconds: 600,
    privateKey: await openPeopleKey(keysFile, "correct horse battery"),
    clock,
  });
  await expect(authenticator.authenticate(token)).rejects.toMatchObject({ code: "TOKEN_INVALID" });
  nowMs += 2_000;
  expect(await authenticator.authenticate(token)).toMatchObject({ subject: "ann", roles: ["approver"] });
  await writeFile(keysFile, "{");
  nowMs += 2_000;
  expect(await authenticator.authenticate(token)).toMatchObject({ subject: "ann" });
});
