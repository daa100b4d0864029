import type { GateAnswer } from "../../schemas/gate.ts";
import { Fault } from "../../schemas/faults.ts";
import { maskText } from "../platform/mask.ts";
import { toStorableText } from "../platform/masked-preview.ts";
import { toUuid } from "../platform/ids.ts";
import type { OutboxRow } from "../platform/outbox.ts";
import type { Statement } from "../platform/postgres.ts";
import type { EvidenceRow } from "../platform/vault-seal.ts";
import { byteaArray, jsonArray, plainArray, textArray, textArrayLiteral, wordArray } from "./array-parameter.ts";

/** A row of `gate.sessions`. */
export interface SessionRow {
  readonly sessionKey: string;
  readonly tenantId: string;
  readonly runtime: string;
  readonly sessionId: string;
  readonly correlationId: string;
}
/** A row of `gate.decisions`. */
export interface DecisionRow {
  readonly decisionId: string;
  readonly tenantId: string;
  readonly sessionKey: string;
  readonly callKey: string | null;
  readonly requestedEventId: string;
  readonly runtime: string;
  readonly phase: string;
  readonly tool: string;
  readonly effectClass: string;
  readonly answer: GateAnswer;
  /** JSON text, masked, that jsonb takes. */
  readonly requestJson: string;
  readonly requestSealed: Buffer | null;
  readonly requestRef: string | null;
  readonly payloadRef: string | null;
  /** JSON text. */
  readonly factsJson: string;
}
/** A row of `gate.hook_calls`. */
export interface HookCallRow {
  readonly callKey: string;
  readonly tenantId: string;
}
/** A row of `gate.anchors`. */
export interface AnchorRow {
  readonly anchorKey: string;
  readonly tenantId: string;
  readonly sessionKey: string;
  readonly eventId: string;
}
/** A row of `gate.capabilities`. */
export interface CapabilityRow {
  readonly capabilityId: string;
  readonly tenantId: string;
  readonly decisionId: string;
  readonly sessionKey: string;
  readonly tool: string;
  readonly resource: string | null;
  readonly planDigest: string;
  readonly constraints: unknown;
  readonly maxCalls: number;
  /** ISO 8601. */
  readonly expiresAt: string;
}

/** Longest resource that a capability's row shows; the plan is bound by its digest. */
const resourceMaxChars = 1_024;

/** Everything that a group writes, and what it depends on. */
export interface GroupRows {
  readonly nowMs: number;
  /** Smallest time that a call of the group has left; the server writes nothing when it took longer. */
  readonly budgetMs: number;
  /** The end of that time by the server's clock, in UTC milliseconds. */
  readonly untilServerMs: number;
  readonly policyRevision: string;
  /** Sessions that are perhaps not there yet. */
  readonly sessions: readonly SessionRow[];
  /** Versions that the decisions read, held to the commit: nobody changes these rows before it. */
  readonly heldTenants: ReadonlyMap<string, number>;
  readonly heldSessions: ReadonlyMap<string, number>;
  readonly decisions: readonly DecisionRow[];
  readonly calls: readonly HookCallRow[];
  readonly anchors: readonly AnchorRow[];
  readonly capabilities: readonly CapabilityRow[];
  readonly evidence: readonly EvidenceRow[];
  readonly outbox: readonly OutboxRow[];
}

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

/** What of a group did not hold. Nothing of it was written. */
export interface CommitConflict {
  readonly tenants: ReadonlySet<string>;
  readonly sessions: ReadonlySet<string>;
  /** Ids of decisions (without prefix), and call keys of recorded calls, that another commit took. */
  readonly calls: ReadonlySet<string>;
}

/** Why the server wrote nothing: what did not hold, or that it took too long; null for every other error. */
export function toCommitRefusal(error: unknown): CommitConflict | "too_late" | null {
  const { code, detail } = (error instanceof Fault ? (error.cause ?? {}) : {}) as {
    readonly code?: unknown;
    readonly detail?: unknown;
  };
  switch (code) {
    case "FGB01":
    case "55P03":
      return "too_late";
    case "FGC01": {
      const found = JSON.parse(String(detail)) as Record<keyof CommitConflict, string[]>;
      return {
        tenants: new Set(found.tenants),
        sessions: new Set(found.sessions),
        calls: new Set(found.calls),
      };
    }
    default:
      return null;
  }
}

/** JSON text that jsonb takes: no NUL and no half of a surrogate pair, in keys and texts. */
export function toJsonColumn(value: unknown): string {
  const text = JSON.stringify(value);
  return holdsUnstorable(text) ? JSON.stringify(toStorable(value)) : text;
}

/** JSON writes NUL and half a surrogate pair as escapes; a text that only looks like one is no harm. */
export function holdsUnstorable(json: string): boolean {
  return json.includes("\\u") && /\\u(?:0000|d[89a-f])/i.test(json);
}

function toStorable(value: unknown): unknown {
  if (typeof value === "string") return toStorableText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(toStorable);
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [toStorableText(name), toStorable(one)]),
  );
}

function by<T>(key: (row: T) => string): (left: T, right: T) => number {
  return (left, right) => (key(left) < key(right) ? -1 : key(left) > key(right) ? 1 : 0);
}
