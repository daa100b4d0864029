import { hash } from "node:crypto";

/**
 * The episode of a correlation: `epi_` and a UUIDv8 (RFC 9562) made from tenant and correlation by SHA-256, so that the
 * same goal has the same id in every rebuild, and never that of another tenant.
 */
export function episodeIdOf(tenantId: string, correlationId: string): string {
  const bytes = hash("sha256", JSON.stringify(["eval", tenantId, correlationId]), "buffer").subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  return `epi_${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
