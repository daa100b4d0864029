import { isJsonObject } from "../../../platform/payload-fields.ts";
import { isGating } from "./approvals.ts";
import type { WireMessage, WireObject } from "./wire-message.ts";
import { objectAt, textAt } from "./wire-message.ts";

/** What the proxy answered to a question about an item. */
export type Ruled = "accepted" | "declined";

interface KnownThread {
  cwd?: string;
  model?: string;
  approvalPolicy?: string;
  sandbox?: string;
  parent?: string;
  clientVersion?: string;
  lastTotal?: number;
}
interface KnownItem {
  readonly item: WireObject;
  readonly turnId: string | undefined;
  ruled?: Ruled;
  /** The server waits, or waited, for an answer before it runs. */
  isAsked?: boolean;
  /** Accepted as an answer to "retry without sandbox?": its first run was before anybody was asked. */
  isRetried?: boolean;
  isEnded?: boolean;
  /** Inputs to its terminal that were accepted and not yet seen. */
  inputs?: number;
}

/** What is known of threads and items from the messages that went by. No clock, no I/O. */
export interface ThreadBook {
  note(message: WireMessage, from: "client" | "server"): void;
  /** Notes what a question about an item was answered with. */
  rule(message: WireMessage, ruled: Ruled): void;
  /** The message with what it leaves out, as the gate takes it; null: it tells nothing. */
  toPayload(message: WireMessage): WireObject | null;
}

/** Items that do something in the world. */
const effects = ["commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall"];
/** Entries of each kind; the oldest go first. */
const knownMax = 5_000;

/** Notifications that tell something; all others are metadata of the client's own. */
const telling = [
  "thread/started",
  "turn/started",
  "turn/completed",
  "item/completed",
  "item/commandExecution/terminalInteraction",
  "thread/tokenUsage/updated",
  "thread/settings/updated",
];
/** Known, and without an event: deltas, states, limits, hooks of the client's own. */
const silent =
  /^(item\/(started|agentMessage|plan|reasoning|commandExecution\/outputDelta|fileChange|mcpToolCall|autoApprovalReview)|thread\/(status|readState|goal|name|archived|unarchived|closed|realtime|compacted|deleted|queue|section|attachment|metadata|prediction)|turn\/(diff|plan|moderation)|hook\/|account\/|remoteControl\/|configWarning$|deprecationNotice$|guardianWarning$|warning$|error$|serverRequest\/resolved$|mcpServer\/|model\/|fuzzyFileSearch\/|windows|skills\/|app\/|fs\/|rawResponseItem\/|process\/|command\/)/;

