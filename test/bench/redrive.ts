import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../services/platform/clock.ts";
import { openDatabase } from "../../services/platform/postgres.ts";
import { loadRedrives, requestRedrive } from "../../services/recovery/request-redrive.ts";
import { createProjection } from "./bench-projection.ts";
import { startProcess } from "./child-process.ts";
import type { Bench, Row } from "./figure.ts";
import { median, toRow } from "./figure.ts";
import { rssMibOf } from "./process-use.ts";
import { buryLetters, letterCodec, redriveProcessor } from "./redrive-letters.ts";

/** Letters of a bad release that nobody noticed over night. */
const mostLetters = 100_000;
/** All of them within two minutes: nobody goes for a coffee. */
const budgetPerSecond = mostLetters / 120;
/** Batches are bounded in letters and bytes: what more letters need is none. */
const growthBudget = 1.25;
const pollMs = 50;
const stallMs = 300_000;

/** A hundred thousand letters through the mended processor: how fast, in how much memory, and each once. */
export async function redrive(bench: Bench): Promise<Row[]> {
  await bench.stack();
  const letters = Math.min(bench.sizes.rows, mostLetters);
  const database = await bench.database("redrive");
  await createProjection(database.admin);
  const recovery = openDatabase({
    url: database.roleUrl("fabric_recovery"),
    applicationName: "fabric-bench-recovery",
    maxConnections: 2,
  });
  bench.onEnd(() => recovery.end());
  const deps = {
    database: recovery,
    codec: letterCodec(),
    clock: systemClock,
    environment: "bench",
    offsets: { existing: () => Promise.resolve(new Map()), ends: () => Promise.resolve([]) },
  };
  const rates: number[] = [];
  const growths: number[] = [];
  const peaks: number[] = [];
  for (let repetition = 1; repetition <= bench.sizes.repetitions; repetition += 1) {
    await database.admin.query(
      "TRUNCATE projection.calls, host.letters, host.redrives, host.inbox, vault.evidence, outbox.events",
    );
    await buryLetters(database.roleUrl("fabric_host"), database.admin, letters);
    bench.progress(`${String(repetition)}: ${letters.toLocaleString("en-US")} letters are buried`);
    const process = await startProcess("redrive-process", { databaseUrl: database.roleUrl("fabric_host") });
    bench.onEnd(() => process.stop());
    const startedMs = performance.now();
    const [asked] = await requestRedrive(
      deps,
      { filter: {}, scope: null, roles: ["sre"], beyondLimit: false },
      { by: "bench", reason: "the processor is mended", perSecond: 1_000_000 },
    );
    if (asked?.letters !== letters) throw new Error(`${String(asked?.letters)} of ${String(letters)} wait`);
    const early: number[] = [];
    const late: number[] = [];
    for (;;) {
      const [progress] = await loadRedrives(recovery, { ids: [asked.redrive_id], scope: null, limit: 1 });
      const done = progress?.processed ?? 0;
      // The first quarter fills caches and the heap.
      if (done > letters / 4) (done < letters / 2 ? early : late).push(rssMibOf(process.pid));
      if (progress?.finished_at != null) break;
      if (performance.now() - startedMs > stallMs) throw new Error(`only ${String(done)} went through`);
      await wait(pollMs);
    }
    const seconds = (performance.now() - startedMs) / 1_000;
    await process.stop();
    const counted = await database.admin.query<{ rows: number; events: number }>(
      `SELECT (SELECT count(*) FROM projection.calls)::int AS rows,
        (SELECT count(*) FROM outbox.events WHERE type = 'fabric.letter.redriven')::int AS events`,
    );
    const { rows = 0, events = 0 } = counted.rows[0] ?? {};
    if (rows !== letters || events !== letters)
      throw new Error(`${String(rows)} rows and ${String(events)} events of ${String(letters)} letters`);
    rates.push(letters / seconds);
    growths.push(Math.max(...late) / Math.max(...early));
    peaks.push(Math.max(...early, ...late));
    bench.progress(
      `${String(repetition)}: ${String(Math.round(letters / seconds))}/s, at most ${String(Math.round(Math.max(...early, ...late)))} MiB`,
    );
  }
  const note = `${letters.toLocaleString("en-US")} letters of \`${redriveProcessor}\`, 900 bytes each from the vault, marked, redriven and told in the outbox; request included; rows and events counted; peak ${String(Math.round(median(peaks)))} MiB`;
  const repeated = (value: number): number[] => rates.map(() => value);
  return [
    toRow(
      {
        name: "redrive, letters to projection",
        unit: "letters/s",
        against: "budget",
        other: "100,000 in two minutes",
        target: { better: "higher", ratio: 1 },
        command: bench.command,
        note,
      },
      rates,
      repeated(budgetPerSecond),
    ),
    toRow(
      {
        name: "redrive, memory of the second half",
        unit: "× the second quarter",
        against: "budget",
        other: "no growth",
        target: { better: "lower", ratio: growthBudget },
        command: bench.command,
        note,
      },
      growths,
      repeated(1),
    ),
  ];
}
