import type { Draft, Envelope } from "../../schemas/envelope.ts";
import { toEnvelope } from "../../schemas/envelope.ts";
import { newEventId } from "../platform/ids.ts";
import { toTextPreview } from "../platform/masked-preview.ts";
import type { RecoveryDeps } from "./recovery-deps.ts";

/** Owns what belongs to no tenant; whoever acts for it acts for all of them. */
export const fabricTenant = "fabric";

const reasonMaxChars = 500;

/** A person's reason as it may stand in an event: masked, and not too long. */
export const toReason = (text: string): string => toTextPreview(text, reasonMaxChars);

/** What the room calls itself in events. */
const recoveryRuntime = {
  kind: "fabric",
  adapter_version: "recovery",
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
};

/** A person's deed as an event of the tenant that it is about. */
export function toDeed(
  deps: Pick<RecoveryDeps, "clock" | "environment">,
  one: Draft,
  about: {
    readonly by: string;
    readonly tenantId?: string;
    readonly correlationId: string;
    readonly causationId?: string | null;
  },
): Envelope {
  return toEnvelope(one, {
    eventId: newEventId(deps.clock),
    recordedAtMs: deps.clock.nowMs(),
    tenantId: about.tenantId ?? fabricTenant,
    environment: deps.environment,
    runtime: recoveryRuntime,
    correlationId: about.correlationId,
    causationId: about.causationId ?? null,
    origin: "human",
    userId: about.by,
  });
}
