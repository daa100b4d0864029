import type { CallIdentity, Observation } from "../../schemas/adapter.ts";
import type { FaultCode } from "../../schemas/faults.ts";
import type { GateAnswer, GateRequest } from "../../schemas/gate.ts";
import type { DataClass, Runtime } from "../../schemas/generated/types.ts";

/** One hook call, translated, on its way to a decision or a record. */
export interface HookWork {
  readonly tenantId: string;
  /** Who the token says it is. */
  readonly subject: string;
  readonly runtime: Runtime;
  readonly call: Partial<CallIdentity>;
  /** Null when nothing is asked. */
  readonly request: GateRequest | null;
  /** The call whose result is told: the session carries from here on what the rules for labels say of it. */
  readonly reported?: GateRequest;
  /** Another adapter may tell the same result: the first one counts. */
  readonly endsOnce?: true;
  readonly observations: readonly Observation[];
  /** The payload as received. */
  readonly raw: Buffer;
  readonly dataClass: DataClass;
  readonly traceparent: string | null;
  /**
   * It passed before it could be recorded, while the database was away (default) or by its runtime's own answer: what it
   * was told, and when (UTC milliseconds).
   */
  readonly told?: {
    readonly by?: "local_profile";
    readonly decisionId: string;
    readonly atMs: number;
  };
}

/** What became of it. A failure has allowed nothing. */
export type HookOutcome =
  | { readonly kind: "answered"; readonly answer: GateAnswer }
  | { readonly kind: "recorded"; readonly repeated: boolean }
  | { readonly kind: "tenant_unknown" }
  | { readonly kind: "failed"; readonly code: FaultCode };