/** Starts with nothing known. */
export function createThreadBook(): ThreadBook {
  const threads = new Map<string, KnownThread>();
  const items = new Map<string, KnownItem>();
  const keyOf = (threadId: string, itemId: string): string => `${threadId}/${itemId}`;

  function threadOf(id: string): KnownThread {
    const found = threads.get(id);
    if (found !== undefined) return found;
    const made: KnownThread = {};
    threads.set(id, made);
    forgetOldest(threads);
    return made;
  }

  function noteThread(source: WireObject, id: string): void {
    const known = threadOf(id);
    for (const [key, as] of [
      ["cwd", "cwd"],
      ["model", "model"],
      ["approvalPolicy", "approvalPolicy"],
      ["parentThreadId", "parent"],
      ["cliVersion", "clientVersion"],
    ] as const) {
      const value = textAt(source, key);
      if (value !== undefined) known[as] = value;
    }
    const sandbox =
      textAt(objectAt(source, "sandbox"), "type") ?? textAt(objectAt(source, "sandboxPolicy"), "type");
    if (sandbox !== undefined) known.sandbox = sandbox;
  }

  /** The item that a question is about; a tool server's question names none, and is about the open call that it repeats. */
  function itemOf(params: WireObject, method: string): [string, KnownItem] | null {
    const threadId = textAt(params, "threadId") ?? "";
    const itemId =
      textAt(params, "itemId") ?? textAt(params, "callId") ?? textAt(objectAt(params, "item"), "id");
    if (itemId !== undefined) {
      const key = keyOf(threadId, itemId);
      const known = items.get(key);
      return known === undefined ? null : [key, known];
    }
    if (method !== "mcpServer/elicitation/request") return null;
    const meta = objectAt(params, "_meta");
    const input = JSON.stringify(meta["tool_params"] ?? {});
    const found = [...items].findLast(
      ([key, { item, isEnded, ruled }]) =>
        key.startsWith(`${threadId}/`) &&
        isEnded !== true &&
        ruled === undefined &&
        item["type"] === "mcpToolCall" &&
        item["server"] === params["serverName"] &&
        item["tool"] === meta["tool_name"] &&
        JSON.stringify(item["arguments"] ?? {}) === input,
    );
    return found ?? null;
  }

  return {
    note(message) {
      if (message.kind === "reply") {
        // The answer to thread/start, resume and fork; the thread's own fields, and those of its settings beside it.
        const thread = objectAt(message.result, "thread");
        const id = textAt(thread, "id");
        if (id !== undefined) {
          noteThread(thread, id);
          if (isJsonObject(message.result)) noteThread(message.result, id);
        }
        return;
      }
      const { method, params } = message;
      const threadId = textAt(params, "threadId");
      if (message.kind === "request" && !isRetry(params) && params["kind"] !== "writeStdin") {
        const found = itemOf(params, method);
        if (found !== null) items.set(found[0], { ...found[1], isAsked: true });
      }
      if (method === "thread/started") {
        const thread = objectAt(params, "thread");
        const id = textAt(thread, "id");
        if (id !== undefined) noteThread(thread, id);
      }
      if (threadId === undefined) return;
      if (method === "thread/settings/updated") noteThread(objectAt(params, "threadSettings"), threadId);
      if (method !== "item/started" && method !== "item/completed") return;
      const item = objectAt(params, "item");
      const itemId = textAt(item, "id");
      if (itemId === undefined) return;
      const key = keyOf(threadId, itemId);
      const known = items.get(key);
      items.set(key, {
        ...known,
        item: { ...known?.item, ...item },
        turnId: textAt(params, "turnId"),
        ...(method === "item/completed" ? { isEnded: true } : {}),
      });
      forgetOldest(items);
      // A child's own thread is never announced: this is where its parent names it.
      for (const child of (item["receiverThreadIds"] as unknown[] | undefined) ?? [])
        if (typeof child === "string" && child !== threadId) threadOf(child).parent ??= threadId;
    },

    rule(message, ruled) {
      if (message.kind !== "request") return;
      const found = itemOf(message.params, message.method);
      if (found === null) return;
      const [key, known] = found;
      // About what is typed into the item's terminal, and not about the item.
      if (message.params["kind"] === "writeStdin") {
        if (ruled === "accepted") items.set(key, { ...known, inputs: (known.inputs ?? 0) + 1 });
        return;
      }
      const isRetried = ruled === "accepted" && isRetry(message.params);
      items.set(key, { ...known, ruled, ...(isRetried ? { isRetried } : {}) });
    },

    toPayload(message) {
      if (message.kind === "reply") return null;
      const { method, params } = message;
      if (
        message.kind === "request"
          ? !isGating(method, params)
          : silent.test(method) && !telling.includes(method)
      )
        return null;
      const threadId = textAt(params, "threadId") ?? textAt(objectAt(params, "thread"), "id");
      const thread = threadId === undefined ? {} : threadOf(threadId);
      if (method === "thread/tokenUsage/updated") {
        // It comes again with nothing new.
        const total = objectAt(objectAt(params, "tokenUsage"), "total")["totalTokens"];
        if (typeof total === "number") {
          if (thread.lastTotal === total) return null;
          thread.lastTotal = total;
        }
      }
      const found = itemOf(params, method);
      const known = found?.[1];
      const itemId = found?.[0].slice((threadId ?? "").length + 1);
      const type = textAt(objectAt(params, "item"), "type");
      if (method === "item/completed" && !isTold(type)) return null;
      const turnId = textAt(params, "turnId") ?? textAt(objectAt(params, "turn"), "id");
      const isOfItem =
        message.kind === "request" || effects.includes(type ?? "") || method.includes("terminalInteraction");
      const isTerminal = method === "item/commandExecution/terminalInteraction";
      const open = method === "turn/completed" ? toOpen(threadId, turnId) : undefined;
      return Object.fromEntries(
        Object.entries({
          method,
          session_id: threadId,
          parent_session_id: thread.parent,
          turn_id: turnId,
          call_id: isOfItem
            ? (textAt(params, "approvalId") ?? itemId ?? textAt(params, "itemId") ?? textAt(params, "callId"))
            : undefined,
          working_directory: textAt(params, "cwd") ?? textAt(known?.item, "cwd") ?? thread.cwd,
          permission_mode: thread.approvalPolicy,
          sandbox: thread.sandbox,
          client_version: thread.clientVersion,
          model: thread.model,
          ruled: isTerminal ? toTyped(found) : known?.ruled,
          is_retried: known?.isRetried,
          is_retry: message.kind === "request" ? isRetry(params) || undefined : undefined,
          item: message.kind === "request" ? known?.item : undefined,
          open_items: open === undefined || open.length === 0 ? undefined : open,
          params,
        }).filter(([, value]) => value !== undefined),
      );
    },
  };

  /** Whether an input to a terminal is one that was accepted. */
  function toTyped(found: [string, KnownItem] | null): Ruled | undefined {
    const [key, known] = found ?? [];
    if (key === undefined || known?.inputs === undefined || known.inputs === 0) return undefined;
    items.set(key, { ...known, inputs: known.inputs - 1 });
    return "accepted";
  }

  /** What was begun in a turn and had not come to an end when the turn did. */
  function toOpen(threadId: string | undefined, turnId: string | undefined): readonly WireObject[] {
    return [...items].flatMap(([key, { item, turnId: of, isEnded, isAsked, ruled }]) =>
      isEnded !== true &&
      // One that waited for an answer never ran.
      (isAsked !== true || ruled === "accepted") &&
      of === turnId &&
      key.startsWith(`${threadId ?? ""}/`) &&
      effects.includes(String(item["type"]))
        ? [{ id: item["id"], type: item["type"], command: item["command"] ?? null }]
        : [],
    );
  }
}

/** The server's own words when it wants to run a command a second time, outside of the sandbox. */
function isRetry(params: WireObject): boolean {
  return /retry without sandbox/i.test(textAt(params, "reason") ?? "");
}

const isTold = (type: string | undefined): boolean =>
  type !== "agentMessage" && type !== "plan" && type !== "reasoning";

function forgetOldest(map: Map<string, unknown>): void {
  if (map.size <= knownMax) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
