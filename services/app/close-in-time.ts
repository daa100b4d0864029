import type { Log } from "../platform/log.ts";
import type { RunningService } from "./wiring.ts";

/** A server gives its last calls ten seconds, and a host its last batch about as long. */
const closeWithinMs = 12_000;
/** All of them: schedulers kill after half a minute. */
const allWithinMs = 25_000;

/**
 * Ends services one after the other, each within its time: one whose dependency is silent does not take the time of the
 * others. Gives those that did not end; their work is as after a kill.
 */
export async function closeInTime(
  services: readonly Pick<RunningService, "name" | "close">[],
  log: Log,
  limits: { readonly eachMs: number; readonly allMs: number } = { eachMs: closeWithinMs, allMs: allWithinMs },
): Promise<readonly string[]> {
  const untilMs = performance.now() + limits.allMs;
  const open: string[] = [];
  for (const one of services) {
    const waitMs = Math.max(1, Math.min(limits.eachMs, untilMs - performance.now()));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => (timer = setTimeout(() => resolve("late"), waitMs)));
    const closing = one.close().then(
      () => "ended" as const,
      (error: unknown) => {
        log.error({ err: error, service: one.name }, "did not end well");
        return "ended" as const;
      },
    );
    if ((await Promise.race([closing, late])) === "late") {
      log.error({ service: one.name, waitMs: Math.round(waitMs) }, "did not end in time; the others go on");
      open.push(one.name);
    }
    clearTimeout(timer);
  }
  log.info("stopped");
  return open;
}
