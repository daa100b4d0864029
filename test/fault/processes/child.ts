import { setTimeout as wait } from "node:timers/promises";
import type { Step } from "../../../services/host/batch-steps.ts";
import type { RelaySteps } from "../../../services/outbox/relay-steps.ts";

/** Settings that the parent hands to a service process of the kill test. */
export interface ChildSettings {
  readonly brokers: readonly string[];
  readonly databaseUrl: string;
  readonly topicPrefix: string;
  readonly name: string;
  /** Stops dead before this step, once work went through it, and says so: the parent kills it there. */
  readonly gap?: Exclude<keyof RelaySteps, "park"> | Step["name"] | "watermark-projection";
  /** A broken host: the test has to see the harm. */
  readonly broken?: "no-inbox" | "watermark-first";
}

/** Takes the settings as the parent's first message, starts, and says "ready". */
export function runChild(start: (settings: ChildSettings) => void): void {
  process.once("message", (settings: ChildSettings) => {
    start(settings);
    process.send?.("ready");
  });
  // The parent is gone: nobody would end us.
  process.on("disconnect", () => process.exit(0));
}

/** Says that the gap is reached, and never returns: what comes after it has not happened. */
export async function stopDead(gap: NonNullable<ChildSettings["gap"]>): Promise<never> {
  process.send?.(`gap ${gap}`);
  for (;;) await wait(1_000);
}
