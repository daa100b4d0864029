import type { JsonObject } from "../json.ts";

export interface EventQueueOptions {
  readonly max: number;
  /** True: taken, or never to be sent again. Rejects or answers false: later. */
  readonly send: (event: JsonObject, timeoutMs?: number) => Promise<boolean>;
}

/** Events on their way to the gate, one after another, in their order. */
export interface EventQueue {
  add(event: JsonObject): void;
  /** Resolves when the event was sent, or when the time is up and it waits with the others. */
  addAndWait(event: JsonObject, timeoutMs: number): Promise<void>;
  flush(timeoutMs: number): Promise<void>;
  close(): void;
  readonly waiting: number;
  readonly dropped: number;
}

const retryFirstMs = 200;
const retryMaxMs = 10_000;

/** A bounded queue that tries again. A timer of it keeps no process alive. */
export function createEventQueue({ max, send }: EventQueueOptions): EventQueue {
  const waiting: { readonly event: JsonObject; done?: () => void }[] = [];
  let dropped = 0;
  let isClosed = false;
  let retryMs = retryFirstMs;
  let timer: NodeJS.Timeout | null = null;
  let draining: Promise<void> | null = null;

  function push(entry: (typeof waiting)[number]): boolean {
    if (isClosed || waiting.length >= max) {
      dropped += 1;
      return false;
    }
    waiting.push(entry);
    return true;
  }

  function drain(limitMs?: number): Promise<void> {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    draining ??= sendAll(limitMs).finally(() => {
      draining = null;
    });
    return draining;
  }

  async function sendAll(limitMs?: number): Promise<void> {
    for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
      const isTaken = await send(first.event, limitMs).catch(() => false);
      if (!isTaken) {
        if (!isClosed) {
          timer = setTimeout(() => void drain(), retryMs).unref();
          retryMs = Math.min(retryMs * 2, retryMaxMs);
        }
        return;
      }
      retryMs = retryFirstMs;
      waiting.shift();
      first.done?.();
    }
  }

  return {
    add(event) {
      if (push({ event }) && timer === null) void drain();
    },
    async addAndWait(event, timeoutMs) {
      let clock: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        if (!push({ event, done: resolve })) {
          resolve();
          return;
        }
        clock = setTimeout(resolve, timeoutMs);
        // While the gate is away there is no use in waiting for it at each event.
        void drain(timeoutMs).then(() => {
          if (waiting.length > 0) resolve();
        });
      });
      clearTimeout(clock);
    },
    async flush(timeoutMs) {
      const untilMs = Date.now() + timeoutMs;
      while (waiting.length > 0 && Date.now() < untilMs) {
        const before = waiting.length;
        await drain(Math.max(untilMs - Date.now(), 1));
        if (waiting.length >= before) return;
      }
    },
    close() {
      isClosed = true;
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
    get waiting() {
      return waiting.length;
    },
    get dropped() {
      return dropped;
    },
  };
}
