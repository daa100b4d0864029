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

/** An order is a few words; a body without an end is not kept until the deadline. */
const answerMaxBytes = 1_048_576;
const notKnown = /^(?:TOKEN|ROLE|TENANT)_/;

async function toText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  if (response.body === null) return "";
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > answerMaxBytes) return "";
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

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
    // The gate answers with 200 whatever it says, and names what it sends: anything else comes from elsewhere.
    const isAnswer =
      response.status === 200 && /^application\/json\b/i.test(response.headers.get("content-type") ?? "");
    const text = isAnswer ? await toText(response) : "";
    if (!isAnswer) await response.body?.cancel();
    if (!isAnswer || text === "")
      throw new Error(`what answered (${String(response.status)}) is not the gate`);
    return JSON.parse(text) as unknown;
  }

  async function tell(payload: WireObject): Promise<void> {
    for (let pauseMs = retryFirstMs; ; pauseMs = Math.min(pauseMs * 2, retryMaxMs)) {
      try {
        const said = await post(payload);
        // One that does not know who speaks took nothing: a token is renewed, an event is not.
        if (!notKnown.test(toKnownOrder(said).reason)) return;
        throw new Error("the gate does not know the token");
      } catch {
        if (Date.now() >= giveUpAtMs) return;
        await wait(pauseMs);
      }
    }
  }
}
