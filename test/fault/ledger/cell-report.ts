import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { projectDir } from "../../harness/stack.ts";
import type { Verdict } from "./verdict.ts";

const reportsDir = join(projectDir, ".fabric", "reports");
const cellsDir = join(reportsDir, "fault-cells");

/** One fault of a cell, and what became of the events that were under way. */
export interface CellRound {
  /** Ids of what was committed and not projected when the fault began. */
  readonly inFlight: readonly string[];
  readonly committedDuring: number;
  /** Commits that were refused meanwhile: the database itself was away. */
  readonly refusedDuring?: number;
  /** Not projected when the fault ended. */
  readonly pendingAtEnd: number;
  readonly hits: Readonly<Record<string, number>>;
  /** From the fault's end until the first, and until the last of those was there; null: not by the deadline. */
  readonly firstMs: number | null;
  readonly allMs: number | null;
  /** The same of the peer; null there: not by its deadline. Without a peer undefined. */
  readonly peerFirstMs?: number | null;
  readonly peerAllMs?: number | null;
}

export interface CellReport {
  readonly name: string;
  readonly link: string;
  readonly fault: string;
  readonly rounds: readonly CellRound[];
  readonly verdict: Pick<Verdict, "committed" | "setAside" | "stuck"> & {
    readonly lost: number;
    readonly doubled: number;
    readonly outOfOrder: number;
    readonly repeatedOnTopic: number;
  };
  readonly peerDoubled?: number;
  /** Of a cell that got stuck: what waits, and what was logged last. */
  readonly said?: readonly string[];
  /** Set when the cell could not be made here. */
  readonly skipped?: string;
}

export function toCellVerdict(verdict: Verdict): CellReport["verdict"] {
  return {
    committed: verdict.committed,
    lost: verdict.lostOnTopic + verdict.lostInProjection,
    doubled: verdict.doubledInProjection,
    outOfOrder: verdict.outOfOrderOnTopic + verdict.outOfOrderInProjection,
    stuck: verdict.stuck,
    setAside: verdict.setAside,
    repeatedOnTopic: verdict.repeatedOnTopic,
  };
}

export async function forgetCells(): Promise<void> {
  await rm(cellsDir, { recursive: true, force: true });
}

export async function saveCell(cell: CellReport): Promise<void> {
  await mkdir(cellsDir, { recursive: true });
  await writeFile(join(cellsDir, `${cell.name}.json`), JSON.stringify(cell, null, 1));
}

/** A cell that could not be made here stands in the table, with why. */
export const saveSkippedCell = (cell: {
  readonly name: string;
  readonly link: string;
  readonly fault: string;
  readonly why: string;
}): Promise<void> =>
  saveCell({
    name: cell.name,
    link: cell.link,
    fault: cell.fault,
    rounds: [],
    verdict: { committed: 0, lost: 0, doubled: 0, outOfOrder: 0, stuck: 0, setAside: 0, repeatedOnTopic: 0 },
    skipped: cell.why,
  });

/** Puts the cells of a run into one report, and into a table for people; empty when there were none. */
export async function closeCells(): Promise<string> {
  const names = (await readdir(cellsDir).catch(() => [])).sort();
  const cells = await Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(cellsDir, name), "utf8")) as CellReport),
  );
  if (cells.length === 0) return "";
  const machine = { cpus: cpus().length, load: loadavg()[0] ?? 0, node: process.version };
  await writeFile(join(reportsDir, "faults.json"), JSON.stringify({ machine, cells }, null, 1));
  return renderCells(cells);
}

const times = (
  rounds: readonly CellRound[],
  read: (round: CellRound) => number | null | undefined,
): string => {
  const values = rounds.map(read).filter((one) => one !== undefined);
  if (values.length === 0) return "";
  const sorted = values.map((one) => one ?? Number.POSITIVE_INFINITY).sort((a, b) => a - b);
  const text = (ms: number | undefined): string =>
    ms === undefined || !Number.isFinite(ms) ? "never" : (ms / 1_000).toFixed(1);
  return `${text(sorted[Math.floor((sorted.length - 1) / 2)])} / ${text(sorted.at(-1))}`;
};

export function renderCells(cells: readonly CellReport[]): string {
  const header = [
    "cell",
    "lost",
    "doubled",
    "order",
    "stuck",
    "aside",
    "events",
    "in flight",
    "hit",
    "first s",
    "all s (median / worst)",
    "bare kafkajs s",
    "bare doubled",
  ];
  const lines = cells.map((cell) => {
    if (cell.skipped !== undefined) return [cell.name, `not made: ${cell.skipped}`];
    const { verdict, rounds } = cell;
    const hit = rounds.map(({ hits }) => Object.entries(hits).map(([what, n]) => `${String(n)} ${what}`));
    return [
      cell.name,
      String(verdict.lost),
      String(verdict.doubled),
      String(verdict.outOfOrder),
      String(verdict.stuck),
      String(verdict.setAside),
      String(verdict.committed),
      rounds.map(({ inFlight }) => String(inFlight.length)).join(" "),
      hit[0]?.join(", ") ?? "",
      times(rounds, (round) => round.firstMs),
      times(rounds, (round) => round.allMs),
      times(rounds, (round) => round.peerAllMs),
      cell.peerDoubled === undefined ? "" : String(cell.peerDoubled),
    ];
  });
  const widths = header.map((title, at) =>
    Math.max(title.length, ...lines.map((line) => (line.length > 2 ? (line[at]?.length ?? 0) : 0))),
  );
  const render = (line: readonly string[]): string =>
    line
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  return [render(header), widths.map((width) => "-".repeat(width)).join("  "), ...lines.map(render)].join(
    "\n",
  );
}
