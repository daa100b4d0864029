import { createCipheriv, createDecipheriv, randomFillSync } from "node:crypto";
import { Fault } from "../../schemas/faults.ts";

/** AES-256-GCM with the 96-bit nonce and the 128-bit tag that NIST SP 800-38D recommends. */
const cipherName = "aes-256-gcm";
/** Lengths in bytes. */
export const keyBytes = 32;
export const nonceBytes = 12;
export const tagBytes = 16;

/** Bytes that only the key and the same associated text open. */
export interface SealedBox {
  readonly nonce: Buffer;
  readonly tag: Buffer;
  readonly sealed: Buffer;
}

/** Random bytes are drawn for many nonces at once; each is handed out once. */
const noncePool = Buffer.alloc(nonceBytes * 256);
let nonceAt = noncePool.length;

function newNonce(): Buffer {
  if (nonceAt === noncePool.length) {
    randomFillSync(noncePool);
    nonceAt = 0;
  }
  nonceAt += nonceBytes;
  return Buffer.from(noncePool.subarray(nonceAt - nonceBytes, nonceAt));
}

/** Seals bytes; `associated` says where they belong and is checked when they are opened. */
export function sealBox(key: Buffer, bytes: Buffer, associated: string): SealedBox {
  const nonce = newNonce();
  const cipher = createCipheriv(cipherName, key, nonce);
  cipher.setAAD(Buffer.from(associated, "utf8"));
  const sealed = Buffer.concat([cipher.update(bytes), cipher.final()]);
  return { nonce, tag: cipher.getAuthTag(), sealed };
}

/** Opens them; throws EVIDENCE_CORRUPT when bytes, key or place are other ones. */
export function openBox(key: Buffer, { nonce, tag, sealed }: SealedBox, associated: string): Buffer {
  try {
    const decipher = createDecipheriv(cipherName, key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(Buffer.from(associated, "utf8"));
    decipher.setAuthTag(tag);
    return Buffer.concat([decipher.update(sealed), decipher.final()]);
  } catch (error) {
    throw new Fault("EVIDENCE_CORRUPT", "the bytes were changed, moved or sealed with another key", {
      cause: error,
    });
  }
}
