import type { KeyObject } from "node:crypto";
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
} from "node:crypto";
import { Fault } from "../../schemas/faults.ts";

/** The key that signs blocks. */
export interface SealKey {
  /** `ed25519:` and the first 16 hex digits of SHA-256 over the public key. */
  readonly keyId: string;
  readonly publicKey: KeyObject;
  sign(digest: Buffer): Buffer;
}

/** Reads a private Ed25519 key (PKCS#8 PEM); throws KEY_UNAVAILABLE for anything else. */
export function readSealKey(pem: string): SealKey {
  try {
    const privateKey = createPrivateKey(pem);
    if (privateKey.asymmetricKeyType !== "ed25519") throw new Error("the key is not Ed25519");
    return toSealKey(privateKey);
  } catch (error) {
    throw new Fault("KEY_UNAVAILABLE", "the seal key is no Ed25519 key in PKCS#8 PEM form", { cause: error });
  }
}

/** A new key, as PEM: write it to a file that only the sealer can read. */
export function newSealKeyPem(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** The public half of a private key's PEM, for those who verify: SPKI PEM. */
export function toPublicPem(privatePem: string): string {
  return createPublicKey(createPrivateKey(privatePem)).export({ type: "spki", format: "pem" }).toString();
}

/** Reads a public key (SPKI PEM), for those who verify and must not be able to sign. */
export function readPublicKey(pem: string): { readonly keyId: string; readonly publicKey: KeyObject } {
  const publicKey = createPublicKey(pem);
  return { keyId: keyIdOf(publicKey), publicKey };
}

/** Whether the signature over a block's digest is the key's. */
export function isSealedBy(publicKey: KeyObject, digest: Buffer, signature: Buffer): boolean {
  return verify(null, digest, publicKey, signature);
}

function toSealKey(privateKey: KeyObject): SealKey {
  const publicKey = createPublicKey(privateKey);
  return { keyId: keyIdOf(publicKey), publicKey, sign: (digest) => sign(null, digest, privateKey) };
}

function keyIdOf(publicKey: KeyObject): string {
  const spki = publicKey.export({ type: "spki", format: "der" });
  return `ed25519:${createHash("sha256").update(spki).digest("hex").slice(0, 16)}`;
}
