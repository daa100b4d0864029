import { describe, expect, it } from "vitest";
import { gateRequestSchema } from "../../schemas/gate.ts";
import type { DecisionName } from "../../schemas/gate.ts";
import { missingPolicy } from "./revisions/missing-policy.ts";
import type { Ruling } from "./ruling.ts";
import { simulate, toDifferences } from "./simulate.ts";
import type { RecordedAnswer, RecordedLine } from "./simulate-record.ts";
import { toRecordedLine } from "./simulate-record.ts";

const neutral = { nowMs: 1_000, tenantId: "acme", environment: "test" };
const wholeFacts = {
  nowMs: 5,
  environment: "prod",
  tenant: { id: "acme", state: "active", version: 1 },
  session: { version: 0, labels: [], openApprovals: 0, deferredSinceMs: null },
  approval: null,
  isRevoked: false,
  counters: {},
  dated: {},
};
const request = gateRequestSchema.parse({
  runtime: "own",
  session_id: "s",
  tool: "shell.run",
  input: { command: "ls" },
});
const recorded = (decision: DecisionName, rules: string[], facts: unknown = wholeFacts): RecordedLine =>
  toRecordedLine(
    {
      decisionId: `dec_${decision}`,
      request,
      facts,
      answer: { decision, matched_rules: rules, reason_code: "ALLOWED" },
    },
    neutral,
  );
async function* lines(...all: RecordedLine[]): AsyncGenerator<RecordedLine> {
  yield* all;
}
const ruling = (decision: DecisionName, rules: string[]): Ruling =>
  ({
    decision,
    reason: "ALLOWED",
    message: "m",
    matchedRules: rules,
    labels: [],
    modifiedInput: null,
  }) as unknown as Ruling;

describe("a simulation", () => {
  it("counts moves, and names the rules behind each changed decision", async () => {
    const report = await simulate(
      lines(recorded("allow", ["a"]), recorded("deny", ["b"]), recorded("allow", ["a", "c"])),
      {
        policy: missingPolicy,
        judge: () => ruling("deny", ["b"]),
        policyOf: () => Promise.resolve(null),
        detailsMax: 1,
      },
    );
    expect(report.moves).toEqual([
      { before: "allow", after: "deny", count: 2 },
      { before: "deny", after: "deny", count: 1 },
    ]);
    expect([report.changed, report.changes.length]).toEqual([2, 1]);
    expect(report.changes[0]).toMatchObject({ appeared: ["b"], disappeared: ["a"] });
    expect(report.rules).toEqual([
      { rule: "a", before: 2, after: 0, in_changed: 2 },
      { rule: "b", before: 1, after: 3, in_changed: 2 },
      { rule: "c", before: 1, after: 0, in_changed: 1 },
    ]);
    expect(report.reproduced.unknown).toBe(3);
  });

  it("says which decisions the policy that made them does not make again", async () => {
    const report = await simulate(lines(recorded("allow", ["a"]), recorded("deny", ["a"])), {
      policy: missingPolicy,
      judge: () => ruling("allow", ["a"]),
      policyOf: () => Promise.resolve(missingPolicy),
      detailsMax: 10,
    });
    expect(report.reproduced).toEqual({
      same: 1,
      different: 1,
      unknown: 0,
      examples: [{ decision_id: "dec_deny", differs: ["decision"] }],
    });
  });

  it("leaves out what no policy decided, and what cannot be read", async () => {
    const report = await simulate(
      lines(
        recorded("deny", ["gate.conflict"]),
        toRecordedLine({ decisionId: null, request: {}, facts: {}, answer: null }, neutral),
        recorded("deny", [], { nowMs: "soon" }),
      ),
      {
        policy: missingPolicy,
        judge: () => ruling("deny", []),
        policyOf: () => Promise.resolve(null),
        detailsMax: 1,
      },
    );
    expect(report.judged).toBe(0);
    expect(Object.values(report.left_out)).toEqual([1, 1, 1]);
  });
});

describe("recorded facts", () => {
  it("are taken as they were stored, and completed where an earlier version stored less", () => {
    expect(recorded("allow", [])).toMatchObject({ record: { facts: wholeFacts, isPartial: false } });
    expect(recorded("allow", [], { tenant: { state: "frozen", version: 2 } })).toMatchObject({
      record: {
        isPartial: true,
        facts: { nowMs: 1_000, environment: "test", tenant: { id: "acme", state: "frozen", version: 2 } },
      },
    });
  });
});

describe("the difference of an answer and a ruling", () => {
  it("is none where the stored form is the masked one", () => {
    const token = `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`;
    const answer = {
      decision: "modify",
      modified_input: { command: "echo [masked]" },
    } as unknown as RecordedAnswer;
    const now = { ...ruling("modify", []), modifiedInput: { command: `echo ${token}` } };
    const differs = toDifferences(answer, now);
    expect(differs.filter((part) => part !== "modified_input")).toEqual([]);
    expect(toDifferences({ ...answer, modified_input: now.modifiedInput }, now)).toEqual([]);
  });
});
