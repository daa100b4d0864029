import { randomBytes, scrypt } from "node:crypto";
import { chmod, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { Fault } from "../../schemas/faults.ts";
import type { Role } from "../platform/auth.ts";
import { roles } from "../platform/auth.ts";
import type { AuthKeys } from "../platform/auth-keys.ts";
import { loadAuthKeysFile, newAuthKeys } from "../platform/auth-keys.ts";
import { loadOwnerOnlyJson } from "../platform/owner-only-file.ts";
import { keyBytes, openBox, sealBox } from "../platform/sealed-box.ts";
import { writeAtomically } from "../stack/state.ts";

/** Roles that a person takes and no agent: their key opens with a passphrase. */
export const peopleRoles: readonly Role[] = roles.filter((role) => role !== "runtime");

const base64 = z.base64().min(1);
const fileSchema = z.strictObject({
  /** The public half, as the gate knows it. */
  kid: z.string().min(1),
  scrypt: z.strictObject({
    salt: base64,
    /** Cost: at least what this version makes, at most what memory allows. */
    n: z
      .number()
      .int()
      .min(2 ** 14)
      .max(2 ** 18),
  }),
  nonce: base64,
  tag: base64,
  sealed: base64,
});

/** 64 MiB and about 0.2 s a guess. */
const scryptCost = 2 ** 16;
export const passphraseMinChars = 12;
/** Where it lies: beside the machine's own key. */
export function peopleKeyFile(authKeysFile: string): string {
  return join(dirname(authKeysFile), "people-key.json");
}

/** Whether this machine has a key for people. */
export async function hasPeopleKey(authKeysFile: string): Promise<boolean> {
  return stat(peopleKeyFile(authKeysFile)).then(
    () => true,
    () => false,
  );
}

/** Throws USAGE for a passphrase that is too short to seal a key. */
export function refuseShort(passphrase: string): void {
  if (passphrase.length < passphraseMinChars)
    throw new Fault("USAGE", `the passphrase needs at least ${String(passphraseMinChars)} characters`);
}

/** Makes the key of this machine's people, sealed by a passphrase, and tells the gate of it. */
export async function createPeopleKey(authKeysFile: string, passphrase: string): Promise<void> {
  refuseShort(passphrase);
  const { signing, verification } = newAuthKeys();
  const kid = signing.kid ?? "";
  const salt = randomBytes(16);
  const key = await derive(passphrase, salt, scryptCost);
  const { nonce, tag, sealed } = sealBox(
    key,
    Buffer.from(JSON.stringify(signing), "utf8"),
    `people-key\n${kid}`,
  );
  const file: z.output<typeof fileSchema> = {
    kid,
    scrypt: { salt: salt.toString("base64"), n: scryptCost },
    nonce: nonce.toString("base64"),
    tag: tag.toString("base64"),
    sealed: sealed.toString("base64"),
  };
  // First the sealed key: a gate that knows a key which nobody has is harmless, the other way round is not noticed.
  await writeFile(peopleKeyFile(authKeysFile), `${JSON.stringify(file, null, 2)}\n`, {
    mode: 0o600,
    flag: "wx",
  });
  const known = await loadAuthKeysFile(authKeysFile);
  const jwk = verification[0]?.jwk;
  if (jwk === undefined) throw new Fault("INTERNAL", "a new key has no public half");
  const keys = { ...known, verification: [...known.verification, { jwk, roles: [...peopleRoles] }] };
  await writeAtomically(authKeysFile, `${JSON.stringify(keys, null, 2)}\n`, 0o600);
  await chmod(authKeysFile, 0o600);
}

/** Opens it. A wrong passphrase is TOKEN_INVALID, like every other wrong proof. */
export async function openPeopleKey(authKeysFile: string, passphrase: string): Promise<AuthKeys["signing"]> {
  const path = peopleKeyFile(authKeysFile);
  const parsed = fileSchema.safeParse(await loadOwnerOnlyJson(path));
  if (!parsed.success)
    throw new Fault("CONFIG_INVALID", `\`${path}\` is not a key file of \`fabric tokens issue\``);
  const { kid, scrypt: cost, ...box } = parsed.data;
  const key = await derive(passphrase, Buffer.from(cost.salt, "base64"), cost.n);
  let bytes: Buffer;
  try {
    const sealed = {
      nonce: Buffer.from(box.nonce, "base64"),
      tag: Buffer.from(box.tag, "base64"),
      sealed: Buffer.from(box.sealed, "base64"),
    };
    bytes = openBox(key, sealed, `people-key\n${kid}`);
  } catch (error) {
    throw new Fault("TOKEN_INVALID", "the passphrase is wrong", { cause: error });
  }
  return JSON.parse(bytes.toString("utf8")) as AuthKeys["signing"];
}

function derive(passphrase: string, salt: Buffer, cost: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // scrypt needs 128 * n * r bytes; Node's own limit is half of that.
    const options = { N: cost, r: 8, p: 1, maxmem: 256 * cost * 8 };
    scrypt(passphrase.normalize("NFC"), salt, keyBytes, options, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}
