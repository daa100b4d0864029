import type { EventCapability, RuntimeCapabilities } from "../../platform/runtime-capabilities.ts";
import { observed } from "../../platform/runtime-capabilities.ts";
import { rules } from "./events.ts";

const no = observed("no");
const told: EventCapability = {
  moment: "lifecycle",
  canBlock: no,
  canModify: no,
  canAsk: no,
  canAddContext: no,
  canReplaceResult: no,
  awaited: observed("no", "told from a bounded queue; results are awaited"),
  onCrash: observed("no_action"),
  onTimeout: observed("no_action"),
  onGarbage: observed("no_action"),
  stableIds: ["session_id", "turn_id", "call_id"],
};

const question: EventCapability = {
  ...told,
  moment: "before_effect",
  canBlock: observed("yes"),
  canModify: observed("yes", "the gate's rewrite, and handlers' before the gate decides"),
  canAsk: observed("yes", "the pipeline waits for the approval service, with a deadline and an abort signal"),
  canAddContext: observed("yes", "handlers' context goes back with the outcome"),
  awaited: observed("yes"),
  onCrash: observed("closed", "a policy handler that throws denies; so does a gate that is away"),
  onTimeout: observed("closed"),
  onGarbage: observed("closed", "what is not understood whole is a refusal"),
};

/** What the SDK's pipeline and events can do; the tests run it, so that each cell was seen. */
export const capabilities: RuntimeCapabilities = {
  runtime: "own",
  clientVersion: "1.0.0",
  recordedOn: "2026-12-01",
  hooksOfOneEvent: observed(
    "serial",
    "in the order of registration; after a no no other policy handler is asked",
  ),
  exceptionPropagates: observed("no", "an observer's is recorded, a policy handler's is a no"),
  effectRecoverable: observed("conditional", "bodies declared read-only or idempotent are made again"),
  lostEventsReplayable: observed("no", "what waits in memory goes with the process"),
  blindSpots: [
    "code of the same process can call a tool's body without the pipeline; only the resource's own check is a boundary",
    "a handler that never returns to the event loop stops the process",
  ],
  events: {
    "pipeline.run": question,
    ...Object.fromEntries([...rules.keys()].map((name) => [name, told] as const)),
  },
};
