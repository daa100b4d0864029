import { describe, expect, it } from "vitest";
import { everyFault } from "./ledger/every-fault.ts";
import type { GateCell } from "./ledger/gate-cell.ts";
import { runGateCell } from "./ledger/gate-cell.ts";

const linkNames: readonly GateCell["link"][] = ["callers", "resource", "gate-postgres"];
const cells: readonly GateCell[] = linkNames.flatMap((link) =>
  everyFault.map((fault) => ({ name: `${link}-${fault.kind}`, link, fault })),
);

describe.concurrent("a fault between the gate and those around it", () => {
  for (const cell of cells) {
    it(
      `${cell.name}: decides each call once, and each effect is carried out once`,
      { timeout: 900_000 },
      async ({ expect: its }) => {
        const { rounds, verdict } = await runGateCell(cell);
        its(verdict).toMatchObject({ lost: 0, doubled: 0, outOfOrder: 0, stuck: 0 });
        for (const round of rounds) {
          its(round.inFlight.length).toBeGreaterThan(0);
          its(round.committedDuring).toBeGreaterThan(0);
          its(round.hits["connections"]).toBeGreaterThan(0);
          its(round.allMs).not.toBeNull();
        }
      },
    );
  }
});

describe("a planted fault", () => {
  it("retry of an unknown effect: turns resource-half-open red", { timeout: 300_000 }, async () => {
    const { verdict } = await runGateCell(
      {
        name: "planted-retry-of-unknown (resource-half-open)",
        link: "resource",
        fault: { kind: "half-open" },
      },
      { onUnknown: "new-right", rounds: 1 },
    );
    expect(verdict.doubled).toBeGreaterThan(0);
  });
});
