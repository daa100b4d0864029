import { Fault } from "../../schemas/faults.ts";

/** What stands between a service and its start when the end is asked for is a statement or a call under way. */
const waitMs = 2_000;

/**
 * Gives what was started. Once the end is asked for, a start that hangs on a dependency that is silent is left where it
 * is: it has taken no work yet.
 */
export async function startInTime<T>(
  starting: Promise<T>,
  signal: AbortSignal,
  limitMs: number = waitMs,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort: () => void = () => undefined;
  const leave = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      timer = setTimeout(() => reject(new Fault("SERVICE_NOT_ENDED", "it was still being started")), limitMs);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([starting, leave]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}
