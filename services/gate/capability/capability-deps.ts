import type { Clock } from "../../platform/clock.ts";
import type { EventEncoder } from "../../platform/outbox.ts";
import type { Database } from "../../platform/postgres.ts";
import type { CapabilitySigner } from "./signer.ts";

/** Whether the policy of now still lets a plan through that an earlier revision let through. */
export interface PolicyOfNow {
  /** The active revision. */
  revision(): string;
  /** Makes the decision again, on the facts that it was made on. */
  isStillAllowed(decision: { readonly decisionId: string; readonly tenantId: string }): Promise<boolean>;
}

/** What the life of rights needs. */
export interface CapabilityDeps {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
  readonly signer: CapabilitySigner;
  readonly policy: PolicyOfNow;
}
