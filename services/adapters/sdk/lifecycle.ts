import type { GateClient } from "./gate/gate-client.ts";
import type { HookEvents, HookPoint } from "./registry/hook-points.ts";
import type { HookOutcome, HookRegistry } from "./registry/registry.ts";
import { toWireEvent } from "./wire-event.ts";

/** Tells what happens, to the handlers and to the gate. */
export interface Lifecycle {
  readonly hooks: HookRegistry;
  /** Runs the handlers of a point, then records the event at the gate, without waiting for it. */
  tell<P extends HookPoint>(point: P, event: HookEvents[P]): Promise<HookOutcome<P>>;
  /** The same, but waits for the gate: what a result labels counts from here on. */
  tellNow<P extends HookPoint>(point: P, event: HookEvents[P]): Promise<HookOutcome<P>>;
}

/** Joins handlers and gate. Without a gate only the handlers are told. */
export function createLifecycle(hooks: HookRegistry, gate: GateClient | null): Lifecycle {
  return {
    hooks,
    async tell(point, event) {
      const outcome = await hooks.emit(point, event);
      const wire = toWireEvent(point, event, outcome);
      if (wire !== null) gate?.observe(wire);
      return outcome;
    },
    async tellNow(point, event) {
      const outcome = await hooks.emit(point, event);
      const wire = toWireEvent(point, event, outcome);
      if (wire !== null) await gate?.observeNow(wire);
      return outcome;
    },
  };
}
