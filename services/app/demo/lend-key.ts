import { issueLocalToken } from "../../platform/auth.ts";
import type { Role } from "../../platform/auth.ts";
import { loadAuthKeysFile, newAuthKeys } from "../../platform/auth-keys.ts";
import { systemClock } from "../../platform/clock.ts";
import { writeAtomically } from "../../stack/state.ts";
import type { World } from "./world.ts";

const tenantId = "local";
/** The story is over long before. */
const tokenSeconds = 300;

/** A key of the story's own people, which the gate knows for this step; the machine's own people keep theirs. */
export async function lendKey(world: World): Promise<{
  token(subject: string, role: Role): Promise<string>;
  takeBack(): Promise<void>;
}> {
  const path = world.files.authKeysFile;
  const before = await loadAuthKeysFile(path);
  const { signing, verification } = newAuthKeys();
  const lent = verification.map(({ jwk }) => ({ jwk, roles: ["approver", "resource", "incident"] as const }));
  const write = (keys: object): Promise<void> =>
    writeAtomically(path, `${JSON.stringify(keys, null, 2)}\n`, 0o600);
  await write({ ...before, verification: [...before.verification, ...lent] });
  const token = (subject: string, role: Role): Promise<string> =>
    issueLocalToken({
      tenantId,
      subject,
      roles: [role],
      lifetimeSeconds: tokenSeconds,
      privateKey: signing,
      clock: systemClock,
    });
  const probe = await token("ann", "approver");
  await world.until(
    () => world.ask("GET", "/v1/approvals", undefined, probe),
    ({ status }) => status === 200,
  );
  return { token, takeBack: () => write(before) };
}
