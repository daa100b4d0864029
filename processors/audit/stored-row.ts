import type { DigestFields } from "./row-digest.ts";
import { contentFields, toDigests, toRowDigest } from "./row-digest.ts";

/**
 * Digests made anew from a row of the table. Of an erased row the content digest is taken as it stands, and that it was
 * not changed shows in the block; but only while its content really is blank: a row that calls itself erased and still
 * says something says something else than what was sealed.
 */
export function digestsOfStoredRow(row: Readonly<Record<string, unknown>>): {
  readonly content: Buffer;
  readonly row: Buffer;
} {
  const fields = row as DigestFields;
  const isBlank = contentFields.every((name) => fields[name] == null);
  if (row["erased_at"] == null || !isBlank) return toDigests(fields);
  const content = row["content_digest"] as Buffer;
  return { content, row: toRowDigest(fields, content) };
}
