import type { GateAnswer } from "../../schemas/gate.ts";
import { Fault } from "../../schemas/faults.ts";
import { toStorableText } from "../platform/masked-preview.ts";
import type { OutboxRow } from "../platform/outbox.ts";
import type { EvidenceRow } from "../platform/vault-seal.ts";

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
  /** JSON text of what else is written with the group, which `gate.apply_consequences` takes; null or absent: nothing. */
  readonly more?: string | null;
}

/** What of a group did not hold. Nothing of it was written. */
export interface CommitConflict {
  readonly tenants: ReadonlySet<string>;
  readonly sessions: ReadonlySet<string>;
  /** Ids of decisions (without prefix), and call keys of recorded calls, that another commit took. */
  readonly calls: ReadonlySet<string>;
  /** Ids (without prefix) of approvals that are not as they were. */
  readonly approvals: ReadonlySet<string>;
  /** Keys of counters that hold too little. */
  readonly counters: ReadonlySet<string>;
  /** Ids (without prefix) of older decisions that another one took the place of. */
  readonly superseded: ReadonlySet<string>;
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
      const found = JSON.parse(String(detail)) as Partial<Record<keyof CommitConflict, string[]>>;
      return {
        tenants: new Set(found.tenants),
        sessions: new Set(found.sessions),
        calls: new Set(found.calls),
        approvals: new Set(found.approvals),
        counters: new Set(found.counters),
        superseded: new Set(found.superseded),
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
