import { readFileSync } from "node:fs";
import type { Client } from "pg";

/** Clock ticks per second of Linux' `/proc`; the kernel has had no other value for user space in twenty years. */
const ticksPerSecond = 100;

/** Processor time that a process has used so far, all threads, in milliseconds; NaN where there is no `/proc`. */
export function cpuMsOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, "latin1");
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th field after it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1000;
  } catch {
    return Number.NaN;
  }
}

/** Memory of a process that is in RAM, in MiB; NaN where there is no `/proc`. */
export function rssMibOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${String(pid)}/status`, "latin1");
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
  } catch {
    return Number.NaN;
  }
}

/** Processor time that the server has spent so far on the living connections of one application, in milliseconds. */
export async function serverCpuMsOf(admin: Client, applicationName: string): Promise<number> {
  const { rows } = await admin.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE application_name = $1",
    [applicationName],
  );
  return rows.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0);
}
