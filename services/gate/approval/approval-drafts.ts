import type { Draft } from "../../../schemas/envelope.ts";
import { draft } from "../../../schemas/envelope.ts";
import { maskJson } from "../../platform/mask.ts";
import { toJsonPreview } from "../../platform/masked-preview.ts";
import type { EffectClass } from "../../../schemas/generated/types.ts";

/** What a draft of a ruling carries beside its summary. */
export type RulingRest = Pick<
  Draft<"agent.approval.requested">,
  "policy" | "subject" | "agent_id" | "execution" | "plan_digest"
>;

/** What the frozen plan shows in an event. */
const planPreviewMaxChars = 2_048;

/** A plan was frozen, and a person is asked. */
export function toRequestDrafts(
  asked: {
    readonly approvalId: string;
    readonly decisionId: string;
    readonly effect: EffectClass;
    readonly riskScore: number;
    readonly expiresAtMs: number;
    readonly message: string;
    readonly plan: unknown;
  },
  rest: RulingRest,
): readonly Draft[] {
  const shared = { ...rest, approval_id: asked.approvalId };
  return [
    draft(
      "agent.effect.prepared",
      {
        decision_id: asked.decisionId,
        effect_class: asked.effect,
        plan_preview: toJsonPreview(maskJson(asked.plan), planPreviewMaxChars),
        expires_at: asked.expiresAtMs,
      },
      shared,
    ),
    draft(
      "agent.approval.requested",
      {
        decision_id: asked.decisionId,
        effect_class: asked.effect,
        risk_score: asked.riskScore,
        expires_at: asked.expiresAtMs,
        message: asked.message,
      },
      shared,
    ),
  ];
}

/** A call passed by using up an approval. */
export function toConsumedDraft(approvalId: string, decisionId: string, rest: RulingRest): Draft {
  return draft("agent.approval.consumed", { decision_id: decisionId }, { ...rest, approval_id: approvalId });
}

/** An approval does not fit its plan any more; `decisionId` had asked for it. */
export function toVoidedDraft(
  voided: { readonly approvalId: string; readonly decisionId: string; readonly reason: string },
  rest: RulingRest,
): Draft {
  return draft(
    "agent.approval.voided",
    { decision_id: voided.decisionId, reason: voided.reason },
    { ...rest, approval_id: voided.approvalId },
  );
}
