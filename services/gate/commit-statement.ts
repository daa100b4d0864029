import { toUuid } from "../platform/ids.ts";
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
import { toShownResource } from "./capability/claims.ts";
import type { GroupRows } from "./store.ts";
import { toJsonColumn } from "./store.ts";

/** Number of parameters of `gate.commit_group`. */
const commitParameters = 33;
const commitText = `SELECT gate.commit_group(${Array.from({ length: commitParameters }, (_, index) => `$${String(index + 1)}`).join(", ")})`;

/**
 * The statement that writes a group, or nothing of it; run it by itself, not in a transaction. Rows are sorted by their
 * keys: two gates that write the same ones wait for each other in one direction only. Columns of one type share an
 * array, row after row, in the order that the function's migration lists.
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
    plainArray(sessions.flatMap((row) => [row.sessionKey, toUuid(row.correlationId)])),
    textArray(sessions.flatMap((row) => [row.tenantId, row.runtime, toStorableText(row.sessionId)])),
    wordArray([...heldTenants.keys()]),
    plainArray([...heldTenants.values()]),
    plainArray([...heldSessions.keys()]),
    plainArray([...heldSessions.values()]),
    plainArray(
      decisions.flatMap((row) => [
        toUuid(row.decisionId),
        row.sessionKey,
        toUuid(row.answer.correlation_id),
        row.callKey,
        toUuid(row.requestedEventId),
      ]),
    ),
    textArray(
      decisions.flatMap((row) => [
        row.tenantId,
        row.runtime,
        row.phase,
        row.tool,
        row.effectClass,
        row.answer.decision,
        row.answer.reason_code,
        row.answer.plan_digest,
        textArrayLiteral(row.answer.matched_rules),
        row.requestRef,
        row.payloadRef,
      ]),
    ),
    jsonArray(decisions.flatMap((row) => [row.requestJson, row.factsJson, toJsonColumn(row.answer)])),
    byteaArray(decisions.map((row) => row.requestSealed)),
    plainArray(calls.map((row) => row.callKey)),
    wordArray(calls.map((row) => row.tenantId)),
    plainArray(anchors.flatMap((row) => [row.anchorKey, row.sessionKey, toUuid(row.eventId)])),
    wordArray(anchors.map((row) => row.tenantId)),
    plainArray(
      capabilities.flatMap((row) => [toUuid(row.capabilityId), toUuid(row.decisionId), row.sessionKey]),
    ),
    textArray(
      capabilities.flatMap((row) => [
        row.tenantId,
        row.tool,
        row.resource === null ? null : toShownResource(row.resource),
        row.planDigest,
        row.expiresAt,
      ]),
    ),
    jsonArray(capabilities.map((row) => toJsonColumn(row.constraints))),
    plainArray(capabilities.map((row) => row.maxCalls)),
    plainArray(evidence.map((row) => row.evidenceId)),
    wordArray(evidence.flatMap((row) => [row.tenantId, row.dataClass])),
    byteaArray(evidence.flatMap((row) => [row.digest, row.nonce, row.tag, row.sealed])),
    plainArray(evidence.flatMap((row) => [row.keyVersion, row.sizeBytes])),
    plainArray(outbox.map((row) => row.id)),
    wordArray(outbox.map((row) => row.type)),
    textArray(outbox.map((row) => row.key)),
    wordArray(outbox.map((row) => row.tenantId)),
    byteaArray(outbox.map((row) => row.payload)),
    jsonArray(outbox.map((row) => JSON.stringify(row.headers))),
    rows.more ?? null,
  ];
  return { name: "gate-commit-group", text: commitText, values };
}

function by<T>(key: (row: T) => string): (left: T, right: T) => number {
  return (left, right) => (key(left) < key(right) ? -1 : key(left) > key(right) ? 1 : 0);
}
