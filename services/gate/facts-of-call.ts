import type { Json } from "../../schemas/gate.ts";

/** An approval of this plan, as it stands. */
export interface ApprovalFact {
  readonly approvalId: string;
  readonly state: "pending" | "approved" | "refused" | "expired" | "consumed" | "voided";
  /** The digest that the person agreed to; another one now is drift. */
  readonly planDigest: string;
  /** Rules that matched when it was asked for: what the person was shown as the reasons. */
  readonly rules: readonly string[];
  /** UTC milliseconds. */
  readonly expiresAtMs: number;
}

/** A fact that another service computed. */
export interface DatedFact {
  readonly value: Json;
  /** When it was true, UTC milliseconds. */
  readonly atMs: number;
}

/** Something that the breaker or a person holds back, and that a call falls under. */
export interface HoldFact {
  readonly id: string;
  readonly source: "breaker" | "incident";
  /** `read_only`: no new effect; `frozen`: nothing at all. */
  readonly mode: "read_only" | "frozen";
  readonly scope: "all" | "tenant" | "correlation" | "session" | "agent" | "user" | "tool";
  readonly scopeId: string;
  /** What the breaker saw, or a person said. */
  readonly reason: string;
}

/** What the gate knew when it decided; stored with the decision, so that it can be made again. */
export interface Facts {
  /** The decision's time, UTC milliseconds. */
  readonly nowMs: number;
  readonly environment: string;
  readonly tenant: { readonly id: string; readonly state: "active" | "frozen"; readonly version: number };
  readonly session: {
    readonly version: number;
    /** Of the root session and all its children, sorted. */
    readonly labels: readonly string[];
    readonly openApprovals: number;
    /** When the first deferral of this plan was made; null: never. */
    readonly deferredSinceMs: number | null;
    /** Agents between this session and what a person or an event from outside began. Absent: none. */
    readonly automationDepth?: number;
  };
  /** The newest approval of the proposed plan by this session and agent; null: none. */
  readonly approval: ApprovalFact | null;
  /** The proposed plan was revoked. */
  readonly isRevoked: boolean;
  /** Spent before this call, by counter key (`toCounterKey`); absent: nothing. */
  readonly counters: Readonly<Record<string, number>>;
  /** By the fact's name. */
  readonly dated: Readonly<Record<string, DatedFact>>;
  /** Absent: none. */
  readonly holds?: readonly HoldFact[];
}
