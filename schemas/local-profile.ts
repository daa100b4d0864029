import { z } from "zod";
import type { GateRequest } from "./gate.ts";
import { gateRequestSchema, reasonCodes } from "./gate.ts";

/** Tools that a plugin may answer by itself for a short while: they have no effect and set no label. */
export const localProfileSchema = z.strictObject({
  policy_revision: z.string(),
  /** Of the policy bundle, hex. */
  digest: z.string(),
  tools: z.array(z.string()),
  /** UTC ISO 8601. */
  expires_at: z.iso.datetime(),
});
export type LocalProfile = z.output<typeof localProfileSchema>;

/** Label of a call that its own runtime answered. */
export const localProfileLabel = "local_profile";

/** What a plugin answers by itself; the decision is reported afterwards. */
export interface LocalAnswer {
  readonly decision: "allow";
  readonly reason_code: "LOCAL_PROFILE";
  readonly message: string;
  readonly policy_revision: string;
  readonly labels: readonly [typeof localProfileLabel];
}

/** Answers a call by the profile; null: ask the gate. A profile past its time answers nothing. Pure. */
export function answerLocally(
  profile: LocalProfile,
  request: Pick<GateRequest, "tool" | "tool_call_id">,
  nowMs: number,
): LocalAnswer | null {
  // A call without an id could not be reported once.
  if (request.tool_call_id === undefined || !profile.tools.includes(request.tool)) return null;
  const expiresMs = Date.parse(profile.expires_at);
  // Also when the time cannot be read.
  if (!(nowMs < expiresMs)) return null;
  return {
    decision: "allow",
    reason_code: "LOCAL_PROFILE",
    message: reasonCodes.LOCAL_PROFILE,
    policy_revision: profile.policy_revision,
    labels: [localProfileLabel],
  };
}

/** Most decisions of one report. */
export const localDecisionsMax = 500;

/** Decisions that a plugin made by the profile, reported afterwards. */
export const localDecisionsSchema = z.strictObject({
  decisions: z
    .array(
      z.strictObject({
        policy_revision: z.string().min(1).max(128),
        /** When it was answered, UTC ISO 8601. */
        decided_at: z.iso.datetime({ offset: true }),
        request: gateRequestSchema.refine(
          (one) => one.tool_call_id !== undefined,
          "a local decision is reported with its tool_call_id",
        ),
      }),
    )
    .min(1)
    .max(localDecisionsMax),
});
