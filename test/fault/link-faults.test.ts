import { describe, inject, it } from "vitest";
import { everyFault } from "./ledger/every-fault.ts";
import { runLinkCell } from "./ledger/link-cell.ts";
import type { LinkName } from "./ledger/pipeline.ts";
import { cleanVerdict } from "./ledger/verdict.ts";

const linkNames: readonly LinkName[] = ["broker", "postgres", "registry"];
const cells = linkNames.flatMap((link) =>
  everyFault.map((fault) => ({ name: `${link}-${fault.kind}`, link, fault })),
);

describe.concurrent("a fault on a link", () => {
  for (const cell of cells) {
    it(
      `${cell.name}: loses, doubles and reorders nothing, and leaves nothing stuck`,
      { timeout: 900_000 },
      async ({ expect: its }) => {
        const { rounds, verdict } = await runLinkCell(cell, inject("stack"));
        its(verdict).toEqual(cleanVerdict(verdict.committed, verdict.repeatedOnTopic));
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
