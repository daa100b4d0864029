/** Longest timer of Node; only there to keep the process alive. */
const keepAliveMs = 2 ** 31 - 1;

/** Waits for Ctrl-C or SIGTERM. Holds the process open: an event loop with nothing to do would end it. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setInterval(() => undefined, keepAliveMs);
    const end = (): void => {
      clearInterval(timer);
      resolve();
    };
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
