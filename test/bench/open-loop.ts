import { setTimeout as wait } from "node:timers/promises";

/**
 * Calls `send` `perSecond` times a second for `seconds`, on schedule, whether earlier calls have ended or not: a slow
 * answer does not slow the questions down. Returns when all have ended.
 */
export async function openLoop(
  perSecond: number,
  seconds: number,
  send: (index: number, scheduledMs: number) => Promise<void>,
): Promise<void> {
  const total = Math.round(perSecond * seconds);
  const startedMs = performance.now();
  const running: Promise<void>[] = [];
  while (running.length < total) {
    const dueMs = (running.length / perSecond) * 1000;
    const elapsedMs = performance.now() - startedMs;
    if (elapsedMs < dueMs) {
      await wait(1);
      continue;
    }
    running.push(send(running.length, startedMs + dueMs));
  }
  await Promise.all(running);
}
