import type { RuntimeGuide } from "../../platform/runtime-room.ts";
import { capabilities } from "./capabilities.ts";
import { ownHarness } from "./own-harness.ts";

/** Harnesses of one's own: the SDK is a package that they import. */
export const guide: RuntimeGuide = {
  adapter: ownHarness,
  capabilities,
  configure: [
    'import { createGateClient, createHookRegistry, createToolPipeline } from "policy-hook-fabric/sdk";',
    "createGateClient takes the gate's address and a token of the role runtime (`fabric tokens issue --role runtime`);",
    "every tool goes through the pipeline: a body that is called past it was asked about by nobody.",
  ],
};
