/** A handler that did not answer in time. */
export class HandlerTimeout extends Error {
  override readonly name = "HandlerTimeout";
}

/**
 * Calls a handler with a time limit. What comes after it is ignored, also an error; the signal tells the handler. A handler
 * that never returns to the event loop cannot be limited from the same thread.
 */
export async function withinTime<T>(
  timeoutMs: number,
  call: (signal: AbortSignal) => T | PromiseLike<T>,
): Promise<T> {
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      const error = new HandlerTimeout(`no answer within ${String(timeoutMs)} ms`);
      reject(error);
      controller.abort(error);
    }, timeoutMs);
    const settle = (): void => clearTimeout(timer);
    // A promise keeps its first outcome: a late one changes nothing.
    Promise.resolve()
      .then(() => call(controller.signal))
      .then(resolve, reject)
      .finally(settle)
      .catch(reject);
  });
}
