import { setTimeout as wait } from "node:timers/promises";
import type { CommitSteps } from "../../../services/gate/commit-steps.ts";
import type { Step } from "../../../services/host/batch-steps.ts";
import type { RelaySteps } from "../../../services/outbox/relay-steps.ts";
import type { Release } from "../ledger/two-versions.ts";

/** Before a step of a gate's commit; `wire`: its statement is sent and nothing is answered; `answered`: its caller has the answer. */
export type GateGap = keyof CommitSteps | "wire" | "answered";

/** Settings that the parent hands to a service process of the kill test. */
export interface ChildSettings {
  readonly brokers: readonly string[];
  readonly databaseUrl: string;
  readonly topicPrefix: string;
  readonly name: string;
  /** Stops dead before this step, once work went through it, and says so: the parent kills it there. */
  readonly gap?: Exclude<keyof RelaySteps, "park"> | Step["name"] | "watermark-projection" | GateGap;
  /** Of two that are rolled out; default the old one. */
  readonly release?: Release;
  /** A broken host or gate: the test has to see the harm. */
  readonly broken?:
    "no-inbox" | "watermark-first" | "answer-first" | "events-after" | "no-call-key" | "renamed";
  /** What a gate needs besides; the same after a restart. */
  readonly gate?: {
    readonly port: number;
    readonly authKeysFile: string;
    readonly capabilityKeysFile: string;
  };
}

/** What a child tells its parent from the gap; `about`: what it stands in the middle of. */
export interface GapMessage {
  readonly gap: NonNullable<ChildSettings["gap"]>;
  readonly about: readonly string[];
}

/** Takes the settings as the parent's first message, starts, and says "ready". */
export function runChild(start: (settings: ChildSettings) => void | Promise<void>): void {
  process.once("message", (settings: ChildSettings) => {
    Promise.resolve(start(settings)).then(
      () => process.send?.("ready"),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
  // The parent is gone: nobody would end us.
  process.on("disconnect", () => process.exit(0));
}

/** Ends in good order on SIGTERM. */
export function onAskedToEnd(stop: () => Promise<void>): void {
  process.once("SIGTERM", () => {
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
}

/** Says that the gap is reached, and never returns: what comes after it has not happened. */
export async function stopDead(gap: GapMessage["gap"], about: readonly string[] = []): Promise<never> {
  process.send?.({ gap, about } satisfies GapMessage);
  for (;;) await wait(1_000);
}
