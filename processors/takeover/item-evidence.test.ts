import { describe, expect, it } from "vitest";
import type { CauseRow, TrailRow } from "./item-evidence.ts";
import { toItemEvidence } from "./item-evidence.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
const row = (
  event_id: string,
  event_type: string,
  second: number,
  more: Partial<TrailRow> = {},
): TrailRow => ({
  event_id,
  event_type,
  recorded_at: at(second),
  correlation_id: "cor_1",
  causation_id: null,
  origin: "agent",
  user_id: "dana",
  agent_id: null,
  session_id: "s",
  tool_call_id: "c",
  tool: "shell.run",
  action: null,
  resource_ref: null,
  risk: null,
  decision: null,
  reason_code: null,
  policy_revision: null,
  matched_rules: null,
  decision_id: null,
  capability_id: null,
  approval_id: null,
  plan_digest: null,
  effect_id: null,
  receipt_id: null,
  payload_ref: null,
  summary: null,
  ...more,
});
const {
  causation_id: _c,
  origin: _o,
  summary: _s,
  decision: _d,
  ...plain
} = row("b", "agent.approval.expired", 9, {
  approval_id: "apr_1",
  plan_digest: "sha256:a",
  payload_ref: "vault://acme/2",
});
const cause: CauseRow = { ...plain, title: "nobody agreed in time", role: "opens" };

describe("the evidence of an item", () => {
  it("tells who, which rules, which plan, which words of people, which effects, by their recorded time", () => {
    const evidence = toItemEvidence(
      [cause],
      [],
      [
        row("d", "agent.effect.receipted", 5, {
          effect_id: "eff_1",
          receipt_id: "rcp_1",
          summary: { outcome: "succeeded" },
        }),
        row("a", "agent.effect.prepared", 1, {
          decision_id: "dec_1",
          plan_digest: "sha256:a",
          summary: { plan_preview: "rm build" },
          payload_ref: "vault://acme/1",
        }),
        row("e", "agent.tool.denied", 2, {
          decision_id: "dec_1",
          decision: "require_approval",
          reason_code: "APPROVAL_NEEDED",
          matched_rules: ["prod"],
        }),
      ],
      true,
    );
    expect(evidence).toMatchObject({
      who: [{ user_id: "dana", agent_id: null }],
      decisions: [{ decision_id: "dec_1", decision: "require_approval", matched_rules: ["prod"] }],
      plans: [{ plan_digest: "sha256:a", preview: "rm build" }],
      approvals: [{ approval_id: "apr_1", what: "expired", by: null }],
      effects: [{ effect_id: "eff_1", receipt_id: "rcp_1", what: "receipted", outcome: "succeeded" }],
      payload_refs: ["vault://acme/1", "vault://acme/2"],
    });
    expect(evidence.chain.map(({ event_id }) => event_id)).toEqual(["evt_a", "evt_e", "evt_d", "evt_b"]);
  });

  it("has a cause that the trail has not got yet, and has it once when it has", () => {
    const ids = (trail: readonly TrailRow[]) =>
      toItemEvidence([cause], [], trail, true).chain.map(({ event_id }) => event_id);
    expect(ids([])).toEqual(["evt_b"]);
    expect(ids([row("b", "agent.approval.expired", 9)])).toEqual(["evt_b"]);
  });
});
