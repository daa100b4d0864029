import { createRequire } from "node:module";

interface RequestQueue {
  pending: readonly unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  checkPendingRequests(): void;
  scheduleCheckPendingRequests(): void;
}

/** kafkajs' own pause before it looks again at requests that wait for their turn. */
const checkPendingMs = 10;

/**
 * Mends the request queue of every kafkajs client of this process. As it comes (2.2.4, tulios/kafkajs#1751), it sets a
 * timer of minus fifty years after each answer, so that an idle connection wakes up every millisecond for ever, and
 * Node 24 prints TimeoutNegativeWarning. Calling it twice does no harm.
 */
export function mendRequestQueue(): void {
  const { prototype } = createRequire(import.meta.url)("kafkajs/src/network/requestQueue/index.js") as {
    prototype: RequestQueue;
  };
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (this.throttleCheckTimeoutId !== null || this.pending.length === 0) return;
    this.throttleCheckTimeoutId = setTimeout(
      () => {
        this.throttleCheckTimeoutId = null;
        this.checkPendingRequests();
      },
      Math.max(this.throttledUntil - Date.now(), checkPendingMs),
    );
  };
}
