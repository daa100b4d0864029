import type { JsonObject } from "../json.ts";
import { isJsonObject } from "../json.ts";
import { createEventQueue } from "./event-queue.ts";
import type { GateDecision, GateQuestion } from "./gate-answer.ts";
import { readAnswer, toRefusal, toWire } from "./gate-answer.ts";
import { createLocalProfile } from "./local-profile.ts";
import type { JsonReply } from "./post-json.ts";
import { createJsonSender } from "./post-json.ts";

export interface GateClientOptions {
  /** Where the gate listens. */
  readonly url: string;
  /** A token of the role `runtime`, or where to get one. */
  readonly token: string | (() => string);
  /** Deadline of a decision; default 1 s, four times what the gate gives itself. */
  readonly timeoutMs?: number;
  /**
   * When listed tools without effect are answered by the local profile: while the gate is away (default), always, or never.
   */
  readonly localProfile?: "when_away" | "always" | "never";
  /** Most events that wait to be sent; default 1,000. Later ones are counted and dropped. */
  readonly eventsMax?: number;
}

/** What waits, and what was lost. */
export interface GateClientState {
  readonly events: number;
  readonly droppedEvents: number;
  readonly unreportedDecisions: number;
}

/** The gate as a harness sees it. */
export interface GateClient {
  /** Never rejects: no answer is a refusal. */
  decide(question: GateQuestion): Promise<GateDecision>;
  /** Sends an event when the gate takes it; it does not wait. */
  observe(event: JsonObject): void;
  /** Sends an event and waits, for as long as a decision may take; one that fails is sent later. */
  observeNow(event: JsonObject): Promise<void>;
  /** Fetches the local profile, so that it is there when the gate goes. */
  prepare(): Promise<void>;
  /** Sends what waits, within a time; resolves with what is left. */
  flush(timeoutMs?: number): Promise<GateClientState>;
  state(): GateClientState;
  close(): Promise<GateClientState>;
}

/** The name under which harnesses of one's own are known to the gate. */
const runtime = "own";
const defaultTimeoutMs = 1_000;
/** Nothing waits for an event, so that a slow gate may take its time. */
const eventTimeoutMs = 5_000;
const flushTimeoutMs = 2_000;

/** Connects a harness to the gate. */
export function createGateClient(options: GateClientOptions): GateClient {
  const { token } = options;
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const mode = options.localProfile ?? "when_away";
  const send = createJsonSender(options.url, typeof token === "string" ? () => token : token);
  const profile = createLocalProfile();
  const events = createEventQueue({
    max: options.eventsMax ?? 1_000,
    send: async (event, limitMs) => {
      const { status, json } = await send(
        "POST",
        "/v1/hooks/own",
        JSON.stringify(event),
        limitMs ?? eventTimeoutMs,
      );
      return isSettled(status, json);
    },
  });
  let refreshing: Promise<void> | null = null;
  let reporting: Promise<void> | null = null;

  return {
    async decide(question) {
      if (mode === "always") {
        const known = profile.answer(question, runtime, Date.now());
        if (known !== null) {
          void refresh();
          void report();
          return known;
        }
      }
      let reply: JsonReply;
      try {
        reply = await send("POST", "/v1/gate/decide", JSON.stringify(toWire(question, runtime)), timeoutMs);
      } catch {
        return whenAway(question);
      }
      if (reply.status >= 500) return whenAway(question);
      void refresh();
      void report();
      return reply.status === 200 ? readAnswer(reply.json) : toProblem(reply);
    },
    observe: (event) => events.add(event),
    observeNow: (event) => events.addAndWait(event, timeoutMs),
    prepare: refresh,
    flush,
    state,
    async close() {
      const left = await flush();
      events.close();
      send.close();
      return left;
    },
  };

  function whenAway(question: GateQuestion): GateDecision {
    const known = mode === "never" ? null : profile.answer(question, runtime, Date.now());
    return (
      known ??
      toRefusal(
        "GATE_UNREACHABLE",
        "the policy gate does not answer, so nothing was run; go on with what needs no tool, or stop and tell the user",
      )
    );
  }

  /** At most one at a time; a failure is tried again with the next decision. */
  function refresh(): Promise<void> {
    if (mode === "never" || !profile.isStale(Date.now())) return Promise.resolve();
    refreshing ??= send("GET", "/v1/gate/local-profile", null, timeoutMs)
      .then(({ status, json }) => {
        if (status === 200) profile.take(json, Date.now());
      })
      // The old one goes on until its end.
      .catch(() => undefined)
      .finally(() => {
        refreshing = null;
      });
    return refreshing;
  }

  function report(): Promise<void> {
    if (profile.unreported === 0) return Promise.resolve();
    reporting ??= sendReport()
      .catch(() => undefined)
      .finally(() => {
        reporting = null;
      });
    return reporting;
  }

  async function sendReport(): Promise<void> {
    const due = profile.due();
    const { status, json } = await send(
      "POST",
      "/v1/gate/local-decisions",
      JSON.stringify({ decisions: due }),
      eventTimeoutMs,
    );
    if (status !== 200 || !isJsonObject(json)) return;
    const { failed } = json;
    profile.settle(
      due.length,
      Array.isArray(failed) ? (failed as unknown[]).filter((at) => typeof at === "number") : [],
    );
  }

  async function flush(limitMs: number = flushTimeoutMs): Promise<GateClientState> {
    const untilMs = Date.now() + limitMs;
    await events.flush(limitMs);
    while (profile.unreported > 0 && Date.now() < untilMs) {
      const before = profile.unreported;
      await report();
      if (profile.unreported >= before) break;
    }
    return state();
  }

  function state(): GateClientState {
    return {
      events: events.waiting,
      droppedEvents: events.dropped,
      unreportedDecisions: profile.unreported,
    };
  }
}

/**
 * Whether an event is not to be sent again: the gate took it, or never will. What is ill, is not the gate, or does not know
 * the token (a hook's refusals come with 200) has taken nothing.
 */
function isSettled(status: number, json: unknown): boolean {
  if (!isJsonObject(json)) return false;
  const { reason } = json;
  if (status === 200) return typeof reason !== "string" || !/^(?:TOKEN|ROLE|TENANT)_/.test(reason);
  return status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status);
}

/** A refusal of the gate that is no decision: a token that is missing, a request that it cannot read. */
function toProblem({ status, json }: JsonReply): GateDecision {
  const problem = isJsonObject(json) ? json : {};
  const { code, detail } = problem;
  return toRefusal(
    typeof code === "string" && /^[A-Z][A-Z0-9_]*$/.test(code) ? code : "GATE_REFUSED",
    typeof detail === "string" ? detail : `the gate answered ${String(status)}`,
  );
}
