import type { Database } from "../platform/postgres.ts";
import { loadPositions, toProgress } from "../replay/positions.ts";
import { loadShadows } from "../replay/shadow-rows.ts";
import type { RunNames, Shadow, Side } from "../replay/shadow.ts";
import { sidesOf } from "../replay/shadow.ts";

/** A shadow as a list shows it. */
export interface ShadowLine {
  readonly name: string;
  readonly processor: string;
  readonly version: string;
  readonly file: string | null;
  readonly against: Shadow["comparedWith"];
  readonly state: Shadow["state"];
  readonly done: bigint;
  readonly all: bigint;
  /** Rows that differed when it was last compared; null: never. */
  readonly differences: number | null;
  readonly acceptedBy: string | null;
  readonly startedAt: Date;
  readonly startedBy: string;
}

/** Every shadow, and how far its runs are. */
export async function loadShadowLines(
  database: Database,
  namesOf: (name: string, side: Side) => RunNames,
): Promise<readonly ShadowLine[]> {
  const lines: ShadowLine[] = [];
  for (const shadow of await loadShadows(database)) {
    let done = 0n;
    let all = 0n;
    for (const side of sidesOf(shadow)) {
      const { host } = namesOf(shadow.name, side);
      const made = await database.query(
        "SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'watermarks'",
        [host],
      );
      const positions =
        made.rowCount === 0
          ? new Map<string, bigint>()
          : await loadPositions(database, host, shadow.processor);
      const progress = toProgress(shadow.ranges, positions);
      done += progress.done;
      all += progress.all;
    }
    lines.push({
      name: shadow.name,
      processor: shadow.processor,
      version: shadow.processorVersion,
      file: shadow.versionFile,
      against: shadow.comparedWith,
      state: shadow.state,
      done,
      all,
      differences:
        shadow.difference === null
          ? null
          : shadow.difference.tables.reduce(
              (sum, one) => sum + one.onlyLive + one.onlyShadow + one.changed,
              shadow.difference.newLetters,
            ),
      acceptedBy: shadow.acceptedBy,
      startedAt: shadow.startedAt,
      startedBy: shadow.startedBy,
    });
  }
  return lines;
}
