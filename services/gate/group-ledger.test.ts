import { describe, expect, it } from "vitest";
import type { CallPlace, KnownFacts, LedgerEntry } from "./group-ledger.ts";
import { createGroupLedger } from "./group-ledger.ts";

const facts: KnownFacts = {
  nowMs: 1_000,
  environment: "test",
  tenant: { id: "acme", state: "active", version: 1 },
  session: { version: 3, labels: ["b"], openApprovals: 1, deferredSinceMs: null },
  approval: null,
  isRevoked: false,
  counters: { one: 2 },
  dated: {},
};
const place: CallPlace = { sessionKey: "child", rootKey: "root", planKey: "plan" };
const nothing: LedgerEntry = {
  labels: [],
  isLinked: false,
  automationDepth: 0,
  spends: [],
  approval: null,
  isApprovalRequested: false,
};
const approval = {
  approvalId: "apr_1",
  decisionId: "dec_1",
  state: "pending",
  planDigest: "sha256:1",
  rules: [],
  expiresAtMs: 2_000,
  consumedAtMs: null,
} as const;

describe("the ledger of a group", () => {
  it("shows a first call the facts as they are", () => {
    expect(createGroupLedger().view(place, facts)).toBe(facts);
  });

  it("shows later calls of a root's sessions the labels that earlier ones set", () => {
    const ledger = createGroupLedger();
    ledger.note(place, { ...nothing, labels: ["c", "a"] });
    expect(ledger.view({ ...place, sessionKey: "other child" }, facts).session.labels).toEqual([
      "a",
      "b",
      "c",
    ]);
    expect(ledger.view({ ...place, rootKey: "other root" }, facts).session.labels).toEqual(["b"]);
  });

  it("adds what was spent to what the database knew", () => {
    const ledger = createGroupLedger();
    const spend = { amount: 2, limit: 9, expiresAtMs: null };
    ledger.note(place, { ...nothing, spends: [{ ...spend, key: "one" }] });
    ledger.note(place, {
      ...nothing,
      spends: [
        { ...spend, key: "one" },
        { ...spend, key: "two" },
      ],
    });
    expect(ledger.view(place, facts).counters).toEqual({ one: 6, two: 2 });
  });

  it("shows an approval that was asked for, and that it is used up, to the same plan alone", () => {
    const ledger = createGroupLedger();
    ledger.note(place, { ...nothing, approval, isApprovalRequested: true });
    const seen = ledger.view(place, facts);
    expect([seen.approval, seen.session.openApprovals]).toEqual([approval, 2]);
    expect(ledger.view({ ...place, planKey: "other" }, facts).approval).toBeNull();
    ledger.note(place, { ...nothing, approval: { ...approval, state: "consumed", consumedAtMs: 1 } });
    expect(ledger.view(place, facts).approval?.state).toBe("consumed");
  });

  it("knows since when a plan is put off, and that it is not any more", () => {
    const ledger = createGroupLedger();
    ledger.note(place, { ...nothing, deferredSinceMs: 700 });
    expect(ledger.view(place, facts).session.deferredSinceMs).toBe(700);
    ledger.note(place, { ...nothing, deferredSinceMs: null });
    expect(
      ledger.view(place, { ...facts, session: { ...facts.session, deferredSinceMs: 5 } }).session,
    ).toMatchObject({ deferredSinceMs: null });
  });

  it("remembers which root a session was linked to", () => {
    const ledger = createGroupLedger();
    ledger.note(place, { ...nothing, isLinked: true });
    expect([ledger.parentOf("child"), ledger.parentOf("root")]).toEqual(["root", undefined]);
  });
});
