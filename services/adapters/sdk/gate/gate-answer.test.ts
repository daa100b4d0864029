import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decisions, gateAnswerSchema } from "../../../../schemas/gate.ts";
import { readAnswer } from "./gate-answer.ts";

const allow = {
  decision: "allow",
  decision_id: "dec_1",
  reason_code: "ALLOWED",
  message: "fine",
  policy_revision: "policy@2026-11-30.1",
  plan_digest: "sha256:00",
  correlation_id: "cor_1",
  capability: { id: "cap_1", token: "t", expires_at: "2026-12-01T00:00:00Z" },
  constraints: { network: "none", max_runtime_seconds: 5, paths: ["/a"], max_calls: 1 },
  matched_rules: [],
  labels: ["x"],
  repeated: false,
};
const more: Readonly<Record<string, object>> = {
  modify: { modified_input: { a: 1 } },
  require_approval: { approval: { id: "apr_1", expires_at: "2026-12-01T00:00:00Z" } },
  defer: { defer: { facts: ["ci"], until: "2026-12-01T00:00:00Z" } },
};

describe("an answer of the gate", () => {
  it.each(decisions)("%s is read as the contract has it", (decision) => {
    const answer = { ...allow, decision, ...more[decision] };
    expect(gateAnswerSchema.safeParse(answer).success).toBe(true);
    const read = readAnswer(answer);
    expect(read.decision).toBe(decision === "modify" ? "allow" : decision);
    expect(read.reasonCode).toBe("ALLOWED");
  });

  // INVARIANT: only what is fully understood allows.
  it("allows nothing that is not an allow, whatever becomes of one of its fields", () => {
    const strange = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(undefined, null, "allow", {}, [], -1, "Allow", "ALLOW"),
    );
    const key = fc.constantFrom(
      "decision",
      "decision_id",
      "reason_code",
      "message",
      "policy_revision",
      "capability",
      "constraints",
      "plan_digest",
      "modified_input",
    );
    fc.assert(
      fc.property(fc.constantFrom(...decisions), key, strange, (decision, field, value) => {
        const answer = { ...allow, decision, ...more[decision], [field]: value };
        const read = readAnswer(JSON.parse(JSON.stringify(answer)));
        if (read.decision !== "allow") return;
        expect(["allow", "modify"]).toContain((answer as { decision: unknown }).decision);
        if ((answer as { decision: unknown }).decision === "modify")
          expect(read.modifiedInput).not.toBeNull();
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ["a limit that is not known", { constraints: { cpu: 1 } }],
    ["a limit that is none", { constraints: { max_calls: 0 } }],
    ["a right without an id", { capability: { token: "t" } }],
    ["an input beside an allow", { modified_input: {} }],
    ["a modify without an input", { decision: "modify" }],
    ["no reason", { reason_code: undefined }],
    ["an unknown decision", { decision: "permit" }],
  ])("with %s is a refusal", (_, change) => {
    expect(readAnswer({ ...allow, ...change })).toMatchObject({
      decision: "deny",
      reasonCode: "GATE_GARBAGE",
    });
  });

  it.each([undefined, null, "", "<html>", [], 7])("that is %j is a refusal", (answer) => {
    expect(readAnswer(answer)).toMatchObject({ decision: "deny", reasonCode: "GATE_GARBAGE" });
  });
});
