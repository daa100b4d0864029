import { toCanonicalJson } from "../../../platform/canonical-json.ts";
import type { Json, JsonObject } from "../json.ts";
import { isJsonObject, toFrozenObject } from "../json.ts";
import type { Verdict, Warning } from "./interception.ts";
import { HostFault } from "./interception.ts";
import { parsePath } from "./transform.ts";

const evidenceMaxBytes = 10_240;
const textMaxBytes = 256;
const members = [
  "decision",
  "reason",
  "message",
  "warnings",
  "approval",
  "transform",
  "evidence",
  "result_labels",
];

/** Reads what an interceptor returned. Throws `HostFault`; what is read is frozen. */
export function readVerdict(returned: unknown): Verdict {
  const invalid = (what: string): HostFault => new HostFault("host_error:verdict_invalid", what);
  let given: JsonObject;
  try {
    given = toFrozenObject(returned);
  } catch {
    throw invalid("a verdict is a JSON object");
  }
  for (const key of Object.keys(given))
    if (!members.includes(key)) throw invalid("a member that is not known");
  const { decision, reason, message, warnings, approval, transform, evidence, result_labels: labels } = given;
  if (decision !== "allow" && decision !== "deny" && decision !== "transform")
    throw invalid("an unknown decision");
  if (!isReason(reason) || !isOptionalText(message)) throw invalid("a reason or message that is none");
  if (warnings != null && !(Array.isArray(warnings) && (warnings as readonly Json[]).every(isWarning)))
    throw invalid("warnings that are none");
  if (labels != null && !(Array.isArray(labels) && labels.every((label) => typeof label === "string")))
    throw invalid("labels that are no texts");
  if (approval !== undefined && !(decision === "deny" && isJsonObject(approval)))
    throw invalid("an approval beside a permit");
  if ((decision === "transform") !== (transform !== undefined))
    throw invalid("a transform that is missing or too many");
  if (transform !== undefined) {
    if (!isJsonObject(transform) || typeof transform["path"] !== "string")
      throw invalid("a transform without a path");
    parsePath(transform["path"]);
  }
  if (evidence !== undefined && !isEvidence(evidence)) throw invalid("evidence that is none, or too much");
  return given as unknown as Verdict;
}

const isOptionalText = (value: Json | undefined): boolean => value == null || typeof value === "string";
const isReason = (value: Json | undefined): boolean =>
  isOptionalText(value) && !(typeof value === "string" && value.startsWith("host_error:"));
const isWarning = (value: Json): boolean =>
  isJsonObject(value) && isReason(value["reason"]) && isOptionalText(value["message"]);

function isEvidence(value: Json): boolean {
  if (!isJsonObject(value) || !isOptionalText(value["artefact"])) return false;
  if (Object.keys(value).some((key) => key !== "artefact" && key !== "verification_pointers")) return false;
  const pointers = value["verification_pointers"];
  if (
    pointers !== undefined &&
    !(isJsonObject(pointers) && Object.values(pointers).every((one) => typeof one === "string"))
  )
    return false;
  return Buffer.byteLength(toCanonicalJson(value), "utf8") <= evidenceMaxBytes;
}

/** Whether a person may lift it. */
export const isLiftable = ({ decision, approval }: Verdict): boolean =>
  decision === "deny" && approval !== undefined;

/** The winner with what all verdicts of the emission warned of, and the labels of those that permit. */
export function withUnions(winner: Verdict, all: readonly Verdict[]): Verdict {
  const warnings = new Map<string, Warning>();
  for (const warning of all.flatMap((one) => one.warnings ?? [])) {
    const key = JSON.stringify([warning.reason ?? null, warning.message ?? null]);
    if (!warnings.has(key)) warnings.set(key, warning);
  }
  const permits = all.filter(({ decision }) => decision !== "deny");
  const labels =
    winner.decision === "deny" ? [] : [...new Set(permits.flatMap((one) => one.result_labels ?? []))];
  const { warnings: _warnings, result_labels: _labels, ...rest } = winner;
  return {
    ...rest,
    ...(warnings.size === 0 ? {} : { warnings: [...warnings.values()] }),
    ...(labels.length === 0 ? {} : { result_labels: labels }),
  };
}

/** A verdict as records keep it: without the value of a transform, without what an approval holds, with short texts. */
export function toRecordedVerdict(verdict: Verdict): JsonObject {
  const {
    decision,
    reason,
    message,
    warnings,
    approval,
    transform,
    evidence,
    result_labels: labels,
  } = verdict;
  return toFrozenObject({
    decision,
    ...(reason == null ? {} : { reason }),
    ...(message == null ? {} : { message: toShort(message) }),
    ...(warnings == null
      ? {}
      : {
          warnings: warnings.map((one) => ({
            ...(one.reason == null ? {} : { reason: one.reason }),
            ...(one.message == null ? {} : { message: toShort(one.message) }),
          })),
        }),
    ...(approval === undefined ? {} : { approval: {} }),
    ...(transform === undefined ? {} : { transform: { path: transform.path } }),
    ...(evidence === undefined ? {} : { evidence }),
    ...(labels == null ? {} : { result_labels: labels }),
  });
}

/** At most 256 bytes, cut between characters. */
function toShort(text: string): string {
  if (Buffer.byteLength(text, "utf8") <= textMaxBytes) return text;
  const room = textMaxBytes - Buffer.byteLength("…", "utf8");
  let short = "";
  let bytes = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character, "utf8");
    if (bytes > room) break;
    short += character;
  }
  return `${short}…`;
}
