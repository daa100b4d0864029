import { hash, randomFillSync } from "node:crypto";
import type { Clock } from "./clock.ts";

const randomPool = Buffer.alloc(4096);
let randomUsed = randomPool.length;
let lastMs = 0;
let sequence = 0;

/**
 * A UUIDv7 (RFC 9562): 48 bits of UTC milliseconds, then a 12-bit counter that keeps ids of one process in order
 * within a millisecond, then 62 random bits.
 */
export function newUuidV7(nowMs: number): string {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    sequence = 0;
  } else {
    sequence += 1;
    // More than 4,096 ids in a millisecond, or a clock that went back: run ahead rather than repeat.
    if (sequence > 0xfff) {
      lastMs += 1;
      sequence = 0;
    }
  }
  if (randomUsed + 8 > randomPool.length) {
    randomFillSync(randomPool);
    randomUsed = 0;
  }
  const bytes = Buffer.allocUnsafe(16);
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | sequence, 6);
  randomPool.copy(bytes, 8, randomUsed, randomUsed + 8);
  randomUsed += 8;
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return toUuidText(bytes);
}

/** A UUIDv8 made from a name by SHA-256: the same name always gives the same id. */
export function derivedUuid(name: string): string {
  const bytes = hash("sha256", name, "buffer").subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return toUuidText(bytes);
}

/** A new event id: `evt_` and a UUIDv7. */
export function newEventId(clock: Clock): string {
  return `evt_${newUuidV7(clock.nowMs())}`;
}

/** The id of what a processor asks to publish: the same emission made twice is one event. */
export function emissionEventId(
  processor: string,
  type: string,
  tenantId: string,
  dedupeKey: string,
): string {
  return `evt_${derivedUuid(JSON.stringify(["emission", processor, type, tenantId, dedupeKey]))}`;
}

/** The UUID inside a prefixed id such as `evt_…` or `cor_…`. */
export function toUuid(prefixedId: string): string {
  return prefixedId.slice(prefixedId.indexOf("_") + 1);
}

function toUuidText(bytes: Buffer): string {
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
