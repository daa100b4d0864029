import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadFacts, nothingWanted } from "../../services/gate/facts.ts";
import type { GateRig } from "../harness/gate-rig.ts";
import { createGateRig } from "../harness/gate-rig.ts";

let rig: GateRig;
beforeAll(async () => {
  rig = await createGateRig();
});
afterAll(() => rig.close());

const parameters = 13;

describe("the facts of a group", () => {
  it("are found by key, by the plan that was made while every table was empty", async () => {
    const plan = await rig.database().connected(async (tx) => {
      await loadFacts(tx, nothingWanted);
      const values = Array.from({ length: parameters }, () => "'{}'").join(", ");
      const { rows } = await tx.query<{ "QUERY PLAN": string }>(`EXPLAIN EXECUTE "gate-facts" (${values})`);
      return rows.map((row) => row["QUERY PLAN"]).join("\n");
    });
    // Whole tables: sessions, decisions and deferrals grow for ever.
    expect(plan).not.toMatch(/Seq Scan|Hash Join|Merge Join/);
    expect(plan).toContain("Index Scan using decisions_call on decisions");
    expect(plan).toContain("Index Scan using deferrals_pkey on deferrals");
    // A parameter, not a value: the plan serves every group.
    expect(plan).toContain("session_key = ANY ($2)");
  });
});
