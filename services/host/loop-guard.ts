import type { Envelope } from "../../schemas/envelope.ts";
import { draft, toEnvelope } from "../../schemas/envelope.ts";
import { derivedUuid } from "../platform/ids.ts";
import { hostRuntime } from "./letter.ts";

/** Events that processors make of events, one of the other: the longest chain that ships has two. */
export const maxHops = 12;

/** What may be published, and what is said of the rest. */
export interface Cut {
  readonly kept: readonly Envelope[];
  /** One for each chain, however often it is cut. */
  readonly notices: readonly Envelope[];
}

/** Whose emissions a cause comes from, by its event id; see `HostTx.findEmitters`. */
type Emitters = ReadonlyMap<string, ReadonlySet<string>>;

/** Causes that a processor may have set off: of them alone somebody's emission can be further up. */
export function toCausesToFollow(emitted: readonly Envelope[]): readonly string[] {
  return [
    ...new Set(
      emitted.flatMap(({ causation_id: cause, hop_count: hops }) =>
        cause === null || hops < 2 ? [] : [cause],
      ),
    ),
  ];
}

/**
 * Cuts chains of emissions that go on for ever: past `maxHops`; where an event would be its own cause, which a derived id
 * can be; and where one comes, over however many others, from an emission of the processor that makes it. What was
 * projected stays; what would have been set off is recorded and not published.
 */
export function cutLoops(emitted: readonly Envelope[], nowMs: number, emitters: Emitters = new Map()): Cut {
  const kept: Envelope[] = [];
  const notices = new Map<string, Envelope>();
  for (const event of emitted) {
    const above = emitters.get(event.causation_id ?? "") ?? noProcessors;
    const rule =
      event.causation_id === event.event_id || above.has(event.origin.slice(processorOrigin.length))
        ? "loop.causation"
        : event.hop_count > maxHops
          ? "loop.hops"
          : null;
    if (rule === null) kept.push(event);
    else {
      const notice = toNotice(event, rule, nowMs);
      notices.set(notice.event_id, notice);
    }
  }
  return { kept, notices: [...notices.values()] };
}

const noProcessors: ReadonlySet<string> = new Set();
const processorOrigin = "processor:";

function toNotice(event: Envelope, rule: "loop.causation" | "loop.hops", nowMs: number): Envelope {
  const chain = ["throttle", rule, event.origin, event.type, event.tenant_id, event.correlation_id];
  return toEnvelope(
    draft("fabric.throttle.applied", {
      rule,
      action: "cut",
      scope: "correlation",
      scope_id: event.correlation_id,
      event_type: event.type,
      limit: BigInt(rule === "loop.hops" ? maxHops : 0),
      window_ms: 0n,
      events: BigInt(event.hop_count),
    }),
    {
      eventId: `evt_${derivedUuid(JSON.stringify(chain))}`,
      recordedAtMs: nowMs,
      tenantId: event.tenant_id,
      environment: event.environment,
      runtime: hostRuntime,
      correlationId: event.correlation_id,
      causationId: event.causation_id,
      origin: event.origin,
      hopCount: event.hop_count,
      automationDepth: event.automation_depth,
    },
  );
}
