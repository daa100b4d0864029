import type { Envelope } from "../../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../../schemas/envelope.ts";
import type { Clock } from "../../platform/clock.ts";
import { derivedUuid, newEventId } from "../../platform/ids.ts";
import type { Log } from "../../platform/log.ts";
import { toStorableText } from "../../platform/masked-preview.ts";
import type { EventEncoder } from "../../platform/outbox.ts";
import { appendOutbox, notifyOutbox, toOutboxRows } from "../../platform/outbox.ts";
import type { Database } from "../../platform/postgres.ts";
import type { Applied, Throttle } from "./throttle.ts";

export interface ThrottleNotesOptions {
  readonly database: Database;
  readonly codec: EventEncoder;
  readonly clock: Clock;
  readonly environment: string;
  readonly log: Log;
  readonly throttle: Throttle;
  readonly everyMs?: number;
}

const defaultEveryMs = 1_000;
/** What could not be told yet; beyond it the oldest is only in the log. */
const maxUntold = 10_000;

/** Tells by events what was delayed or left out, once a window is over; what cannot be told now is told later. */
export function startThrottleNotes(options: ThrottleNotesOptions): {
  flush(): Promise<void>;
  stop(): Promise<void>;
} {
  const { database, codec, clock, log, throttle } = options;
  let untold: Applied[] = [];
  let turn: Promise<void> = Promise.resolve();

  async function tell(all: boolean): Promise<void> {
    untold.push(...throttle.takeApplied(clock.nowMs(), all));
    if (untold.length > maxUntold) {
      log.error({ lost: untold.length - maxUntold }, "what was throttled could not be told for too long");
      untold = untold.slice(-maxUntold);
    }
    if (untold.length === 0) return;
    const told = untold;
    const events = told.map((one) => toEvent(one, options));
    await database.transaction((tx) => appendOutbox(tx, toOutboxRows(codec, events)));
    untold = untold.slice(told.length);
    notifyOutbox(database);
    log.warn(
      {
        events: told.reduce((sum, one) => sum + one.events, 0),
        rules: [...new Set(told.map((one) => one.rule.id))],
      },
      "observing events were delayed or left out",
    );
  }
  function inTurn(all: boolean): Promise<void> {
    turn = turn
      .then(() => tell(all))
      .catch((error: unknown) => log.warn({ err: error }, "what was throttled was not told; trying again"));
    return turn;
  }
  const timer = setInterval(() => void inTurn(false), options.everyMs ?? defaultEveryMs);
  timer.unref();
  return {
    flush: () => inTurn(true),
    async stop() {
      clearInterval(timer);
      await inTurn(true);
    },
  };
}

const gateRuntime = {
  kind: "fabric",
  adapter_version: "gate",
  runtime_version: null,
  permission_mode: null,
  sandbox: null,
};

function toEvent(one: Applied, { clock, environment }: ThrottleNotesOptions): Envelope {
  const { rule, tenantId, scopeId, type, windowStartedMs, events } = one;
  const eventId = newEventId(clock);
  return toEnvelope(
    draft("fabric.throttle.applied", {
      rule: rule.id,
      action: rule.action.kind,
      scope: rule.scope,
      scope_id: toStorableText(scopeId),
      event_type: type,
      limit: BigInt(rule.limit),
      window_ms: BigInt(rule.windowMs),
      events: BigInt(events),
    }),
    {
      eventId,
      recordedAtMs: clock.nowMs(),
      tenantId,
      environment,
      runtime: gateRuntime,
      correlationId: `cor_${derivedUuid(JSON.stringify(["throttle", rule.id, tenantId, scopeId, windowStartedMs]))}`,
      origin: "schedule",
    },
  );
}
