import { isJsonObject } from "../../../platform/payload-fields.ts";
import type { ProxyOrder } from "./app-server.ts";
import { isGating, toNo, toYes } from "./approvals.ts";
import type { Pins } from "./client-methods.ts";
import { toPinned, whyNot } from "./client-methods.ts";
import type { ThreadBook } from "./thread-book.ts";
import { createThreadBook } from "./thread-book.ts";
import type { WireMessage, WireObject } from "./wire-message.ts";
import { readMessage } from "./wire-message.ts";

export interface MediatorOptions {
  readonly toClient: (line: string) => void;
  readonly toServer: (line: string) => void;
  /** Asks the gate; whatever goes wrong is a no. */
  readonly ask: (payload: WireObject) => Promise<ProxyOrder>;
  /** Records what happened, without waiting. */
  readonly observe: (payload: WireObject) => void;
  readonly pins: Pins;
  /** Waits before a ticket is looked at again. */
  readonly waitMs: (ms: number) => Promise<void>;
  readonly nowMs: () => number;
  readonly pollMs: number;
  /** What is known of threads; default: nothing yet. */
  readonly book?: ThreadBook;
}

/** Stands between a client and the App Server: the gate answers the server's questions, and everything is recorded. */
export interface Mediator {
  fromClient(line: string): void;
  fromServer(line: string): void;
  /** Resolves when no question waits. */
  settled(): Promise<void>;
  /** The client or the server is gone: nobody's answer is waited for any more. */
  close(): void;
}

/** JSON-RPC's code for what a server will not do. */
const refusedCode = -32_001;

export function createMediator(options: MediatorOptions): Mediator {
  const { toClient, toServer } = options;
  const book = options.book ?? createThreadBook();
  let isClosed = false;
  /** Questions that the client answers, by their id: what it may say is what goes back. */
  const passedOn = new Set<string>();
  const open = new Map<string, Promise<void>>();
  const ended = new Set<string>();
  const keyOf = (id: string | number): string => JSON.stringify(id);

  return {
    fromClient,
    fromServer,
    settled,
    close() {
      isClosed = true;
    },
  };

  async function settled(): Promise<void> {
    while (open.size > 0) await Promise.all(open.values());
  }

  function fromClient(line: string): void {
    const message = readMessage(line);
    if (message === null) {
      // The server would only log it; nothing of it is known.
      return;
    }
    if (message.kind === "reply") {
      // The gate answers for the client: only questions that were passed on are the client's to answer.
      if (!passedOn.delete(keyOf(message.id))) return;
      toServer(line);
      return;
    }
    const no = whyNot(message.method);
    if (no !== null) {
      if (message.kind === "request")
        toClient(
          JSON.stringify({ id: message.id, error: { code: refusedCode, message: `POLICY_REFUSED: ${no}` } }),
        );
      return;
    }
    const params = toPinned(message.method, message.params, options.pins);
    toServer(
      JSON.stringify({
        method: message.method,
        ...(message.kind === "request" ? { id: message.id } : {}),
        ...(message.method === "initialized" ? {} : { params }),
      }),
    );
  }

  function fromServer(line: string): void {
    const message = readMessage(line);
    if (message === null) return;
    if (message.kind !== "reply" && message.method === "serverRequest/resolved") {
      const id = message.params["requestId"];
      if (typeof id === "string" || typeof id === "number") ended.add(keyOf(id));
    }
    book.note(message, "server");
    if (message.kind !== "request") {
      const payload = book.toPayload(message);
      if (payload !== null) options.observe(payload);
      toClient(line);
      return;
    }
    if (!isGating(message.method, message.params)) {
      passedOn.add(keyOf(message.id));
      toClient(line);
      return;
    }
    const key = keyOf(message.id);
    ended.delete(key);
    const answering = answer(message, line).finally(() => open.delete(key));
    open.set(key, answering);
  }

  async function answer(message: Extract<WireMessage, { kind: "request" }>, line: string): Promise<void> {
    const { id, method, params } = message;
    const payload = book.toPayload(message) ?? { method, params };
    const order = await askUntilSettled(payload, keyOf(id));
    if (ended.delete(keyOf(id)) || isClosed) return;
    book.rule(message, order.order === "yes" ? "accepted" : "declined");
    if (order.order === "yes") {
      const yes = toYes(method, params);
      if (yes === null) {
        passedOn.add(keyOf(id));
        toClient(line);
        return;
      }
      toServer(JSON.stringify({ id, result: yes }));
      return;
    }
    toServer(JSON.stringify({ id, result: toNo(method, order.reason) }));
    // The server takes no reason; the person at the client gets it.
    const threadId = params["threadId"];
    toClient(
      JSON.stringify({
        method: "warning",
        params: { message: order.reason, ...(typeof threadId === "string" ? { threadId } : {}) },
      }),
    );
  }

  /** A ticket is looked at again until it is settled or ends, or the question is gone. */
  async function askUntilSettled(payload: WireObject, key: string): Promise<ProxyOrder> {
    let ticket: ProxyOrder | null = null;
    for (;;) {
      const said = await options.ask(payload).catch(() => null);
      // A gate that is away for a moment settles no ticket.
      const order: ProxyOrder = said === null && ticket !== null ? ticket : toKnownOrder(said);
      if (order.order !== "wait") return order;
      ticket ??= order;
      const untilMs = Date.parse(ticket.until ?? "");
      // By a clock that is behind, the ticket ended at the gate, and another one took its place that nobody was shown.
      const isAnother = Date.parse(order.until ?? "") - untilMs >= anotherMs;
      if (isAnother || !(options.nowMs() < untilMs) || ended.has(key) || isClosed)
        return { ...order, order: "no" };
      await options.waitMs(options.pollMs);
    }
  }
}

/** Ends of one ticket differ by rounding alone. */
const anotherMs = 1_000;

/** An order as the proxy takes it; whatever is none is a no. */
export function toKnownOrder(order: unknown): ProxyOrder {
  if (isJsonObject(order) && typeof order["reason"] === "string") {
    const { order: word, reason, until } = order;
    if (word === "yes" || word === "no") return { order: word, reason };
    if (word === "wait" && typeof until === "string") return { order: word, reason, until };
  }
  return {
    order: "no",
    reason: "GATE_UNREACHABLE: the policy gate gave no answer that is one, so nothing was run",
  };
}
