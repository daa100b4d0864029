import { claudeCode } from "../adapters/claude-code/claude-code.ts";
import { codexAppServer } from "../adapters/codex/app-server/app-server.ts";
import { codex } from "../adapters/codex/codex.ts";
import { openclaw } from "../adapters/openclaw/openclaw.ts";
import { opencode } from "../adapters/opencode/opencode.ts";
import { hermes } from "../adapters/hermes/hermes.ts";
import { maf } from "../adapters/maf/maf.ts";
import { ownHarness } from "../adapters/sdk/own-harness.ts";

/** Adapters that ship, by the name in `/v1/hooks/<runtime>`. */
export const shippedAdapters = new Map(
  [claudeCode, codex, codexAppServer, opencode, openclaw, hermes, maf, ownHarness].map((adapter) => [
    adapter.runtime,
    adapter,
  ]),
);
