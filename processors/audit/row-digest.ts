import { hash } from "node:crypto";

/** Version of the byte form below. A change of fields or form is a new version; old rows keep theirs. */
export const digestVersion = 1;

/** Fields that an erasure blanks. */
/** What an erasure blanks. */
export const contentFields = ["user_id", "resource_ref", "summary", "payload_ref", "payload_digest"] as const;
/** All others, in the order of the byte form. */
const skeletonFields = [
  "event_id",
  "topic",
  "partition",
  "kafka_offset",
  "tenant_id",
  "event_type",
  "schema_version",
  "occurred_at",
  "recorded_at",
  "environment",
  "agent_id",
  "runtime_kind",
  "adapter_version",
  "runtime_version",
  "permission_mode",
  "sandbox",
  "task_id",
  "session_id",
  "turn_id",
  "tool_call_id",
  "attempt",
  "correlation_id",
  "causation_id",
  "origin",
  "hop_count",
  "automation_depth",
  "tool",
  "action",
  "data_class",
  "policy_revision",
  "risk",
  "decision",
  "reason_code",
  "matched_rules",
  "decision_id",
  "capability_id",
  "approval_id",
  "plan_digest",
  "effect_id",
  "receipt_id",
  "traceparent",
] as const;

/** What a digest is made of: a row as it is written, or as Postgres gives it back. */
export type DigestFields = Readonly<
  Record<(typeof contentFields)[number] | (typeof skeletonFields)[number], unknown>
>;

/**
 * The digests of a row. `row` covers every field, the content ones by way of `content`, so that a row whose content was
 * blanked can still be checked. Form: `name:length:value` per field, length in bytes of UTF-8, `name:~` for null.
 */
export function toDigests(fields: DigestFields): { readonly content: Buffer; readonly row: Buffer } {
  const content = digestOf("fabric.audit.content", contentFields, fields);
  return { content, row: toRowDigest(fields, content) };
}

/** The row's digest from its skeleton and the digest of a content that may be gone. */
export function toRowDigest(fields: DigestFields, contentDigest: Buffer): Buffer {
  return digestOf("fabric.audit.row", skeletonFields, fields, contentDigest);
}

function digestOf(
  name: string,
  names: readonly (keyof DigestFields)[],
  fields: DigestFields,
  contentDigest?: Buffer,
): Buffer {
  let form = `${name}/${digestVersion}`;
  for (const one of names) {
    const value = toText(fields[one]);
    form += value === null ? `\n${one}:~` : `\n${one}:${Buffer.byteLength(value, "utf8")}:${value}`;
  }
  if (contentDigest !== undefined) form += `\ncontent:${contentDigest.toString("hex")}`;
  return hash("sha256", form, "buffer");
}

/** Times are UTC milliseconds, lists and records are JSON with sorted keys. */
function toText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "bigint") return value.toString();
  if (value instanceof Date) return value.getTime().toString();
  return sortedJson(value);
}

function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const record = value as Readonly<Record<string, unknown>>;
    const members = Object.keys(record)
      .sort()
      .map((name) => `${JSON.stringify(name)}:${sortedJson(record[name])}`);
    return `{${members.join(",")}}`;
  }
  return JSON.stringify(value);
}
