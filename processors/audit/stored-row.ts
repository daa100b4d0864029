import type { DigestFields } from "./row-digest.ts";
import { toDigests, toRowDigest } from "./row-digest.ts";

/**
 * Digests made anew from a row of the table. Of an erased row the content digest is taken as it stands: that it was not
 * changed shows in the block.
 */
export function digestsOfStoredRow(row: Readonly<Record<string, unknown>>): {
  readonly content: Buffer;
  readonly row: Buffer;
} {
  const fields = row as DigestFields;
  if (row["erased_at"] == null) return toDigests(fields);
  const content = row["content_digest"] as Buffer;
  return { content, row: toRowDigest(fields, content) };
}
