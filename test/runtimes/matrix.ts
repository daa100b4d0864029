import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Behaviour, HookForm, Limit } from "../../services/platform/runtime-room.ts";
import { projectDir } from "../harness/stack.ts";

/** What was proved of one behaviour in one form of one client. */
export interface CellResult {
  readonly runtime: string;
  readonly version: string;
  readonly form: HookForm;
  readonly behaviour: Behaviour;
  readonly verdict: "held" | "not possible" | "FAILED";
  /** What the same scenario did without the hook; null where nothing had to be stopped. */
  readonly control: string | null;
  /** What the model was told, shortened. */
  readonly told: string;
  readonly limit: Limit | null;
}

const toldMaxChars = 300;

/** Collects cells and prints them as a table, client by behaviour. */
export function createMatrix() {
  const cells: CellResult[] = [];
  return {
    add(cell: CellResult): void {
      cells.push({ ...cell, told: cell.told.slice(0, toldMaxChars) });
    },
    print(): void {
      const clients = [
        ...new Set(cells.map(({ runtime, version, form }) => `${runtime} ${version} (${form})`)),
      ];
      const behaviours = [...new Set(cells.map(({ behaviour }) => behaviour))];
      const rows = behaviours.map((behaviour) => [
        behaviour.replace("_", " "),
        ...clients.map((client) => {
          const cell = cells.find(
            (one) => one.behaviour === behaviour && `${one.runtime} ${one.version} (${one.form})` === client,
          );
          return cell === undefined ? "" : cell.verdict;
        }),
      ]);
      const table = [["behaviour", ...clients], ...rows];
      const widths = (table[0] ?? []).map((_, column) =>
        Math.max(...table.map((row) => (row[column] ?? "").length)),
      );
      const lines = table.map((row) =>
        row
          .map((text, column) => text.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd(),
      );
      const notes = cells.flatMap(({ runtime, form, behaviour, limit }) =>
        limit === null
          ? []
          : [
              `${runtime} (${form}), ${behaviour}: not possible: ${limit.why}; tried: ${limit.tried}; instead: ${limit.mitigation}`,
            ],
      );
      process.stdout.write(`\n${[...lines, "", ...notes].join("\n")}\n`);
      const folder = join(projectDir, ".fabric", "reports");
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "runtimes.json"), `${JSON.stringify({ cells }, null, 2)}\n`);
    },
  };
}
