import { setTimeout as wait } from "node:timers/promises";
import type { ProxyOrder } from "./app-server.ts";
import { toKnownOrder } from "./mediator.ts";
import type { WireObject } from "./wire-message.ts";

export interface GateLinkOptions {
  readonly gateUrl: string;
  /** Read at each call: tokens end and are renewed. */
  readonly token: () => string;
  /** Deadline of a question at the gate; default 5 s. The turn waits anyway. */
  readonly timeoutMs?: number;
}
/** How a proxy speaks to the gate. */
export interface GateLink {
  /** Asks; rejects when there was no answer. */
  ask(payload: WireObject): Promise<ProxyOrder>;
  /** Tells, in order, without waiting; again while the gate does not take it. */
  observe(payload: WireObject): void;
  /** Resolves when everything was told, or what is left could not be told in time. */
  lastWords(): Promise<void>;
}

const defaultTimeoutMs = 5_000;
/** Events that wait for the gate; what does not fit is lost. */
const waitingMax = 2_000;
const retryFirstMs = 100;
const retryMaxMs = 5_000;
/** So long a question lets earlier events go first. */
const toldFirstMs = 1_000;
/** So long is tried to tell what is left when the server has ended. */
const lastWordsMs = 3_000;

/** Opens the way to the gate. */
export function createGateLink(options: GateLinkOptions): GateLink {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  // Events go one after another, in their order, and again while the gate does not take them. A question waits a moment for
  // what was told before it.
  let telling: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let giveUpAtMs = Number.POSITIVE_INFINITY;

  return {
    observe(payload) {
      if (waiting >= waitingMax) return;
      waiting += 1;
      telling = telling
        .then(() => tell(payload))
        .finally(() => {
          waiting -= 1;
        });
    },
    async ask(payload) {
      const controller = new AbortController();
      const moment = wait(toldFirstMs, undefined, { signal: controller.signal }).catch(() => undefined);
      await Promise.race([telling, moment]);
      controller.abort();
      return toKnownOrder(await post(payload));
    },
    async lastWords() {
      giveUpAtMs = Date.now() + lastWordsMs;
      await telling;
    },
  };

  async function post(payload: WireObject): Promise<unknown> {
    const response = await fetch(`${options.gateUrl}/v1/hooks/codex-app-server`, {
      method: "POST",
      redirect: "error",
      headers: { authorization: `Bearer ${options.token()}`, "content-type": "application/json" },
      body: JSON.stringify(payload),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.status >= 500) throw new Error(`the gate answered ${String(response.status)}`);
    return response.json();
  }

  async function tell(payload: WireObject): Promise<void> {
    for (let pauseMs = retryFirstMs; ; pauseMs = Math.min(pauseMs * 2, retryMaxMs)) {
      try {
        await post(payload);
        return;
      } catch {
        if (Date.now() >= giveUpAtMs) return;
        await wait(pauseMs);
      }
    }
  }
}
