import { toUuid } from "../platform/ids.ts";
import { maskText } from "../platform/mask.ts";
import { toStorableText } from "../platform/masked-preview.ts";
import type { Statement } from "../platform/postgres.ts";
import {
  byteaArray,
  jsonArray,
  plainArray,
  textArray,
  textArrayLiteral,
  wordArray,
} from "./array-parameter.ts";
import type { GroupRows } from "./store.ts";
import { toJsonColumn } from "./store.ts";

/** Longest resource that a capability's row shows; the plan is bound by its digest. */
const resourceMaxChars = 1_024;

/** Number of parameters of `gate.commit_group`. */
const commitParameters = 64;
const commitText = `SELECT gate.commit_group(${Array.from({ length: commitParameters }, (_, index) => `$${String(index + 1)}`).join(", ")})`;

/**
 * The statement that writes a group, or nothing of it; run it by itself, not in a transaction. Rows are sorted by their
 * keys: two gates that write the same ones wait for each other in one direction only.
 */
export function commitStatement(rows: GroupRows): Statement {
  const at = new Date(rows.nowMs).toISOString();
  const sessions = [...rows.sessions].sort(by((row) => row.sessionKey));
  const decisions = [...rows.decisions].sort(by((row) => row.callKey ?? ""));
  const calls = [...rows.calls].sort(by((row) => row.callKey));
  // The last one of a key counts, as if they had come one after the other.
  const anchors = [...new Map(rows.anchors.map((row) => [row.anchorKey, row])).values()].sort(
    by((row) => row.anchorKey),
  );
  const { heldTenants, heldSessions, capabilities, evidence, outbox } = rows;
  const values = [
    String(rows.budgetMs),
    String(rows.untilServerMs),
    at,
    rows.policyRevision,
    plainArray(sessions.map((row) => row.sessionKey)),
    wordArray(sessions.map((row) => row.tenantId)),
    textArray(sessions.map((row) => row.runtime)),
    textArray(sessions.map((row) => toStorableText(row.sessionId))),
    plainArray(sessions.map((row) => toUuid(row.correlationId))),
    wordArray([...heldTenants.keys()]),
    plainArray([...heldTenants.values()]),
    plainArray([...heldSessions.keys()]),
    plainArray([...heldSessions.values()]),
    plainArray(decisions.map((row) => toUuid(row.decisionId))),
    wordArray(decisions.map((row) => row.tenantId)),
    plainArray(decisions.map((row) => row.sessionKey)),
    plainArray(decisions.map((row) => toUuid(row.answer.correlation_id))),
    plainArray(decisions.map((row) => row.callKey)),
    plainArray(decisions.map((row) => toUuid(row.requestedEventId))),
    textArray(decisions.map((row) => row.runtime)),
    wordArray(decisions.map((row) => row.phase)),
    textArray(decisions.map((row) => row.tool)),
    wordArray(decisions.map((row) => row.effectClass)),
    wordArray(decisions.map((row) => row.answer.decision)),
    wordArray(decisions.map((row) => row.answer.reason_code)),
    textArray(decisions.map((row) => row.answer.plan_digest)),
    textArray(decisions.map((row) => textArrayLiteral(row.answer.matched_rules))),
    jsonArray(decisions.map((row) => row.requestJson)),
    byteaArray(decisions.map((row) => row.requestSealed)),
    textArray(decisions.map((row) => row.requestRef)),
    textArray(decisions.map((row) => row.payloadRef)),
    jsonArray(decisions.map((row) => row.factsJson)),
    jsonArray(decisions.map((row) => toJsonColumn(row.answer))),
    plainArray(calls.map((row) => row.callKey)),
    wordArray(calls.map((row) => row.tenantId)),
    plainArray(anchors.map((row) => row.anchorKey)),
    wordArray(anchors.map((row) => row.tenantId)),
    plainArray(anchors.map((row) => row.sessionKey)),
    plainArray(anchors.map((row) => toUuid(row.eventId))),
    plainArray(capabilities.map((row) => toUuid(row.capabilityId))),
    wordArray(capabilities.map((row) => row.tenantId)),
    plainArray(capabilities.map((row) => toUuid(row.decisionId))),
    plainArray(capabilities.map((row) => row.sessionKey)),
    textArray(capabilities.map((row) => row.tool)),
    textArray(
      capabilities.map((row) =>
        row.resource === null ? null : toStorableText(maskText(row.resource)).slice(0, resourceMaxChars),
      ),
    ),
    wordArray(capabilities.map((row) => row.planDigest)),
    jsonArray(capabilities.map((row) => toJsonColumn(row.constraints))),
    plainArray(capabilities.map((row) => row.maxCalls)),
    wordArray(capabilities.map((row) => row.expiresAt)),
    plainArray(evidence.map((row) => row.evidenceId)),
    wordArray(evidence.map((row) => row.tenantId)),
    plainArray(evidence.map((row) => row.keyVersion)),
    wordArray(evidence.map((row) => row.dataClass)),
    byteaArray(evidence.map((row) => row.digest)),
    byteaArray(evidence.map((row) => row.nonce)),
    byteaArray(evidence.map((row) => row.tag)),
    byteaArray(evidence.map((row) => row.sealed)),
    plainArray(evidence.map((row) => row.sizeBytes)),
    plainArray(outbox.map((row) => row.id)),
    wordArray(outbox.map((row) => row.type)),
    textArray(outbox.map((row) => row.key)),
    wordArray(outbox.map((row) => row.tenantId)),
    byteaArray(outbox.map((row) => row.payload)),
    jsonArray(outbox.map((row) => JSON.stringify(row.headers))),
  ];
  return { name: "gate-commit-group", text: commitText, values };
}

function by<T>(key: (row: T) => string): (left: T, right: T) => number {
  return (left, right) => (key(left) < key(right) ? -1 : key(left) > key(right) ? 1 : 0);
}
