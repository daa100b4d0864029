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
  /** What the same scenario left behind without the hook; null: it did not get there. */
  readonly control: string | null;
  /** What the model was told, shortened. */
  readonly told: string;
  readonly limit: Limit | null;
  /** What came of the client's own setting in the hook's place. */
  readonly attempt: string | null;
}

/** Each client has a cell of these; its own ways past the hooks come after. */
const behaviours: readonly Behaviour[] = [
  ...(["allow", "deny", "modify", "approve", "gate_away", "gate_slow", "gate_garbage"] as const),
  ...(["hook_crash", "two_calls", "subagent", "failing_command"] as const),
];
const toldMaxChars = 300;
/** A cell as it is written down: what a setting would do is a function. */
const toPlain = ({ limit, ...cell }: CellResult): object => ({
  ...cell,
  limit: limit && { why: limit.why, tried: limit.tried, mitigation: limit.mitigation },
});

/** Collects cells and prints them as a table, client by behaviour. */
export interface Matrix {
  readonly add: (cell: CellResult) => void;
  readonly print: () => void;
}
export function createMatrix(): Matrix {
  const cells: CellResult[] = [];
  return {
    add(cell: CellResult): void {
      cells.push({ ...cell, told: cell.told.slice(0, toldMaxChars) });
    },
    print(): void {
      const clientOf = ({ runtime, version, form }: CellResult): string => `${runtime} ${version} (${form})`;
      const clients = [...new Set(cells.map(clientOf))];
      const word = (client: string, behaviour: string): string =>
        cells.find((one) => one.behaviour === behaviour && clientOf(one) === client)?.verdict ?? "MISSING";
      const table = [
        ["", ...behaviours.map((behaviour) => behaviour.replaceAll("_", " "))],
        ...clients.map((client) => [client, ...behaviours.map((behaviour) => word(client, behaviour))]),
      ];
      const widths = (table[0] ?? []).map((_, column) =>
        Math.max(...table.map((row) => (row[column] ?? "").length)),
      );
      const lines = table.map((row) =>
        row
          .map((text, column) => text.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd(),
      );
      const ways = cells
        .filter(({ behaviour }) => behaviour.startsWith("bypass_"))
        .map((cell) => `${clientOf(cell)}, ${cell.behaviour.replaceAll("_", " ")}: ${cell.verdict}`);
      const notes = cells.flatMap(({ runtime, form, behaviour, verdict, limit, attempt }) =>
        limit === null || verdict !== "not possible"
          ? []
          : [
              `${runtime} (${form}), ${behaviour}: not possible: ${limit.why}`,
              `  tried: ${limit.tried}: the tool ran`,
              ...(attempt === null ? [] : [`  its own setting: ${attempt}`]),
              `  instead: ${limit.mitigation}`,
            ],
      );
      process.stdout.write(`\n${[...lines, "", ...ways, "", ...notes].join("\n")}\n`);
      const folder = join(projectDir, ".fabric", "reports");
      mkdirSync(folder, { recursive: true });
      writeFileSync(
        join(folder, "runtimes.json"),
        `${JSON.stringify({ cells: cells.map(toPlain) }, null, 2)}\n`,
      );
    },
  };
}
